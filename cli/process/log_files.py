"""Log files behind standard output and standard error, which are reopened after a log rotation."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

STDOUT, STDERR = 1, 2


@dataclass(frozen=True, slots=True)
class LogFile:
    """A regular file that is standard output or standard error."""

    descriptor: int
    path: Path

    def reopen(self) -> None:
        """Reopen the path if a rotation has moved the file.

        Raises OSError if the path cannot be opened; then the old file stays in use.
        """
        try:
            if os.path.samestat(os.fstat(self.descriptor), self.path.stat()):
                return
        except FileNotFoundError:
            pass  # the file was moved, and no new file exists
        opened = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.dup2(opened, self.descriptor)
        finally:
            os.close(opened)


def log_files() -> tuple[LogFile, ...]:
    """Return the files to which standard output and standard error are redirected. Without /proc, return no file."""
    found = []
    for descriptor in (STDOUT, STDERR):
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                found.append(LogFile(descriptor, Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
        except OSError:
            continue
    return tuple(found)

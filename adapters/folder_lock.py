"""Lock on a folder: one process at a time holds it.

The lock is a lock of the operating system (`flock`). The operating system releases the lock when its process ends, also
after `kill -9`, so no cleanup is necessary. A file next to the lock describes the holder, for error messages of other
processes.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from .durable_files import make_folder, write_atomically

LOCK_FILE = ".lock"
HOLDER_FILE = ".holder"
POLL_SECONDS = 0.05
PRIVATE = 0o700


def _make_private(folder: Path) -> None:
    """Create the folder with access for its owner only. An existing folder becomes private when it is empty or has a
    lock file. A folder with other content keeps its mode, because other programs may use it."""
    try:
        make_folder(folder, mode=PRIVATE)
    except FileExistsError:
        state = folder.stat()
        ours = state.st_uid == os.geteuid() and ((folder / LOCK_FILE).exists() or not any(folder.iterdir()))
        if ours and stat.S_IMODE(state.st_mode) != PRIVATE:
            folder.chmod(PRIVATE)


class FolderLock:
    """Exclusive right to use a folder. It excludes other processes and other instances in the same process.

    The folder is created when it is missing. The lock is not re-entrant: acquire it once and pass the instance on.
    """

    def __init__(self, *, folder: Path, purpose: str = "") -> None:
        self._folder = folder
        self._purpose = purpose
        self._lock = FileLock(folder / LOCK_FILE, mode=0o600, thread_local=False)

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def held(self) -> bool:
        """True while this instance holds the lock."""
        return self._lock.is_locked

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free. Raise OSError when the folder cannot be created or written."""
        if self.held:
            return True
        _make_private(self._folder)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        write_atomically(self._folder / HOLDER_FILE, f"{os.getpid()} {self._purpose}".strip().encode())
        return True

    async def acquire(self, *, timeout: float) -> bool:
        """Try to acquire the lock for `timeout` seconds. Return False when another holder still has it."""
        deadline = time.monotonic() + timeout
        while not self.try_acquire():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            await asyncio.sleep(min(POLL_SECONDS, remaining))
        return True

    def release(self) -> None:
        """Release the lock. Do nothing when it is not held."""
        if self.held:
            (self._folder / HOLDER_FILE).unlink(missing_ok=True)
            self._lock.release()

    def holder(self) -> str:
        """Describe the holder for messages: `pid 4711 (worker all)`, or `another process` when the holder file cannot
        be read."""
        return holder_of(self._folder)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder_of(folder: Path) -> str:
    """Describe the holder of a folder; see `FolderLock.holder`."""
    pid, purpose = _holder(folder)
    if pid is None:
        return "another process"
    return f"pid {pid} ({purpose})" if purpose else f"pid {pid}"


def _holder(folder: Path) -> tuple[int | None, str]:
    try:
        text = (folder / HOLDER_FILE).read_text(encoding="utf-8")
    except (FileNotFoundError, PermissionError):
        return None, ""
    pid, _, purpose = text.partition(" ")
    return (int(pid), purpose) if pid.isdigit() else (None, "")

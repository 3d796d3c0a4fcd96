"""Standard streams that tolerate characters missing in the encoding, full disks and closed pipes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class OutputLost(Exception):
    """Standard output cannot be written. `broken_pipe`: the reader of the pipe has ended, which is no error."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.broken_pipe = isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE


class _Stream:
    """Wrapper of a stream that handles write errors. All other calls go to the wrapped stream."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str) -> int:
        try:
            return self._inner.write(text)
        except OSError as error:
            self._lost(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._inner.flush()
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        """Handle text that could not be written. This class drops it."""


class _Output(_Stream):
    """Standard output of a command. A failed write raises OutputLost."""

    def _lost(self, error: OSError) -> None:
        raise OutputLost(error) from error


def dropping(stream: TextIO) -> TextIO:
    """Return a stream for logs that drops text which cannot be written."""
    return cast(TextIO, _Stream(stream._inner if isinstance(stream, _Stream) else stream))


@contextmanager
def writable_streams() -> Iterator[None]:
    """Replace the standard streams while a command runs.

    A character that the encoding lacks is replaced. A stream that the caller has closed becomes the null device.
    Otherwise a file that the command opens would get the descriptor of this stream.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    _open_missing()
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - open until the process ends
    out, err = (stream or open(os.devnull, "w") for stream in before[1:])  # noqa: SIM115
    for stream, errors in ((out, "replace"), (err, "backslashreplace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)
    sys.stdout, sys.stderr = cast(TextIO, _Output(out)), cast(TextIO, _Stream(err))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in (out, err):
            _finish(stream)


def _open_missing() -> None:
    """Open the null device on each closed descriptor from 0 to 2."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor


def _finish(stream: TextIO) -> None:
    """Flush the stream. If that fails, redirect it to the null device, so that Python's flush at exit succeeds."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)

"""Asynchronous reader of lines from a file, a pipe or a terminal, which does not block the end of the program.

At exit, asyncio waits for the threads of its pool. If a thread of the pool waited in `readline`, Ctrl-C would have no
effect until the next line. Therefore a daemon thread reads the descriptor, without Python's buffers and their locks.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import CommandFailed, Exit

CHUNK = 64 * 1024
LINE_MAX = 1024 * 1024
"""Maximum length of a line in bytes. Only the start and the end of a longer line are kept, so that memory stays
bounded."""
END_BYTES = 4 * 1024
"""Number of bytes that are kept from the end of a line longer than LINE_MAX."""
CHUNKS_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its line break. A line longer than LINE_MAX keeps only its start and end."""

    start: bytes
    size: int
    """Number of bytes of the whole line, before a cut."""
    end: bytes = b""
    """The last bytes of a line that was cut."""


async def lines(file: BinaryIO) -> AsyncIterator[bytes]:
    """Yield each line without its line break, cut after LINE_MAX + 1 bytes. The last line needs no line break.

    Raises CommandFailed if reading fails.
    """
    async for line in whole_lines(file):
        yield line.start


async def whole_lines(file: BinaryIO) -> AsyncIterator[Line]:
    """Yield each line with its size. Raises CommandFailed if reading fails."""
    growing = _GrowingLine()
    async for chunk in _chunks(file):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            growing.add(part)
            yield growing.line()
            growing = _GrowingLine()
        growing.add(rest)
    if growing.size:
        yield growing.line()


class _GrowingLine:
    def __init__(self) -> None:
        self.size = 0
        self._start = bytearray()
        self._end = b""

    def add(self, part: bytes) -> None:
        self.size += len(part)
        self._start += part[: max(0, LINE_MAX + 1 - len(self._start))]
        if self.size > LINE_MAX:
            self._end = (self._end + part)[-END_BYTES:]

    def line(self) -> Line:
        return Line(bytes(self._start), self.size, self._end)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        descriptor = file.fileno()
    except io.UnsupportedOperation:  # a file in memory
        while chunk := file.read(CHUNK):
            yield chunk
        return
    terminal = os.isatty(descriptor)
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | OSError] = asyncio.Queue(CHUNKS_AHEAD)

    def read_chunk() -> bytes | OSError:
        try:
            return os.read(descriptor, CHUNK)
        except OSError as error:
            return b"" if terminal else error  # a closed terminal counts as the end

    def read() -> None:
        chunk: bytes | OSError = b"more"
        while chunk and not isinstance(chunk, OSError):
            chunk = read_chunk()
            try:
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
            except (RuntimeError, CancelledError):
                return  # the loop has ended

    threading.Thread(target=read, name="lines", daemon=True).start()
    while taken := await queue.get():
        if isinstance(taken, OSError):
            raise CommandFailed(Exit.PARTLY, f"{getattr(file, 'name', 'the file')} cannot be read: {taken.strerror}")
        yield taken

"""Lines of a file, a pipe or a terminal as they come, read so that the program can end at any time.

asyncio waits for the threads of its pool at the end: with one that waits in `readline`, Ctrl-C would do nothing before
the next line. A daemon thread reads the descriptor instead, without Python's buffers and their locks.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import BinaryIO

from ..errors import CommandFailed, Exit

CHUNK = 64 * 1024
LINE_MAX = 1024 * 1024
"""Bytes. The rest of a longer line is dropped: no turn is that long, and memory stays bounded."""
CHUNKS_AHEAD = 4


async def lines(file: BinaryIO) -> AsyncIterator[bytes]:
    """Yield each line without its line break; the last line needs none. Raises CommandFailed if reading fails."""
    buffer = bytearray()
    async for chunk in _chunks(file):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield bytes(_extend(buffer, part))
            buffer.clear()
        _extend(buffer, rest)
    if buffer:
        yield bytes(buffer)


def _extend(buffer: bytearray, part: bytes) -> bytearray:
    buffer += part[: max(0, LINE_MAX + 1 - len(buffer))]
    return buffer


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
            return b"" if terminal else error  # a terminal that is closed counts as the end

    def read() -> None:
        chunk: bytes | OSError = b"more"
        while chunk and not isinstance(chunk, OSError):
            chunk = read_chunk()
            try:
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
            except (RuntimeError, CancelledError):
                return  # the loop has ended, and nobody waits for more

    threading.Thread(target=read, name="lines", daemon=True).start()
    while taken := await queue.get():
        if isinstance(taken, OSError):
            raise CommandFailed(Exit.PARTLY, f"{getattr(file, 'name', 'the file')} cannot be read: {taken.strerror}")
        yield taken

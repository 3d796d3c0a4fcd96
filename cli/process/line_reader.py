"""Lines of a file, a pipe or a terminal as they come, without holding up the end of the program.

A thread of asyncio's own pool that waits in `readline` would be waited for at the end: Ctrl-C would do nothing before
the next line. Here a daemon thread reads the descriptor itself, past Python's buffers and their locks.
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
"""bytes; the rest of a longer line is thrown away: no turn is that long, and memory stays bounded."""
CHUNKS_AHEAD = 4


async def lines(file: BinaryIO) -> AsyncIterator[bytes]:
    """Each line without its line break, the last one also when it has none. Raises CommandFailed for a file of which no
    more can be read."""
    kept = bytearray()
    async for chunk in _chunks(file):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield bytes(_longer(kept, part))
            kept.clear()
        _longer(kept, rest)
    if kept:
        yield bytes(kept)


def _longer(kept: bytearray, part: bytes) -> bytearray:
    kept += part[: max(0, LINE_MAX + 1 - len(kept))]
    return kept


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
            return b"" if terminal else error  # a terminal that is gone: an end like any other

    def read() -> None:
        chunk: bytes | OSError = b"more"
        while chunk and not isinstance(chunk, OSError):
            chunk = read_chunk()
            try:
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
            except (RuntimeError, CancelledError):
                return  # the loop has ended: nobody waits for more

    threading.Thread(target=read, name="lines", daemon=True).start()
    while taken := await queue.get():
        if isinstance(taken, OSError):
            raise CommandFailed(Exit.PARTLY, f"{getattr(file, 'name', 'the file')} cannot be read: {taken.strerror}")
        yield taken

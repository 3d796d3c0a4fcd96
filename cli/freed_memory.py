"""Memory that is free goes back to the system.

The C library keeps what was freed for the next who asks, in an arena for every few threads. An outage fills buffers
once, a restore once, in one arena and then in another: without this a worker's resident memory is for ever the most
that it ever was, which looks like a leak and has to be paid like one.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

EVERY = 30.0
"""Seconds. Giving back takes milliseconds, in a thread, without Python's lock."""


def giver() -> Callable[[], None] | None:
    """What gives back all that is free; None where the C library (musl, macOS) does so by itself or cannot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda: trim(0)


async def give_back() -> None:
    """Until it is cancelled."""
    give = giver()
    while give is not None:
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(give)

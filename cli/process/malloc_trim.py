"""Return of free memory to the system.

The C library keeps what was freed for the next who asks, in an arena for every few threads. An outage fills buffers
once, a restore once, in one arena and then in another: without this a worker's resident memory is for ever the most
that it ever was, which looks like a leak and has to be paid like one. So there are few arenas, large pieces are not in
them, and what is free in them is given back from time to time.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

ARENAS = 2
"""One arena for the main thread and one for all others. glibc's default is up to eight per core, each fragmented."""
LARGE = 256 * 1024
"""Bytes. From this size on a piece comes from the system and goes back the moment it is freed. By itself glibc raises
the limit to the largest piece that was ever freed, up to 32 MB: after one large answer of the broker, buffers of
megabytes lie in the arenas, and what is allocated above them keeps their place when they are gone."""
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h of glibc
EVERY = 30.0
"""Seconds. A trim takes milliseconds, in a thread, without Python's lock."""


def bound_arenas() -> bool:
    """Set the limits for the process, before it has threads. Return False if the C library is not glibc."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return all(set_option(option, value) == 1 for option, value in ((_M_ARENA_MAX, ARENAS), (_M_MMAP_THRESHOLD, LARGE)))


def giver() -> Callable[[], None] | None:
    """Return the function that returns all free memory, or None if the C library (musl, macOS) has none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda: trim(0)


async def give_back() -> None:
    """Trim again and again until cancelled."""
    give = giver()
    while give is not None:
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(give)

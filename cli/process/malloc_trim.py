"""Return of free memory to the operating system.

The C library keeps freed memory in arenas, one for every few threads. An outage or a restore fills large buffers once,
in one arena and later in another. Without this module, the resident memory of a worker stays at its peak, which looks
like a leak. This module limits the number of arenas, allocates large blocks outside of arenas, and periodically returns
the free memory in the arenas.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

ARENAS = 2
"""One arena for the main thread and one for all other threads. glibc's default is up to eight arenas per core, and each
arena is fragmented."""
LARGE = 256 * 1024
"""Block size in bytes from which malloc uses mmap, so that free returns the block immediately. By default glibc raises
this threshold to the largest freed block, up to 32 MB. After one large answer of the broker, buffers of megabytes would
be allocated in the arenas, and later allocations above them would keep the freed space from being returned."""
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h of glibc
EVERY = 30.0
"""Seconds between trims. A trim takes milliseconds, in a thread, without the GIL."""


def bound_arenas() -> bool:
    """Set ARENAS and LARGE for this process, before any thread starts. Return False if the C library is not glibc."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return all(set_option(option, value) == 1 for option, value in ((_M_ARENA_MAX, ARENAS), (_M_MMAP_THRESHOLD, LARGE)))


def giver() -> Callable[[], None] | None:
    """Return the function that gives free memory back, or None if the C library (musl, macOS) has none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda: trim(0)


async def return_free_memory() -> None:
    """Give free memory back every EVERY seconds until cancelled."""
    give = giver()
    while give is not None:
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(give)

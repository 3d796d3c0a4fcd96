"""Iteration over many rows in slices, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from .decision import Rows

SLICE: Final = 0.005
"""Seconds of work before the event loop may run again, including the caller's work on each row."""


async def scan(rows: Rows, partition: int, *, prefix: str = "", after: str = "") -> AsyncIterator[tuple[str, bytes]]:
    """Yield the rows of a partition whose key begins with `prefix` and is greater than `after`, in key order.

    Events are handled between two slices, so a yielded value may be outdated: read the row again before acting on it.
    """
    began = time.perf_counter()
    while page := rows.page(partition, prefix=prefix, after=after):
        for row in page:
            yield row
            if time.perf_counter() - began > SLICE:
                await asyncio.sleep(0)
                began = time.perf_counter()
        after = page[-1][0]

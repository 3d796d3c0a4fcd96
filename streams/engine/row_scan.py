"""Iteration over many rows in slices, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from .handler import Rows

SLICE: Final = 0.005
"""Seconds of work between two turns of the event loop, the caller's work on each row included."""


async def scan(rows: Rows, partition: int, *, prefix: str = "", after: str = "") -> AsyncIterator[tuple[str, bytes]]:
    """Iterate over the rows of a partition whose key begins with `prefix` and is greater than `after`, by key.

    Events go on between two slices. So a value may be older than the row: read the row again before you act on it.
    """
    began = time.perf_counter()
    while page := rows.page(partition, prefix=prefix, after=after):
        for row in page:
            yield row
            if time.perf_counter() - began > SLICE:
                await asyncio.sleep(0)
                began = time.perf_counter()
        after = page[-1][0]

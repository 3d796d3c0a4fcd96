"""Limit on the number of pending appends to a log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

RECORDS = 500
BYTES = 16 * 1024 * 1024
"""Maximum number of pending appends, and maximum bytes of their values."""


class AppendWindow:
    """A bounded set of pending appends. They begin in the order of the calls."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Future[object]] = []
        self._bytes = 0

    async def add(self, append: Awaitable[object], *, size: int = 0) -> None:
        """Begin an append of `size` bytes. When the window is full, wait until all pending appends are durable."""
        self._tasks.append(asyncio.ensure_future(append))
        self._bytes += size
        if len(self._tasks) >= RECORDS or self._bytes >= BYTES:
            await self.durable()

    async def durable(self) -> None:
        """Wait until all pending appends have ended, then raise the first error, if any."""
        tasks, self._tasks, self._bytes = self._tasks, [], 0
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

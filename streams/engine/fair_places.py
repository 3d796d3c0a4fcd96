"""A limit on concurrent calls that tenants share fairly (fair_queue.py), for calls that no event's slot limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .fair_queue import FairQueue


class FairPlaces:
    """A fixed number of places (`Places` of adapters/ports.py).

    A free place goes to the tenant with the fewest places in use.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()

    @asynccontextmanager
    async def place(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for a place and hold it during the block."""
        await self._take(tenant_id)
        try:
            yield
        finally:
            self._give_back(tenant_id)

    async def _take(self, tenant_id: str) -> None:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.push(tenant_id, given)
        self._hand_out()
        try:
            await given
        except BaseException:  # the wait was cancelled, possibly just after the place was assigned
            if not self._queue.remove(tenant_id, given):
                self._give_back(tenant_id)
            raise

    def _give_back(self, tenant_id: str) -> None:
        self._free += 1
        self._queue.release(tenant_id)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (turn := self._queue.pop()) is not None:
            self._free -= 1
            _, given = turn
            if not given.done():
                given.set_result(None)

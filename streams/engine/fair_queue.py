"""Fair shares by tenant: which waiting work gets the next free place.

The tenant with the fewest places in use comes first. Among tenants with equally many, the one that has used least of
the processor comes first (processor_shares.py), and among equals the one that has waited longest at that count. Within
a tenant the order is that of `push`. The module is pure: no clock, no event loop.

These rules always hold, and a property test checks them:
- Work waits only while no place is free. No place is kept for a tenant that has no work.
- A tenant that gets a place held no more places than any other tenant with waiting work. So a tenant that holds less
  than its equal share gets the next free place, after at most one turn of each other tenant with as few places, or
  after turns of such tenants that have used less of the processor since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from .processor_shares import ProcessorShares

W = TypeVar("W")


class FairQueue(Generic[W]):
    """Waiting work of many tenants, and the places that each tenant has in use."""

    def __init__(self, shares: ProcessorShares | None = None) -> None:
        """`shares`: what the tenants have used of the processor. Without it, only places and waiting count."""
        self._waiting: dict[str, deque[W]] = {}
        """Work by tenant; no tenant without work."""
        self._in_use: dict[str, int] = {}
        """Places in use by tenant; no tenant without a place."""
        self._shares = shares
        self._turns: dict[int, list[tuple[float, int, str]]] = {}
        """Heaps of tenants with waiting work by their places in use: virtual time, number of the line-up, tenant."""
        self._place: dict[str, tuple[int, int]] = {}
        """By tenant with waiting work: the heap and the number of its valid entry."""
        self._lined_up = 0
        self._entries = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def in_use(self, tenant: str) -> int:
        """Return how many places a tenant has."""
        return self._in_use.get(tenant, 0)

    def shares(self) -> dict[str, int]:
        """Return the places in use by tenant; no tenant without a place."""
        return dict(self._in_use)

    def push(self, tenant: str, work: W) -> None:
        """Let work wait for a place."""
        waiting = self._waiting.get(tenant)
        if waiting is None:
            waiting = self._waiting[tenant] = deque()
            self._line_up(tenant)
        waiting.append(work)
        self._length += 1

    def pop(self) -> tuple[str, W] | None:
        """Give a place to the tenant whose turn it is. Return tenant and work, None when nothing waits."""
        tenant = self._next()
        if tenant is None:
            return None
        self._leave(tenant)
        waiting = self._waiting[tenant]
        work = waiting.popleft()
        self._length -= 1
        self._in_use[tenant] = self.in_use(tenant) + 1
        if waiting:
            self._line_up(tenant)
        else:
            del self._waiting[tenant]
        return tenant, work

    def join(self, tenant: str, fits: Callable[[W], bool]) -> list[W]:
        """Take more work of a tenant into a place that it has: the next pieces, as long as `fits` says so."""
        waiting = self._waiting.get(tenant)
        joined: list[W] = []
        while waiting and fits(waiting[0]):
            joined.append(waiting.popleft())
        self._length -= len(joined)
        if waiting is not None and not waiting:
            self._leave(tenant)
            del self._waiting[tenant]
        return joined

    def release(self, tenant: str) -> None:
        """Take back a place of a tenant."""
        waits = tenant in self._waiting
        if waits:
            self._leave(tenant)
        left = self._in_use[tenant] - 1
        if left:
            self._in_use[tenant] = left
        else:
            del self._in_use[tenant]
        if waits:
            self._line_up(tenant)

    def remove(self, tenant: str, work: W) -> bool:
        """Let work wait no longer. Return whether it waited."""
        waiting = self._waiting.get(tenant)
        if waiting is None or work not in waiting:
            return False
        waiting.remove(work)
        self._length -= 1
        if not waiting:
            self._leave(tenant)
            del self._waiting[tenant]
        return True

    def clear(self) -> None:
        """Drop all waiting work. Places in use stay in use."""
        self._waiting.clear()
        self._turns.clear()
        self._place.clear()
        self._entries = 0
        self._length = 0

    def _line_up(self, tenant: str) -> None:
        """Let a tenant with waiting work take its place in the order: by places, by processor time, by arrival."""
        self._lined_up += 1
        places, time = self.in_use(tenant), 0.0 if self._shares is None else self._shares.time_of(tenant)
        heappush(self._turns.setdefault(places, []), (time, self._lined_up, tenant))
        self._entries += 1
        self._place[tenant] = (places, self._lined_up)
        if self._entries > 2 * len(self._place) + 64:
            self._sweep()

    def _leave(self, tenant: str) -> None:
        del self._place[tenant]  # its entry is void, and goes when it comes to the front

    def _next(self) -> str | None:
        """Return the tenant whose turn it is, None when none waits."""
        while self._turns:
            places = min(self._turns)
            turns = self._turns[places]
            time, number, tenant = turns[0]
            reached = 0.0 if self._shares is None else self._shares.charged_until(tenant)
            if self._place.get(tenant) != (places, number):
                heappop(turns)
                self._entries -= 1
                if not turns:
                    del self._turns[places]
            elif reached > time:  # it has used the processor since
                heapreplace(turns, (reached, number, tenant))
            else:
                return tenant
        return None

    def _sweep(self) -> None:
        """Drop void entries."""
        for places, turns in list(self._turns.items()):
            valid = [entry for entry in turns if self._place.get(entry[2]) == (places, entry[1])]
            heapify(valid)
            self._turns[places] = valid
            if not valid:
                del self._turns[places]
        self._entries = len(self._place)

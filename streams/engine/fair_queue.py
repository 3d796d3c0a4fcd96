"""Fair shares by tenant: the order in which waiting work gets free places.

The tenant with the fewest places in use comes first. Among tenants with equally many places, the tenant that has used
the least processor time comes first (processor_shares.py). If this time is equal, too, the tenant that has waited
longest with its present number of places comes first. Within a tenant the order of `push` applies. The module is pure:
it uses no clock and no event loop.

These rules always hold, and a property test checks them:
- Work waits only while no place is free. No place is reserved for a tenant without work.
- A tenant that gets a place has no more places than any other tenant with waiting work. So a tenant that has less than
  its equal share waits only for tenants that have no more places than it has. Each of these tenants gets a place before
  it at most once, or several times if the other tenant has used less processor time.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from .processor_shares import ProcessorShares

W = TypeVar("W")


class FairQueue(Generic[W]):
    """Waiting work of many tenants, and the places that each tenant has in use."""

    def __init__(self, shares: ProcessorShares | None = None) -> None:
        """`shares`: the processor time used by each tenant. Without it, only places and waiting time count."""
        self._waiting: dict[str, deque[W]] = {}
        """Waiting work by tenant. Tenants without work have no entry."""
        self._in_use: dict[str, int] = {}
        """Places in use by tenant. Tenants without a place have no entry."""
        self._shares = shares
        self._turns: dict[int, list[tuple[float, int, str]]] = {}
        """Heaps of tenants with waiting work, by places in use. An entry has virtual time, serial number and tenant."""
        self._place: dict[str, tuple[int, int]] = {}
        """The valid heap entry of each tenant with waiting work: places in use (the heap) and serial number."""
        self._lined_up = 0
        self._entries = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def in_use(self, tenant: str) -> int:
        """Return the number of places that a tenant has in use."""
        return self._in_use.get(tenant, 0)

    def shares(self) -> dict[str, int]:
        """Return the places in use by tenant. Tenants without a place are left out."""
        return dict(self._in_use)

    def push(self, tenant: str, work: W) -> None:
        """Add work that waits for a place."""
        waiting = self._waiting.get(tenant)
        if waiting is None:
            waiting = self._waiting[tenant] = deque()
            self._line_up(tenant)
        waiting.append(work)
        self._length += 1

    def pop(self) -> tuple[str, W] | None:
        """Give a place to the next tenant. Return tenant and work, or None when nothing waits."""
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

    def release(self, tenant: str) -> None:
        """Free a place of a tenant."""
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
        """Remove waiting work. Return whether it was waiting."""
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
        """Add a tenant with waiting work to the order: by places, then processor time, then arrival."""
        self._lined_up += 1
        places, time = self.in_use(tenant), 0.0 if self._shares is None else self._shares.time_of(tenant)
        heappush(self._turns.setdefault(places, []), (time, self._lined_up, tenant))
        self._entries += 1
        self._place[tenant] = (places, self._lined_up)
        if self._entries > 2 * len(self._place) + 64:
            self._sweep()

    def _leave(self, tenant: str) -> None:
        del self._place[tenant]  # its heap entry is now void; it is removed when it reaches the front

    def _next(self) -> str | None:
        """Return the next tenant, or None when no tenant waits."""
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
            elif reached > time:  # the tenant has used processor time since the entry was made
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

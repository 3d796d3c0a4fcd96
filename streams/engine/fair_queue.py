"""Fair shares by tenant: which waiting work gets the next free place.

The tenant with the fewest places in use comes first. Among tenants with equally many, the one that has waited longest
at that count comes first. Within a tenant the order is that of `push`. The module is pure: no clock, no event loop.

These rules always hold, and a property test checks them:
- Work waits only while no place is free. No place is kept for a tenant that has no work.
- A tenant that gets a place held no more places than any other tenant with waiting work. So a tenant that holds less
  than its equal share gets the next free place, after at most one turn of each other tenant with as few places.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

W = TypeVar("W")


class FairQueue(Generic[W]):
    """Waiting work of many tenants, and the places that each tenant has in use."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[W]] = {}
        """Work by tenant; no tenant without work."""
        self._in_use: dict[str, int] = {}
        """Places in use by tenant; no tenant without a place."""
        self._turns: dict[int, OrderedDict[str, None]] = {}
        """Tenants with waiting work by their places in use, the next one first; no empty count."""
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
        if not self._turns:
            return None
        count = min(self._turns)
        tenant = next(iter(self._turns[count]))
        self._leave(tenant)
        waiting = self._waiting[tenant]
        work = waiting.popleft()
        self._length -= 1
        self._in_use[tenant] = count + 1
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
        self._length = 0

    def _line_up(self, tenant: str) -> None:
        self._turns.setdefault(self.in_use(tenant), OrderedDict())[tenant] = None

    def _leave(self, tenant: str) -> None:
        count = self.in_use(tenant)
        del self._turns[count][tenant]
        if not self._turns[count]:
            del self._turns[count]

"""Fair shares of processor time by tenant: each tenant has a virtual time, which its work moves forward.

The tenant with the smallest virtual time comes first (start-time fair queueing, Goyal et al. 1996). A tenant that was
idle starts at the virtual time of the current work: it has no credit and no debt. So a tenant that needs less than its
share never waits for the backlog of another tenant. A tenant that used the processor alone is not charged for this time
later. The module is pure: it reads no clock.
"""

from __future__ import annotations

from typing import Final

BYTE_SECONDS: Final = 2e-8
"""Seconds charged per byte of a record, for work outside the event's own steps: in the consumer, in threads and in the
producer. A record of 20 KB is charged 0.4 ms."""
KEPT: Final = 1_024
"""Number of remembered tenants above which idle tenants are removed."""


class ProcessorShares:
    """The virtual times of one process's tenants, in seconds. An idle tenant needs no entry."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._now = 0.0
        """The virtual time of the latest work."""
        self._forget_at = KEPT

    def __len__(self) -> int:
        return len(self._times)

    def time_of(self, tenant: str) -> float:
        """Return the virtual time of a tenant. It never decreases."""
        return max(self._times.get(tenant, 0.0), self._now)

    def charged_until(self, tenant: str) -> float:
        """Return the virtual time that a tenant's own work has reached, 0 for a tenant without an entry."""
        return self._times.get(tenant, 0.0)

    def serve(self, tenant: str) -> None:
        """Record that work of a tenant begins. Idle tenants will start at this tenant's virtual time."""
        self._now = self.time_of(tenant)

    def charge(self, tenant: str, seconds: float) -> None:
        """Move a tenant's virtual time forward by the seconds that it has used."""
        self._times[tenant] = self.time_of(tenant) + seconds
        if len(self._times) > self._forget_at:
            self._times = {each: time for each, time in self._times.items() if time > self._now}
            self._forget_at = max(KEPT, 2 * len(self._times))

"""Fair shares of the processor by tenant: each tenant has a virtual time, which its work moves forward.

The tenant whose virtual time is least comes first (start-time fair queueing, Goyal et al. 1996). A tenant that was idle
starts at the time of the work that is served now: it has saved nothing up, and owes nothing. So a tenant that needs
less than its share never waits for the backlog of another one, and a tenant that was alone is not charged for it later.
The module is pure: it knows no clock.
"""

from __future__ import annotations

from typing import Final

BYTE_SECONDS: Final = 2e-8
"""Seconds that a byte of a record is charged for: work outside the event's own steps, in the consumer, in threads and
in the producer. A record of 20 KB counts as 0.4 ms."""
KEPT: Final = 1_024
"""Tenants that may be remembered before those that are idle are forgotten."""


class ProcessorShares:
    """The virtual times of the tenants of one process, in seconds. An idle tenant needs no memory."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._now = 0.0
        """The virtual time of the work that was served last."""
        self._forget_at = KEPT

    def __len__(self) -> int:
        return len(self._times)

    def time_of(self, tenant: str) -> float:
        """Return the virtual time of a tenant. It never becomes less."""
        return max(self._times.get(tenant, 0.0), self._now)

    def charged_until(self, tenant: str) -> float:
        """Return the virtual time that a tenant's own work has reached, 0 for one that is forgotten."""
        return self._times.get(tenant, 0.0)

    def serve(self, tenant: str) -> None:
        """Note that work of a tenant begins: idle tenants start from its virtual time."""
        self._now = self.time_of(tenant)

    def charge(self, tenant: str, seconds: float) -> None:
        """Move a tenant's virtual time forward by what it has used."""
        self._times[tenant] = self.time_of(tenant) + seconds
        if len(self._times) > self._forget_at:
            self._times = {each: time for each, time in self._times.items() if time > self._now}
            self._forget_at = max(KEPT, 2 * len(self._times))

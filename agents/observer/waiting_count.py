"""Number of waiting turns per tenant in this worker's partitions, limited by a ceiling.

Each partition is assigned to one worker, so only this worker changes the partition's counts. A tenant's ceiling is
divided equally among the partitions, so no worker needs the counts of other workers. The state is in memory; the
sessions' rows are authoritative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...schemas import ids


class WaitingCount:
    """Counter of waiting turns. `share`: maximum per tenant and partition, or None for no limit.

    `changed(tenant, by)` updates a metric.
    """

    def __init__(self, *, share: int | None, changed: Callable[[str, int], None] = lambda tenant_id, by: None) -> None:
        self.share = share
        self._changed = changed
        self._sessions: dict[str, tuple[int, int]] = {}
        """The partition and the number of waiting turns, by session key."""
        self._tenants: Counter[tuple[int, str]] = Counter()
        self._full: set[tuple[int, str]] = set()

    def of(self, partition: int, tenant_id: str) -> int:
        """Return the number of waiting turns of a tenant in a partition."""
        return self._tenants[partition, tenant_id]

    def set(self, session_key: str, partition: int, turns: int) -> None:
        """Set a session's number of waiting turns, as stored in its row."""
        known, before = self._sessions.get(session_key, (partition, 0))
        if (known, before) == (partition, turns):
            return
        tenant_id = ids.split(session_key)[0]
        self._add(known, tenant_id, -before)
        self._add(partition, tenant_id, turns)
        self._changed(tenant_id, turns - before)
        if turns:
            self._sessions[session_key] = (partition, turns)
        else:
            self._sessions.pop(session_key, None)

    def has_room(self, partition: int, tenant_id: str) -> bool:
        """Return whether one more turn of the tenant may wait in the partition."""
        if self.share is None or self.of(partition, tenant_id) < self.share:
            self._full.discard((partition, tenant_id))
            return True
        return False

    def is_first_over(self, partition: int, tenant_id: str) -> bool:
        """Return whether this is the first turn refused since there was room. Call it once per refused turn."""
        is_first = (partition, tenant_id) not in self._full
        self._full.add((partition, tenant_id))
        return is_first

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the sessions of all other partitions."""
        for key in [key for key, (partition, _) in self._sessions.items() if partition not in partitions]:
            self.set(key, self._sessions[key][0], 0)
        self._full = {each for each in self._full if each[0] in partitions}

    def _add(self, partition: int, tenant_id: str, turns: int) -> None:
        self._tenants[partition, tenant_id] += turns
        if not self._tenants[partition, tenant_id]:
            del self._tenants[partition, tenant_id]

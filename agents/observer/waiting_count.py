"""How many turns of each tenant wait in this worker's partitions, and whether one more may.

A partition has one owner, so its count has one writer. A tenant's ceiling is shared out evenly among the partitions:
no worker needs to know what waits elsewhere. In memory; the sessions' rows have the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...schemas import ids


class WaitingCount:
    """`share`: waiting turns of a tenant in a partition, at most; None: any number. `changed(tenant, by)`: a metric."""

    def __init__(self, *, share: int | None, changed: Callable[[str, int], None] = lambda tenant_id, by: None) -> None:
        self.share = share
        self._changed = changed
        self._sessions: dict[str, tuple[int, int]] = {}
        """By session key: the partition, and the turns that wait."""
        self._tenants: Counter[tuple[int, str]] = Counter()
        self._full: set[tuple[int, str]] = set()

    def of(self, partition: int, tenant_id: str) -> int:
        """Return how many turns of a tenant wait in a partition."""
        return self._tenants[partition, tenant_id]

    def set(self, session_key: str, partition: int, turns: int) -> None:
        """Note how many turns of a session wait, as its row says."""
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
        """Whether one more turn of the tenant may wait in the partition."""
        if self.share is None or self.of(partition, tenant_id) < self.share:
            self._full.discard((partition, tenant_id))
            return True
        return False

    def is_first_over(self, partition: int, tenant_id: str) -> bool:
        """Whether this is the first turn since there was room that may not wait. It is asked once for each turn."""
        is_first = (partition, tenant_id) not in self._full
        self._full.add((partition, tenant_id))
        return is_first

    def retain(self, partitions: frozenset[int]) -> None:
        """Forget the sessions of all other partitions."""
        for key in [key for key, (partition, _) in self._sessions.items() if partition not in partitions]:
            self.set(key, self._sessions[key][0], 0)
        self._full = {each for each in self._full if each[0] in partitions}

    def _add(self, partition: int, tenant_id: str, turns: int) -> None:
        self._tenants[partition, tenant_id] += turns
        if not self._tenants[partition, tenant_id]:
            del self._tenants[partition, tenant_id]

"""The erased users in force in a process, and the one check whether an event of an erased user counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from ..schemas import ids
from ..schemas.erasures import ErasureMarker

_hash_of = lru_cache(100_000)(ids.user_hash)


class ErasedUsers:
    """The markers of erased users, by the hash of the user."""

    def __init__(self) -> None:
        self._markers: dict[str, ErasureMarker] = {}

    def set(self, user_hash: str, marker: ErasureMarker) -> bool:
        """Put a marker in force. Return whether it is new."""
        is_new = self._markers.get(user_hash) != marker
        self._markers[user_hash] = marker
        return is_new

    def open(self) -> tuple[ErasureMarker, ...]:
        """Return the markers of erasures that are not completed."""
        return tuple(each for each in self._markers.values() if each.state == "open")

    def marker(self, tenant_id: str, user_id: str) -> ErasureMarker | None:
        return self._markers.get(_hash_of(tenant_id, user_id)) if self._markers else None

    def is_open(self, tenant_id: str, user_id: str, erasure_id: str) -> bool:
        """Return whether this process knows the open marker of an erasure."""
        marker = self.marker(tenant_id, user_id)
        return marker is not None and marker.state == "open" and marker.erasure_id == erasure_id

    def ignores(self, tenant_id: str, user_id: str, times: Iterable[datetime | None]) -> bool:
        """Return whether an event of this user is ignored. `times`: the times at which it happened and was written.

        While the erasure runs, every event is ignored. Later, an event is ignored if one of its times is not after the
        end of the erasure: then it happened before, however late it arrives.
        """
        marker = self.marker(tenant_id, user_id)
        if marker is None:
            return False
        return marker.state == "open" or any(at is not None and at <= marker.at for at in times)

"""Scan of every collection, table and compacted topic for one user. It reads each record of the user's tenant."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from ...adapters.ports import Payload, VectorStore
from ...memory.user_traces import UserTraces, decoded_json
from ...schemas import ids
from ...schemas.collections import BUDGETS, COLLECTIONS, FACTS, GROUPS
from ...schemas.erasures import ErasedPlace
from ...schemas.row_keys import INDEX, partition_key
from ...schemas.topics import FACTS as FACTS_TOPIC
from ...schemas.topics import PARKED, STAGES, StageName, changelog_of
from ...streams.log.markers import OWN_KEYS
from ...streams.log.port import Log, Record

PAGE: Final = 1_000


@dataclass(slots=True)
class UserRecords:
    """Records of a user, found by a scan."""

    places: dict[str, ErasedPlace] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    """Ids of the user's sessions."""
    owners: set[str] = field(default_factory=set)
    """Keys of other owners whose memory has something of the user."""
    rows: dict[tuple[StageName, str], list[str]] = field(default_factory=dict)
    """Keys of rows that name the user, by stage and key of the lane."""
    texts: set[str] = field(default_factory=set)
    """Content hashes of the user's texts."""
    unnamed: dict[str, set[str]] = field(default_factory=dict)
    """Sessions of evidence that does not name its user, by key of an owner that is not a user. Only facts of earlier
    versions have such evidence."""
    others: set[str] = field(default_factory=set)
    """The sessions in `unnamed` whose id another user has, too."""

    @property
    def sessions_of_evidence(self) -> set[str]:
        """Sessions by which unnamed evidence is the user's. An id that two users have proves nothing."""
        return self.sessions & set().union(*self.unnamed.values()) - self.others

    @property
    def left(self) -> int:
        return sum(place.with_ids for place in self.places.values())

    def count(self, place: str, *, scanned: int = 0, with_ids: int = 0, with_texts: int = 0) -> None:
        before = self.places.get(place, ErasedPlace(place=place))
        self.places[place] = before.model_copy(
            update={
                "scanned": before.scanned + scanned,
                "with_ids": before.with_ids + with_ids,
                "with_texts": before.with_texts + with_texts,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScan:
    """A scan for one user of a tenant."""

    store: VectorStore
    log: Log
    tenant_id: str
    traces: UserTraces

    async def run(self) -> UserRecords:
        """Read everything once. Raises Transient."""
        found = UserRecords()
        names = sorted((spec.name for spec in COLLECTIONS if spec.name != BUDGETS), key=lambda name: name != FACTS)
        for name in names:
            if await self.store.exists(name):
                await self._collection(name, found)
        for stage in STAGES:
            changelog = changelog_of(stage)
            if changelog is not None:
                await self._table(stage, changelog.name, found)
        for topic in (FACTS_TOPIC, PARKED):
            await self._compacted(topic.name, found)
        for owner, sessions in found.unnamed.items():
            if sessions & found.sessions_of_evidence:
                found.owners.add(owner)
        return found

    # ------------------------------------------------------------------------------------------------ store
    async def _collection(self, collection: str, found: UserRecords) -> None:
        found.count(collection)
        place: str | None = None
        while True:
            points = await self.store.select(collection, tenant_id=self.tenant_id, limit=PAGE + 1, from_id=place)
            for each in points[:PAGE]:
                self._point(collection, each.payload, found)
            if len(points) <= PAGE:
                return
            place = points[PAGE].id

    def _point(self, collection: str, payload: Payload, found: UserRecords) -> None:
        named = self.traces.names(payload)
        found.count(collection, scanned=1, with_ids=named, with_texts=self.traces.has_text(payload))
        owner_key = payload.get("owner_key")
        shared = isinstance(owner_key, str) and ids.split(owner_key)[1] != "user"
        if collection == FACTS and shared and (unnamed := _unnamed_sessions(payload)):
            found.unnamed.setdefault(str(owner_key), set()).update(unnamed)
        session_id = payload.get("session_id")
        if not self._is_of_user(payload):
            found.others |= {str(session_id)} & set().union(*found.unnamed.values())
        if not named:
            return
        if isinstance(session_id, str) and self._is_of_user(payload):
            found.sessions.add(session_id)
        if shared and (self._is_of_user(payload) or collection in (FACTS, GROUPS)):
            found.owners.add(str(owner_key))
        if self._is_of_user(payload) or not shared:
            found.texts |= set(self.traces.texts_of(payload))

    def _is_of_user(self, payload: Payload) -> bool:
        user_id = payload.get("user_id")
        return isinstance(user_id, str) and self.traces.is_user(user_id)

    # ------------------------------------------------------------------------------------------------ log
    async def _table(self, stage: StageName, changelog: str, found: UserRecords) -> None:
        """Read a stage's changelog and find the rows that name the user in the key or the value."""
        place = f"{stage} table"
        for key, (named, text) in (await self._latest(changelog)).items():
            found.count(place, scanned=1, with_ids=named, with_texts=text)
            lane = partition_key(key)
            if not named or lane is None:
                continue
            rows = found.rows.setdefault((stage, lane), [])
            if stage == "observer":
                _, user_id, session_id = ids.split(lane)
                if self.traces.is_user(user_id):
                    found.sessions.add(session_id)
                    rows.append(key)
                continue
            if self.traces.user_of_key(lane) is None:
                found.owners.add(lane)
            if self.traces.user_of_key(key) is not None:
                rows.append(key)
                if (session := _session_of(key)) is not None:
                    found.sessions.add(session)
        found.count(place)

    async def _compacted(self, topic: str, found: UserRecords) -> None:
        for named, text in (await self._latest(topic)).values():
            found.count(topic, scanned=1, with_ids=named, with_texts=text)
        found.count(topic)

    async def _latest(self, topic: str) -> Mapping[str, tuple[bool, bool]]:
        """Return for the last record of each key of the tenant whether it names the user and has one of the texts."""
        latest: dict[tuple[int, str], tuple[bool, bool]] = {}
        if await self.log.partitions(topic) is None:
            return {}
        async with aclosing(self.log.read(topic)) as records:
            async for record in records:
                key = (record.key or b"").decode("utf-8", "replace")
                if not self._is_of_tenant(key):
                    continue
                at = record.position.partition, key
                if record.value is None:
                    latest.pop(at, None)
                else:
                    latest[at] = self._traces_of(key, record)
        return {key: traces for (_, key), traces in latest.items()}

    def _is_of_tenant(self, key: str) -> bool:
        if key.startswith(OWN_KEYS):
            return False
        parts = key.rpartition(INDEX)[2].split("/")
        first = ids.encode(self.tenant_id)
        return parts[0] == first or (len(parts) > 1 and parts[1] == first)

    def _traces_of(self, key: str, record: Record) -> tuple[bool, bool]:
        value: Any = decoded_json(record.value)
        return self.traces.user_of_key(key) is not None or self.traces.names(value), self.traces.has_text(value)


def _session_of(key: str) -> str | None:
    """Return the session of a row with the key `<owner key>/<session key>`."""
    parts = key.rpartition(INDEX)[2].split("/")
    return ids.split("/".join(parts))[5] if len(parts) == 6 else None


def _unnamed_sessions(payload: Payload) -> set[str]:
    """Return the sessions of evidence that does not name its user."""
    evidence = payload.get("evidence")
    pieces = [each for each in evidence if isinstance(each, dict)] if isinstance(evidence, list) else []
    unnamed = (each for each in pieces if each.get("user_id") is None and each.get("command_id") is None)
    return {str(each["session_id"]) for each in unnamed if "session_id" in each}

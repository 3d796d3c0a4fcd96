"""Origin of a fact: its versions, the decisions, the observations, and the turns with their exact words.

The current state comes from Qdrant, the past from the log. Topics delete records after their retention, so the history
may start later than the fact. Parts that were not read within the limits (bounded_log_reads.py) are listed in
`missing`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from qdrant_client import models

from ..adapters.ports import VectorStore
from ..adapters.vectors.conditions import any_of, equals
from ..schemas import ids
from ..schemas.base import Contract
from ..schemas.collections import FACTS, TURNS
from ..schemas.errors import Transient
from ..schemas.facts import Fact, FactUpdated
from ..schemas.observations import AppliedPolicy, Observation, Observed, OverCap, TokenUsage, TurnCut
from ..schemas.topics import FACTS as FACTS_TOPIC
from ..schemas.topics import FACTS_UPDATED, OBSERVATIONS
from ..schemas.turns import Sensitivity, up_to
from ..schemas.working_set import StoredMessage
from ..streams.log.port import Log, Record
from .bounded_log_reads import BoundedLogReads, FormerCounts, LogPolicy
from .deadline import UnansweredPart
from .paging import CURSOR_MAX
from .record_reader import RecordReader, Sees, said_in_order, sees_all

VERSIONS_DEFAULT = 50
VERSIONS_MAX = 200
NAMED_MAX = 256
"""Maximum number of observations in a trace. Older observations are omitted."""
C = TypeVar("C", bound=Contract)


@dataclass(frozen=True, slots=True)
class FactRef:
    """A fact, and the caller's permissions: visible owners and the highest sensitivity. Both are checked against the
    fact before its sources are read."""

    tenant_id: str
    fact_id: str
    sees: Sees = sees_all
    ceiling: Sensitivity = "internal"

    def may_show(self, sensitivity: Sensitivity) -> bool:
        return sensitivity in up_to(self.ceiling)


@dataclass(frozen=True, slots=True)
class FactHistory:
    """The changes of a fact, oldest first. `next`: cursor of the next page."""

    fact: Fact
    events: tuple[FactUpdated, ...]
    missing: tuple[UnansweredPart, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """An observation with its source turn."""

    user_id: str
    session_id: str
    turn_id: str
    observation: Observation
    applied: AppliedPolicy | None = None
    """The changes that the tenant's policy or the agent's persona made for the turn."""
    cut: TurnCut | None = None
    """The part of the turn that the model did not see."""
    over_cap: OverCap | None = None
    """Statements of the turn that a cap dropped."""
    usage: TokenUsage | None = None
    """Tokens of the model call. Only the first turn of a call has them."""

    @property
    def boosted(self) -> bool:
        """True when the policy raised the observation's importance above the model's value."""
        return self.applied is not None and self.observation.observation_id in self.applied.boosted


@dataclass(frozen=True, slots=True)
class ProvenanceChain:
    """All sources of a fact, each list oldest first, and its newest 200 changes."""

    fact: Fact
    events: tuple[FactUpdated, ...]
    observations: tuple[SourceTurn, ...]
    turns: tuple[StoredMessage, ...]
    missing: tuple[UnansweredPart, ...] = ()
    turns_gone: tuple[tuple[str, str], ...] = ()
    """Turns of the evidence without any stored message, as pairs of session id and turn id. A message that the caller
    may not see counts as stored."""

    def payload(self) -> dict[str, JsonValue]:
        """Encode the chain for the output of `memstream trace --json`."""
        return {
            "fact": self.fact.to_payload(),
            "versions": [event.fact.to_payload() for event in self.events],
            "decisions": [
                {
                    "version": event.fact.version,
                    "event_id": event.event_id,
                    "action": event.action,
                    "at": event.to_payload()["at"],
                    "reason": event.reason,
                    "decision": event.decision.to_payload() if event.decision is not None else None,
                    "cause": event.cause.to_payload(),
                }
                for event in self.events
            ],
            "observations": [
                seen.observation.to_payload()
                | {"user_id": seen.user_id, "session_id": seen.session_id, "turn_id": seen.turn_id}
                | {"applied": None if seen.applied is None else seen.applied.to_payload()}
                | {"cut": None if seen.cut is None else seen.cut.to_payload()}
                | {"over_cap": None if seen.over_cap is None else seen.over_cap.to_payload()}
                for seen in self.observations
            ],
            "turns": [message.to_payload() for message in self.turns],
        }


class FactTracer:
    """The trace service. One instance serves concurrent reads. Raises Transient when the store does not answer."""

    def __init__(self, *, store: VectorStore, log: Log, policy: LogPolicy | None = None) -> None:
        self._store = store
        self._log = log
        self._policy = policy or LogPolicy()
        self._reading = RecordReader(store=store)
        self._former = FormerCounts(log)

    async def fact(self, ref: FactRef) -> Fact | None:
        """Return the fact as stored in Qdrant. When the collection does not exist (before a rebuild), return the fact
        from memory.facts."""
        found = await self._reading.fact(ref.tenant_id, ref.fact_id, sees=ref.sees, ceiling=ref.ceiling)
        if found is not None or await self._store.exists(FACTS):
            return found
        fact = await self._published(ref)
        if fact is None or fact.tenant_id != ref.tenant_id or not ref.sees(fact.owner):
            return None
        return fact if ref.may_show(fact.sensitivity) else None

    async def history(
        self, ref: FactRef, *, limit: int = VERSIONS_DEFAULT, cursor: str | None = None
    ) -> FactHistory | None:
        """Return one page of the fact's changes, or None when the caller may see no such fact.

        Raises ValueError when the limit or the cursor is invalid.
        """
        if not 1 <= limit <= VERSIONS_MAX:
            raise ValueError(f"the limit must be 1 to {VERSIONS_MAX} versions, not {limit}")
        start = _Start.read(cursor, ref.fact_id)
        fact = await self.fact(ref)
        if fact is None:
            return None
        reads = BoundedLogReads(self._log, self._policy, self._former)
        changes = await self._changes(ref, fact, reads, first=start.version, limit=limit, begin=start.offset)
        after = start.version + limit
        beyond = None
        if after <= fact.version and not reads.missing:
            beyond = _Start(after, changes.behind).cursor(ref.fact_id)
        return FactHistory(fact, changes.shown(ref), tuple(reads.missing), beyond)

    async def trace(self, ref: FactRef) -> ProvenanceChain | None:
        """Return all sources of the fact, or None when the caller may see no such fact."""
        fact = await self.fact(ref)
        if fact is None:
            return None
        reads = BoundedLogReads(self._log, self._policy, self._former)
        newest = max(1, fact.version - VERSIONS_MAX + 1)
        events = (await self._changes(ref, fact, reads, first=newest, limit=VERSIONS_MAX)).shown(ref)
        observations = await self._observations(ref, fact, events, reads)
        turns, gone = await self._turns(ref, fact, observations)
        return ProvenanceChain(fact, events, observations, turns, tuple(reads.missing), gone)

    # -------------------------------------------------------------------------------------------- within
    async def _published(self, ref: FactRef) -> Fact | None:
        """Read the fact's newest version from memory.facts, or None after a tombstone.

        Raises Transient when the partition was not read to its end.
        """
        newest: list[Fact] = []

        def take(record: Record) -> bool:
            fact = _read(Fact, record)
            if record.value is None:
                newest.clear()
            elif fact is not None and (not newest or fact.version >= newest[-1].version):
                newest[:] = [fact]
            return False

        reads = BoundedLogReads(self._log, self._policy, self._former)
        key = ids.fact_key(ref.tenant_id, ref.fact_id).encode()
        await reads.of_key("fact", FACTS_TOPIC.name, key, take=take)
        if reads.missing:
            raise Transient("broker", f"the store has no fact {ref.fact_id}, and {reads.missing[0].why}")
        return newest[0] if newest else None

    async def _changes(
        self, ref: FactRef, fact: Fact, reads: BoundedLogReads, *, first: int, limit: int, begin: int | None = None
    ) -> _Changes:
        changes = _Changes(fact, first, min(first + limit - 1, fact.version))
        if first <= fact.version:
            key = fact.owner.key(ref.tenant_id).encode()
            await reads.of_key(
                "history",
                FACTS_UPDATED.name,
                key,
                take=changes.take,
                whole=changes.whole,
                since=fact.recorded_at,
                begin=begin,
            )
        return changes

    async def _observations(
        self, ref: FactRef, fact: Fact, events: Iterable[FactUpdated], reads: BoundedLogReads
    ) -> tuple[SourceTurn, ...]:
        caused = [each for event in events for each in event.cause.observation_ids]
        said = [each.observation_id for each in fact.evidence if each.command_id is None]
        named = list(dict.fromkeys([*said, *caused]))[-NAMED_MAX:]
        if not named:
            return ()
        seen: dict[str, SourceTurn] = {}
        wanted = frozenset(named)

        def take(record: Record) -> bool:
            observed = _read(Observed, record)
            if observed is not None and observed.tenant_id == ref.tenant_id:
                for each in observed.observations:
                    if each.observation_id in wanted:
                        cause = observed.cause
                        seen[each.observation_id] = SourceTurn(
                            observed.user_id,
                            observed.session_id,
                            observed.turn_id,
                            each,
                            cause.applied,
                            cause.cut,
                            cause.over_cap,
                            cause.usage,
                        )
            return whole()

        def whole() -> bool:
            return len(seen) == len(wanted)

        key = fact.owner.key(ref.tenant_id).encode()
        since = min([fact.recorded_at, *(each.occurred_at for each in fact.evidence)])
        await reads.of_key("observations", OBSERVATIONS.name, key, take=take, whole=whole, since=since)
        return tuple(each for each in seen.values() if ref.may_show(each.observation.sensitivity))

    async def _turns(
        self, ref: FactRef, fact: Fact, observations: Iterable[SourceTurn]
    ) -> tuple[tuple[StoredMessage, ...], tuple[tuple[str, str], ...]]:
        """Read the turns in the fact's evidence. Return their messages, and the turns without any stored message.

        Two users of one group may use the same session id, so the user is compared as well.
        """
        user_of: dict[tuple[str, str], str | None] = {
            (each.session_id, each.turn_id): fact.owner.id if fact.owner.scope == "user" else None
            for each in fact.evidence
            if each.command_id is None
        }
        user_of |= {(seen.session_id, seen.turn_id): seen.user_id for seen in observations}
        if not user_of or not await self._store.exists(TURNS):
            return (), tuple(sorted(user_of))
        sessions, turns = zip(*user_of, strict=True)
        conditions: list[models.Condition] = [
            equals("owner_key", fact.owner.key(ref.tenant_id)),
            any_of("session_id", sorted(set(sessions))),
            any_of("turn_id", sorted(set(turns))),
        ]
        found = await self._store.select(TURNS, tenant_id=ref.tenant_id, where=models.Filter(must=conditions))
        messages = (StoredMessage.from_payload(each.payload) for each in found)
        kept = [each for each in messages if _is_of(each, user_of)]
        gone = set(user_of) - {(each.session_id, each.turn_id) for each in kept}
        own = [each for each in kept if ref.may_show(each.sensitivity)]
        return tuple(sorted(own, key=said_in_order)), tuple(sorted(gone))


class _Changes:
    """Collector of a fact's events from the log: one event per requested version."""

    def __init__(self, fact: Fact, first: int, last: int) -> None:
        self._fact = fact
        self._wanted = range(first, last + 1)
        self._events: dict[int, FactUpdated] = {}
        self.behind: int | None = None
        """The offset after the last collected event."""

    def take(self, record: Record) -> bool:
        """Collect the event of one record. Return True at the last requested version. Versions are in order in the log,
        so no later record is needed."""
        event = _read(FactUpdated, record)
        if event is None or (event.tenant_id, event.fact.fact_id) != (self._fact.tenant_id, self._fact.fact_id):
            return False
        if event.fact.version in self._wanted:
            self._events.setdefault(event.fact.version, event)
            self.behind = record.position.offset + 1
        return event.fact.version >= self._wanted[-1]

    def whole(self) -> bool:
        return len(self._events) == len(self._wanted)

    def shown(self, ref: FactRef) -> tuple[FactUpdated, ...]:
        ordered = (event for _, event in sorted(self._events.items()))
        return tuple(
            event
            for event in ordered
            if all(ref.may_show(each.sensitivity) for each in (event.fact, event.before) if each is not None)
        )


@dataclass(frozen=True, slots=True)
class _Start:
    """Start of a history page: a version, and the offset at or before its event, if known."""

    version: int = 1
    offset: int | None = None

    def cursor(self, fact_id: str) -> str:
        return base64.urlsafe_b64encode(json.dumps([fact_id, self.version, self.offset]).encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, cursor: str | None, fact_id: str) -> _Start:
        if cursor is None:
            return cls()
        wrong = ValueError("this cursor does not belong to the history of this fact; start without a cursor")
        if len(cursor) > CURSOR_MAX or not cursor.isascii():
            raise wrong
        try:
            of, version, offset = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        except (binascii.Error, ValueError, TypeError) as error:
            raise wrong from error
        if of != fact_id or not _counts(version) or not (offset is None or _counts(offset)) or version == 0:
            raise wrong
        return cls(version, offset)


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _read(contract: type[C], record: Record) -> C | None:
    """Decode a record. Return None for a tombstone and for a record that memstream did not write."""
    if record.value is None:
        return None
    try:
        return contract.read(record.value)
    except ValidationError:
        return None


def _is_of(message: StoredMessage, user_of: dict[tuple[str, str], str | None]) -> bool:
    place = (message.session_id, message.turn_id)
    return place in user_of and user_of[place] in (None, message.user_id)

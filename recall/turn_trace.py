"""Trace of a turn: its words, its stage, and the outcome of each of its statements.

The words come from Qdrant, and the observer's record comes from the log. The consumer groups' committed offsets show
whether the observer has read the turn and the reflector its record. The facts come from Qdrant, and the reasons of
their changes from the log. Older parts of the log may be deleted; then the stage is `unknown`, or a reason is general.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal, TypeVar

from pydantic import JsonValue, ValidationError
from qdrant_client import models

from ..adapters.ports import VectorStore
from ..adapters.vectors.conditions import any_of, equals
from ..memory.policies import MemoryPolicy
from ..memory.tenant_policies import TurnPolicies
from ..schemas import ids
from ..schemas.base import Contract
from ..schemas.collections import FACTS, TURNS
from ..schemas.facts import FactUpdated, StoredFact
from ..schemas.front_door.framing import peek
from ..schemas.observations import Observation, Observed
from ..schemas.topics import FACTS_UPDATED, OBSERVATIONS, StageName, dead_letters_of, group_of
from ..schemas.topics import TURNS as TURNS_TOPIC
from ..schemas.turns import Sensitivity, up_to
from ..schemas.working_set import StoredMessage
from ..streams.log.port import Log, Position, Record
from .bounded_log_reads import BoundedLogReads, FormerCounts, LogPolicy
from .deadline import UnansweredPart
from .record_reader import Sees, sees_all
from .statement_outcomes import StatementOutcome, TurnFacts, statement_outcomes

C = TypeVar("C", bound=Contract)
TurnStage = Literal["unknown", "unread", "waiting", "refused", "observed", "reflected"]
"""Progress of a turn. `unread`: the observer has not reached it. `waiting`: the observer keeps it. `refused`: it is a
dead letter."""


@dataclass(frozen=True, slots=True)
class TurnRef:
    """The turns with one id, optionally of one session or user, and the caller's permissions."""

    tenant_id: str
    turn_id: str
    session_id: str | None = None
    user_id: str | None = None
    ceiling: Sensitivity = "internal"
    sees: Sees = sees_all
    since: datetime | None = None
    """A time before the turn was sent; None reads the log from its beginning."""

    def names(self, user_id: str, session_id: str, turn_id: str) -> bool:
        return turn_id == self.turn_id and self.session_id in (None, session_id) and self.user_id in (None, user_id)

    def may_show(self, sensitivity: Sensitivity) -> bool:
        return sensitivity in up_to(self.ceiling)


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One turn. `observed` is None when the log has no record of it."""

    user_id: str
    session_id: str
    turn_id: str
    messages: tuple[StoredMessage, ...]
    observed: Observed | None
    observations: tuple[Observation, ...] = ()
    """The observations that the caller may see."""
    stage: TurnStage = "unknown"
    why: str | None = None
    """For a turn that is not observed: the reason as a sentence."""
    statements: tuple[StatementOutcome, ...] = ()

    @property
    def unlisted(self) -> int:
        """The number of refused statements that the record does not list."""
        if self.observed is None:
            return 0
        over, refused = self.observed.cause.over_cap, self.observed.cause.refused
        unlisted = 0 if over is None else over.observations - len(over.statements)
        return unlisted + (0 if refused is None else refused.statements - len(refused.listed))

    def payload(self) -> dict[str, JsonValue]:
        """Encode the turn for the output of `memstream trace --turn --json`."""
        record = self.observed
        return {
            "user_id": self.user_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "messages": [each.to_payload() for each in self.messages],
            "stage": self.stage,
            "why": self.why,
            "statements": [{**asdict(each), "closes": list(each.closes)} for each in self.statements],
            "observed": record is not None,
            "turn_number": None if record is None else record.turn_number,
            "observations": [each.to_payload() for each in self.observations],
            "cause": None if record is None else record.cause.to_payload(),
        }


@dataclass(frozen=True, slots=True)
class TurnOutcomes:
    """The turns with one id, sorted by user and session."""

    turns: tuple[TurnOutcome, ...]
    missing: tuple[UnansweredPart, ...] = ()


class TurnTracer:
    """Reader of turns and their outcomes. Raises Transient when the store does not answer."""

    def __init__(
        self, *, store: VectorStore, log: Log, deployment: MemoryPolicy, policy: LogPolicy | None = None
    ) -> None:
        """`deployment`: the deployment's memory policy, which a turn's record may override."""
        self._store = store
        self._log = log
        self._policy = policy or LogPolicy()
        self._deployment = deployment
        self._policies = TurnPolicies(deployment)
        self._former = FormerCounts(log)

    async def trace(self, ref: TurnRef) -> TurnOutcomes:
        """Return the outcomes of the turns. A turn without stored messages is found only when `ref` names its user,
        because the user is part of the key in the log."""
        reads = BoundedLogReads(self._log, self._policy, self._former)
        messages = await self._messages(ref)
        owners = {each.owner_key for each in messages}
        if ref.user_id is not None:
            owners.add(ids.owner_key(ref.tenant_id, "user", ref.user_id))
        records: dict[tuple[str, str], _Seen] = {}

        def take(record: Record) -> bool:
            found = _read(Observed, record)
            if (
                found is not None
                and ref.names(found.user_id, found.session_id, found.turn_id)
                and ref.sees(found.owner)
            ):
                records.setdefault((found.user_id, found.session_id), _Seen(found, record))
            return False

        def whole() -> bool:
            return ref.since is not None

        for owner_key in sorted(owners):
            await reads.of_key(
                "observations", OBSERVATIONS.name, owner_key.encode(), take=take, whole=whole, since=ref.since
            )
        places = {*((each.user_id, each.session_id) for each in messages), *records}
        if ref.user_id is not None and ref.session_id is not None:
            places.add((ref.user_id, ref.session_id))
        found = [await self._outcome(ref, place, messages, records.get(place), reads) for place in sorted(places)]
        return TurnOutcomes(tuple(each for each in found if each is not None), tuple(reads.missing))

    async def _outcome(
        self,
        ref: TurnRef,
        place: tuple[str, str],
        messages: Sequence[StoredMessage],
        seen: _Seen | None,
        reads: BoundedLogReads,
    ) -> TurnOutcome | None:
        """Return the outcome of one turn; None when nothing is known about it."""
        said = [each for each in messages if (each.user_id, each.session_id) == place]
        shown = tuple(each for each in said if ref.may_show(each.sensitivity))
        if seen is None:
            stage, why = await self._unobserved(ref, place, reads)
            if stage == "unknown" and not said:
                return None
            return TurnOutcome(*place, ref.turn_id, shown, None, stage=stage, why=why)
        observed = seen.observed
        reflected = await self._is_committed("reflector", seen.record.position)
        turn = await self._facts(observed, seen.record, reads)
        return TurnOutcome(
            *place,
            ref.turn_id,
            shown,
            observed,
            tuple(each for each in observed.observations if ref.may_show(each.sensitivity)),
            "reflected" if reflected else "observed",
            statements=statement_outcomes(
                observed,
                turn,
                self._policies.of(observed) or self._deployment,
                reflected=reflected,
                ceiling=ref.ceiling,
            ),
        )

    async def _facts(self, observed: Observed, record: Record, reads: BoundedLogReads) -> TurnFacts:
        """Read the facts with an observation of the turn as evidence, and the events that concern them."""
        named = frozenset(each.observation_id for each in observed.observations)
        if not named:
            return TurnFacts({})
        rows: list[StoredFact] = []
        if await self._store.exists(FACTS):
            condition = any_of("evidence[].observation_id", sorted(named))
            found = await self._store.select(FACTS, tenant_id=observed.tenant_id, where=models.Filter(must=[condition]))
            rows = [StoredFact.from_payload(each.payload) for each in found]
        facts = {each: [row for row in rows if any(it.observation_id == each for it in row.evidence)] for each in named}
        known = frozenset(row.fact_id for row in rows)
        events: list[FactUpdated] = []

        def take(record: Record) -> bool:
            event = _read(FactUpdated, record)
            if event is not None and (event.fact.fact_id in known or not named.isdisjoint(event.cause.observation_ids)):
                events.append(event)
            return False

        owner_key = observed.owner.key(observed.tenant_id)
        await reads.of_key("events", FACTS_UPDATED.name, owner_key.encode(), take=take, since=record.written_at)
        return TurnFacts(facts, events)

    async def _unobserved(
        self, ref: TurnRef, place: tuple[str, str], reads: BoundedLogReads
    ) -> tuple[TurnStage, str | None]:
        """Return the stage of a turn without a record of the observer, and the reason."""
        key = ids.session_key(ref.tenant_id, *place).encode()
        letters: list[Record] = []
        turns: list[Record] = []

        def collect(into: list[Record]) -> Callable[[Record], bool]:
            def take(record: Record) -> bool:
                if _turn_id(record) == ref.turn_id:
                    into.append(record)
                return False

            return take

        dead = dead_letters_of(TURNS_TOPIC)
        for part, topic, into in (("dead letters", dead, letters), ("turns", TURNS_TOPIC, turns)):
            await reads.of_key(part, topic.name, key, take=collect(into), since=ref.since)
        if letters and (not turns or _original_offset(letters[-1]) == turns[-1].position.offset):
            headers = {name: value.decode("utf-8", "replace") for name, value in letters[-1].headers}
            reason = headers.get("memstream-reason", "refused")
            return "refused", f"it is a dead letter, {reason}: {headers.get('kafka_dlt-exception-message', '')}"
        if not turns:
            return (
                "unknown",
                "the log has no record of it: it did not arrive, or the record is older than the retention",
            )
        if await self._is_committed("observer", turns[-1].position):
            return "waiting", (
                "the observer keeps it until its model answers, its budget allows a call, or its session has enough "
                "turns (observe.unobserved_tokens)"
            )
        return "unread", "the observer has not reached it yet"

    async def _is_committed(self, stage: StageName, position: Position) -> bool:
        """Return whether a stage has handled the record at a position."""
        committed = await self._log.committed(group_of(stage), position.topic)
        done = committed[position.partition] if position.partition < len(committed) else None
        return done is not None and done > position.offset

    async def _messages(self, ref: TurnRef) -> list[StoredMessage]:
        if not await self._store.exists(TURNS):
            return []
        named = {"session_id": ref.session_id, "user_id": ref.user_id}
        conditions: list[models.Condition] = [
            equals("turn_id", ref.turn_id),
            *(equals(name, value) for name, value in named.items() if value is not None),
        ]
        found = await self._store.select(TURNS, tenant_id=ref.tenant_id, where=models.Filter(must=conditions))
        return sorted((StoredMessage.from_payload(each.payload) for each in found), key=lambda each: each.message_index)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The observer's record of a turn."""

    observed: Observed
    record: Record


def _read(contract: type[C], record: Record) -> C | None:
    """Decode a record. Return None when memstream did not write it."""
    try:
        return None if record.value is None else contract.read(record.value)
    except ValidationError:
        return None


def _turn_id(record: Record) -> str | None:
    """Return the turn id in the value of a record; None when the value is no turn."""
    value = peek(record.value or b"")
    found = value.get("turn_id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _original_offset(letter: Record) -> int | None:
    """Return the offset of the record that became this dead letter."""
    offset = dict(letter.headers).get("kafka_dlt-original-offset", b"")
    return int(offset) if offset.isdigit() else None

"""Trace of a turn: its words, its stage, and the outcome of each of its statements.

The words come from Qdrant, and the observer's record comes from the log. The consumer groups' committed offsets show
whether the observer has read the turn and the reflector its record. The facts come from Qdrant, and the reasons of
their changes from the log. Older parts of the log may be deleted; then the stage is `unknown`, or a reason is general.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
from ..schemas.cloudevents import rfc3339
from ..schemas.collections import FACTS, LABELS, TURNS
from ..schemas.errors import Transient
from ..schemas.facts import FactUpdated, StoredFact
from ..schemas.front_door.framing import peek
from ..schemas.labels import SessionLabel, read_label
from ..schemas.observations import Observation, Observed
from ..schemas.topics import FACTS_UPDATED, OBSERVATIONS, StageName, Topic, dead_letters_of, group_of
from ..schemas.topics import TURNS as TURNS_TOPIC
from ..schemas.turns import Sensitivity, up_to
from ..schemas.working_set import StoredMessage
from ..streams.log.port import Log, Position, Record
from .bounded_log_reads import BoundedLogReads, FormerCounts, LogPolicy
from .deadline import UnansweredPart
from .record_filters import RecordSelection
from .record_reader import LoggedTurn, RecordReader, Sees, sees_all
from .silent_turns import EARLIER, is_by_rules, is_silent, reason_of_silence, texts_of_user
from .statement_outcomes import StatementOutcome, TurnFacts, statement_outcomes

C = TypeVar("C", bound=Contract)
TurnStage = Literal["unknown", "unread", "waiting", "refused", "observed", "reflected", "retracted"]
"""Progress of a turn. `unread`: the observer has not reached it. `waiting`: the observer keeps it. `refused`: it is a
dead letter. `retracted`: it was taken back; its words and statements are not shown."""


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
    """The reason as a sentence, for a turn that is not observed, or in which the observer found no statement."""
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
        self._reading = RecordReader(store=store)

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

        progress = _Progress(self._log, reads, {ref.turn_id}, ref.since)
        place = None if ref.user_id is None or ref.session_id is None else (ref.user_id, ref.session_id)
        unread = place is not None and await progress.is_unread(ids.session_key(ref.tenant_id, *place), ref.turn_id)

        def found_it() -> bool:
            """Return whether older records are not needed: an unread turn has no record, or a very new one."""
            return unread or place in records

        for owner_key in sorted(owners):
            await reads.newest_of_key(
                "observations", OBSERVATIONS.name, owner_key.encode(), take=take, found=found_it, since=ref.since
            )
        places = {*((each.user_id, each.session_id) for each in messages), *records}
        if place is not None:
            places.add(place)
        facts = await self._facts(ref.tenant_id, [*records.values()], reads)
        gone = await self._taken_back(ref, sorted(places))
        found = [
            gone.get(place)
            or await self._outcome(
                ref,
                place,
                [each for each in messages if (each.user_id, each.session_id) == place],
                records.get(place),
                facts,
                progress,
            )
            for place in sorted(places)
        ]
        return TurnOutcomes(tuple(each for each in found if each is not None), tuple(reads.missing))

    async def trace_page(
        self, tenant_id: str, turns: Sequence[LoggedTurn], *, sees: Sees = sees_all, ceiling: Sensitivity = "internal"
    ) -> TurnOutcomes:
        """Return the outcomes of these recorded turns, in their order. The log is read once for all of them, from the
        time of the oldest turn."""
        reads = BoundedLogReads(self._log, self._policy, self._former)
        if not turns:
            return TurnOutcomes(())
        since = min(each.occurred_at for each in turns)
        wanted = {(each.user_id, each.session_id, each.turn_id) for each in turns}
        records: dict[tuple[str, str, str], _Seen] = {}

        def take(record: Record) -> bool:
            found = _read(Observed, record)
            if found is not None and found.tenant_id == tenant_id and sees(found.owner):
                place = (found.user_id, found.session_id, found.turn_id)
                if place in wanted:
                    records.setdefault(place, _Seen(found, record))
            return False

        for owner_key in sorted({message.owner_key for each in turns for message in each.messages}):
            await reads.of_key("observations", OBSERVATIONS.name, owner_key.encode(), take=take, since=since)
        progress = _Progress(self._log, reads, {each.turn_id for each in turns}, since)
        facts = await self._facts(tenant_id, [*records.values()], reads)
        found = []
        for each in turns:
            ref = TurnRef(tenant_id, each.turn_id, each.session_id, each.user_id, ceiling, sees, since)
            place = (each.user_id, each.session_id)
            seen = records.get((*place, each.turn_id))
            found.append(await self._outcome(ref, place, each.messages, seen, facts, progress))
        return TurnOutcomes(tuple(each for each in found if each is not None), tuple(reads.missing))

    async def _outcome(
        self,
        ref: TurnRef,
        place: tuple[str, str],
        said: Sequence[StoredMessage],
        seen: _Seen | None,
        facts: TurnFacts,
        progress: _Progress,
    ) -> TurnOutcome | None:
        """Return the outcome of one turn; None when nothing is known about it."""
        shown = tuple(each for each in said if ref.may_show(each.sensitivity))
        if seen is None:
            stage, why = await progress.unobserved(ids.session_key(ref.tenant_id, *place), ref.turn_id)
            if stage == "unknown" and not said:
                return None
            return TurnOutcome(*place, ref.turn_id, shown, None, stage=stage, why=why)
        observed = seen.observed
        reflected = await progress.is_committed("reflector", seen.record.position) is True
        why = None
        if is_silent(observed):
            earlier = await self._earlier(ref, place, shown) if is_by_rules(observed) else []
            why = reason_of_silence(observed, shown, earlier)
        return TurnOutcome(
            *place,
            ref.turn_id,
            shown,
            observed,
            tuple(each for each in observed.observations if ref.may_show(each.sensitivity)),
            "reflected" if reflected else "observed",
            why,
            statements=statement_outcomes(
                observed,
                facts,
                self._policies.of(observed) or self._deployment,
                reflected=reflected,
                ceiling=ref.ceiling,
            ),
        )

    async def _earlier(self, ref: TurnRef, place: tuple[str, str], said: Sequence[StoredMessage]) -> list[str]:
        """Return what the user said in the session before a turn, oldest first, as far as the caller may see it."""
        if not said:
            return []
        user_id, session_id = place
        before = RecordSelection(
            ref.tenant_id,
            user_id=user_id,
            session_id=session_id,
            ceiling=ref.ceiling,
            said_before=min(each.occurred_at for each in said),
        )
        turns = (await self._reading.log(before, limit=EARLIER)).items
        return [text for turn in reversed(turns) for text in texts_of_user(turn.messages)]

    async def _taken_back(
        self, ref: TurnRef, places: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], TurnOutcome]:
        """Return the turns that were taken back, alone or with their session, by user and session."""
        if not places or not await self._store.exists(LABELS):
            return {}
        sessions = [ids.session_key(ref.tenant_id, *each) for each in places]
        named = [ids.label_id(each, ref.turn_id) for each in sessions] + [*map(ids.session_label_id, sessions)]
        found = await self._store.get(LABELS, tenant_id=ref.tenant_id, ids=named)
        gone = {}
        for each in (read_label(point.payload) for point in found.values()):
            if isinstance(each, SessionLabel):
                why = f"the session was erased at {rfc3339(each.at)}"
            elif each.retracted:
                why = f"the turn was taken back at {rfc3339(each.at)}"
            else:
                continue
            place = each.user_id, each.session_id
            gone[place] = TurnOutcome(*place, ref.turn_id, (), None, stage="retracted", why=why)
        return gone

    async def _facts(self, tenant_id: str, seen: Sequence[_Seen], reads: BoundedLogReads) -> TurnFacts:
        """Read the facts with an observation of the turns as evidence, and the events that concern them."""
        named = frozenset(each.observation_id for one in seen for each in one.observed.observations)
        if not named:
            return TurnFacts({})
        rows: list[StoredFact] = []
        if await self._store.exists(FACTS):
            condition = any_of("evidence[].observation_id", sorted(named))
            found = await self._store.select(FACTS, tenant_id=tenant_id, where=models.Filter(must=[condition]))
            rows = [StoredFact.from_payload(each.payload) for each in found]
        facts: dict[str, list[StoredFact]] = {each: [] for each in named}
        for row in rows:
            for evidence in row.evidence:
                if row not in facts.get(evidence.observation_id, (row,)):
                    facts[evidence.observation_id].append(row)
        known = frozenset(row.fact_id for row in rows)
        events: list[FactUpdated] = []

        def take(record: Record) -> bool:
            event = _read(FactUpdated, record)
            if event is not None and (event.fact.fact_id in known or not named.isdisjoint(event.cause.observation_ids)):
                events.append(event)
            return False

        times = [one.record.written_at for one in seen]
        known_times = [each for each in times if each is not None]
        since = min(known_times) if len(known_times) == len(times) else None
        for owner_key in sorted({one.observed.owner.key(tenant_id) for one in seen}):
            await reads.of_key("events", FACTS_UPDATED.name, owner_key.encode(), take=take, since=since)
        return TurnFacts(facts, events)

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


class _Progress:
    """Progress of the stages, for the turns of one answer. Each session and each committed offset is read once."""

    def __init__(self, log: Log, reads: BoundedLogReads, turn_ids: Collection[str], since: datetime | None) -> None:
        self._log = log
        self._reads = reads
        self._turn_ids = frozenset(turn_ids)
        self._since = since
        self._sessions: dict[tuple[str, str], Mapping[str, Record]] = {}
        self._committed: dict[tuple[StageName, str], Sequence[int | None] | None] = {}

    async def unobserved(self, session_key: str, turn_id: str) -> tuple[TurnStage, str | None]:
        """Return the stage of a turn without a record of the observer, and the reason."""
        turn = (await self._records("turns", TURNS_TOPIC, session_key)).get(turn_id)
        letter = (await self._records("dead letters", dead_letters_of(TURNS_TOPIC), session_key)).get(turn_id)
        if letter is not None and (turn is None or _original_offset(letter) == turn.position.offset):
            headers = {name: value.decode("utf-8", "replace") for name, value in letter.headers}
            reason = headers.get("memstream-reason", "refused")
            return "refused", f"it is a dead letter, {reason}: {headers.get('kafka_dlt-exception-message', '')}"
        if turn is None:
            return (
                "unknown",
                "the log has no record of it: it did not arrive, or the record is older than the retention",
            )
        handled = await self.is_committed("observer", turn.position)
        if handled is None:
            return "unknown", "the log does not say whether the observer has read it"
        if handled:
            return "waiting", (
                "the observer keeps it until its model answers, its budget allows a call, or its session has enough "
                "turns (observe.unobserved_tokens)"
            )
        return "unread", "the observer has not reached it yet"

    async def is_unread(self, session_key: str, turn_id: str) -> bool:
        """Return whether the turn is among the newest records, and the observer has not handled it. Older records are
        not read, because the records of the observer need the rest of the limit."""
        found: dict[str, Record] = {}
        key, take = session_key.encode(), self._collect(found)
        await self._reads.newest_of_key("turns", TURNS_TOPIC.name, key, take=take, found=lambda: True)
        turn = found.get(turn_id)
        return turn is not None and await self.is_committed("observer", turn.position) is False

    async def _records(self, part: str, topic: Topic, session_key: str) -> Mapping[str, Record]:
        """Return the last record of each turn of the session in a topic, by turn id."""
        if (known := self._sessions.get((topic.name, session_key))) is not None:
            return known
        found: dict[str, Record] = {}

        def found_all() -> bool:
            return self._turn_ids <= found.keys()

        key, take = session_key.encode(), self._collect(found)
        await self._reads.newest_of_key(part, topic.name, key, take=take, found=found_all, since=self._since)
        self._sessions[topic.name, session_key] = found
        return found

    def _collect(self, into: dict[str, Record]) -> Callable[[Record], bool]:
        def take(record: Record) -> bool:
            turn_id = _turn_id(record)
            if turn_id is not None and turn_id in self._turn_ids and _is_later(record, into.get(turn_id)):
                into[turn_id] = record
            return False

        return take

    async def is_committed(self, stage: StageName, position: Position) -> bool | None:
        """Return whether a stage has handled the record at a position; None when the log does not answer."""
        key = (stage, position.topic)
        if key not in self._committed:
            try:
                self._committed[key] = await self._log.committed(group_of(stage), position.topic)
            except Transient as away:
                self._committed[key] = None
                self._reads.missing.append(UnansweredPart(f"progress of the {stage}", str(away)))
        committed = self._committed[key]
        if committed is None:
            return None
        done = committed[position.partition] if position.partition < len(committed) else None
        return done is not None and done > position.offset


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


def _is_later(record: Record, other: Record | None) -> bool:
    """Return whether a record that was read after `other` is also the later one. Former partitions are read last."""
    if other is None:
        return True
    one, two = record.position, other.position
    return one.partition == two.partition and one.offset > two.offset


def _original_offset(letter: Record) -> int | None:
    """Return the offset of the record that became this dead letter."""
    offset = dict(letter.headers).get("kafka_dlt-original-offset", b"")
    return int(offset) if offset.isdigit() else None

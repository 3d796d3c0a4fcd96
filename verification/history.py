"""The reading of topics and store into a `History`, one record at a time.

A pipeline may be running, so the order of reading matters:

- first the committed offsets: all effects of the records below these offsets exist;
- then the ends of the topics, downstream topics first;
- then the records up to these ends, effects before their causes;
- the store last.

Therefore, the history contains the cause of each of its effects. It also contains every effect of an acknowledged
record. `History.moved` names the topics and commits that changed during the reading.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError

from ..adapters.ports import VectorStore
from ..agents.common.restored_turns import is_restored_turn
from ..agents.observer.rows import SessionRow, WaitingTurn, session_of_waiting_key
from ..memory.policies import MemoryPolicy
from ..memory.tenant_policies import TurnPolicies
from ..memory.turn_retention import TurnRetention
from ..schemas import ids
from ..schemas.budgets import StoredBudget
from ..schemas.cloudevents import MOVED_HEADER
from ..schemas.collections import BUDGETS
from ..schemas.collections import FACTS as FACTS_COLLECTION
from ..schemas.errors import Fatal
from ..schemas.facts import Fact, StoredFact
from ..schemas.observations import Observed
from ..schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    DEAD_LETTER_SUFFIX,
    EPISODES_RECORDED,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TABLES,
    TURNS,
    StageName,
    changelog_name,
    read_by,
)
from ..streams.engine.unread import read_unread
from ..streams.log.partitioner import partition_for
from ..streams.log.port import Log, Position, Record
from . import decoding
from .decoding import DecodedTurn, UnreadableRecord
from .partition_counts import PartitionCounts, read_growths
from .rows import (
    EventRow,
    History,
    ObservedRow,
    RecordedRow,
    Refusal,
    ResultRow,
    Span,
    StateRow,
    TurnName,
    TurnRow,
    format_position,
)

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""
_READ = tuple(dict.fromkeys(topic.name for stage in STAGES for topic in read_by(stage)))
_DEAD_LETTER_TOPICS = tuple(name + DEAD_LETTER_SUFFIX for name in _READ)
_DOWNSTREAM_FIRST = (
    *_DEAD_LETTER_TOPICS,
    RESULTS.name,
    FACTS.name,
    FACTS_UPDATED.name,
    EPISODES_RECORDED.name,
    COMMANDS.name,
    OBSERVATIONS.name,
    COMMANDS_SESSION.name,
    TURNS.name,
)


RESTORES: Final = "restore."
"""Beginning of the kinds of commands that restore records of an export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryScope:
    """The scope of a reading.

    `since`: the first offset to read, by topic and partition; tests on a shared broker skip older records with it.
    Records without a tenant are in the scope only with `since`, or when `tenant` is None.
    """

    tenant: str | None = None
    since: Offsets = field(default_factory=dict)
    policy: MemoryPolicy = field(default_factory=MemoryPolicy)

    def wants(self, tenant_id: str | None) -> bool:
        """Return whether a record of this tenant is in the scope."""
        if self.tenant is None or tenant_id == self.tenant:
            return True
        return tenant_id is None and bool(self.since)


async def read_history(*, log: Log, store: VectorStore, scope: HistoryScope) -> History:
    """Read the log and the store. Raises Transient when the log or the store is unavailable. A payload of another
    tenant in the store becomes an entry of `History.unreadable`."""
    return await _Reader(log, store, scope).run()


class _Reader:
    """A reader of one history. `run` reads in the order that the docstring of the module explains."""

    def __init__(self, log: Log, store: VectorStore, scope: HistoryScope) -> None:
        self._log = log
        self._store = store
        self._scope = scope
        self._policy = scope.policy
        self._of_turns = TurnPolicies(scope.policy)
        kept = TurnRetention(scope.policy.session_log.retention_days)
        self._history = History(tenant=scope.tenant, over_since=kept.over_since(datetime.now(UTC)))
        self._tenants: set[str] = set() if scope.tenant is None else {scope.tenant}
        self._wanted_originals: set[Position] = set()
        self._quotes: dict[TurnName, list[tuple[str, str]]] = {}
        """Pairs of observation id and quote, by turn. They are compared with the turn when the turn is read."""
        self._has_quote: dict[str, bool] = {}
        """Results by observation id: True when a turn with the turn id of the observation contains the quote."""

    async def run(self) -> History:
        history = self._history
        history.committed = await self._commits()
        history.spans = await self._spans()
        now = {name: len(spans) for name, spans in history.spans.items()}
        history.unread_deleted = tuple(await read_unread(self._log, now=datetime.now(UTC)))
        history.counts = PartitionCounts(now, await read_growths(self._log))
        for name in _DEAD_LETTER_TOPICS:
            await self._each(name, self._dead_letter)
        await self._each(RESULTS.name, self._result)
        await self._each(FACTS.name, self._state)
        await self._each(FACTS_UPDATED.name, self._event)
        await self._each(EPISODES_RECORDED.name, self._recorded)
        await self._each(COMMANDS.name, self._command)
        await self._each(OBSERVATIONS.name, self._observed)
        await self._each(COMMANDS_SESSION.name, self._command)
        await self._each(TURNS.name, self._turn)
        self._mark_quotes()
        await self._waiting()
        await self._collections()
        ends = {name: tuple(span.end for span in spans) for name, spans in history.spans.items()}
        now_ends = {name: tuple(span.end for span in spans) for name, spans in (await self._spans()).items()}
        commits = await self._commits()
        history.moved = (
            *(name for name in ends if now_ends.get(name) != ends[name]),
            *(f"{stage}:{topic}" for (stage, topic), at in history.committed.items() if commits[stage, topic] != at),
        )
        return history

    # ------------------------------------------------------------------------------------------------ the log
    async def _commits(self) -> dict[tuple[StageName, str], tuple[int | None, ...]]:
        return {
            (stage, topic.name): await self._log.committed(f"memory-{stage}", topic.name)
            for stage in STAGES
            for topic in read_by(stage)
        }

    async def _spans(self) -> dict[str, tuple[Span, ...]]:
        spans: dict[str, tuple[Span, ...]] = {}
        for name in _DOWNSTREAM_FIRST:
            count = await self._log.partitions(name)
            if count is None:
                continue
            since = self._scope.since.get(name, {})
            ends = await self._log.ends(name)
            firsts = await self._log.starts(name)
            spans[name] = tuple(
                Span(first, since.get(partition, 0), end)
                for partition, (first, end) in enumerate(zip(firsts, ends, strict=True))
            )
        return spans

    async def _each(self, name: str, take: Callable[[Record], None]) -> None:
        """Pass every record of a topic to `take`. List the records that cannot be read in `History.unreadable`."""
        async for record in self._records(name):
            try:
                take(record)
            except UnreadableRecord as why:
                self._history.unreadable[format_position(record.position)] = str(why)

    async def _records(self, name: str) -> AsyncIterator[Record]:
        """Yield the records up to the end that the topic had when the reading began. Skip records that a growth of the
        topic sent again to another partition."""
        spans = self._history.spans.get(name, ())
        start = {partition: span.start for partition, span in enumerate(spans) if span.start < span.end}
        if not start:
            return
        async for record in self._log.read(name, start=start):
            partition = record.position.partition
            if record.position.offset < spans[partition].end and not self._history.counts.was_sent_again(
                record.position
            ):
                self._history.first_kept.setdefault((name, partition), record.timestamp)
                yield record

    def _keep(self, tenant_id: str) -> bool:
        """Return whether a row of this tenant is in the scope. If so, the store is read for this tenant, too."""
        if not self._scope.wants(tenant_id):
            return False
        self._tenants.add(tenant_id)
        return True

    # ------------------------------------------------------------------------------------------------ one record
    def _dead_letter(self, record: Record) -> None:
        letter = decoding.dead_letter(record)
        if self._scope.wants(letter.tenant_id):
            self._history.dead_letters.append(letter)
            if letter.original is not None:
                self._wanted_originals.add(letter.original)

    def _refused(self, refusal: Refusal) -> None:
        if self._scope.wants(refusal.tenant_id):
            self._history.refusals.append(refusal)

    def _original(self, record: Record) -> None:
        """Store the digest of a record that has a dead letter, because a check compares the digest with the dead
        letter."""
        if record.position in self._wanted_originals:
            self._history.originals[record.position] = decoding.digest_of(record.value)

    def _result(self, record: Record) -> None:
        row = decoding.result(record)
        rows: list[ResultRow] = self._history.results.setdefault((row.subject, row.command_id), [])
        if all(row.digest != known.digest for known in rows):
            rows.append(row)

    def _state(self, record: Record) -> None:
        if any(name == MOVED_HEADER for name, _ in record.headers):
            return
        fact = decoding.state(record)
        key = decoding.key_of(record)
        tenants = {ids.split(key)[0]} | ({fact.tenant_id} if fact is not None else set())
        kept = [tenant_id for tenant_id in tenants if self._keep(tenant_id)]
        if not kept:
            return
        known = self._history.states.get(key)
        if known is not None and self._in_place(known.position, key) and not self._in_place(record.position, key):
            return  # the record is from before a growth of the topics, so the known record is newer
        highest = known.highest if known else 0
        view = None
        if fact is not None:
            view = decoding.fact_view(fact)
            highest = max(highest, fact.version)
            self._evidence(fact, format_position(record.position))
        self._history.states[key] = StateRow(record.position, key, view, highest)

    def _in_place(self, position: Position, key: str) -> bool:
        return position.partition == partition_for(key.encode(), self._history.counts.now[position.topic])

    def _event(self, record: Record) -> None:
        row, fact = decoding.event(record)
        if not self._keep(row.tenant_id):
            return
        rows: list[EventRow] = self._history.events.setdefault(row.event_id, [])
        if all(row.digest != known.digest for known in rows):
            rows.append(row)
            self._evidence(fact, format_position(record.position))

    def _recorded(self, record: Record) -> None:
        self._original(record)
        row = decoding.recorded(record, partitions=self._history.counts.of(record.position))
        if isinstance(row, Refusal):
            self._refused(row)
        elif self._keep(row.tenant_id):
            rows: list[RecordedRow] = self._history.recorded.setdefault((row.owner_key, row.name), [])
            if all(row.digest != known.digest for known in rows):
                rows.append(row)

    def _command(self, record: Record) -> None:
        self._original(record)
        row = decoding.command(record, partitions=self._history.counts.of(record.position))
        if isinstance(row, Refusal):
            self._refused(row)
        elif self._keep(row.tenant_id):
            self._history.commands.append(row)
            if row.kind.startswith(RESTORES):
                self._history.restored.add(row.key)

    def _observed(self, record: Record) -> None:
        self._original(record)
        read = decoding.observed(
            record,
            partitions=self._history.counts.of(record.position),
            policy=self._policy,
            of_turns=self._of_turns,
        )
        if isinstance(read, Refusal):
            self._refused(read)
            return
        row, found = read
        if not self._keep(row.tenant_id):
            return
        rows: list[ObservedRow] = self._history.observed.setdefault(row.name, [])
        if all(row.digest != known.digest for known in rows):
            rows.append(row)
            self._remember_quotes(row, found)

    def _remember_quotes(self, row: ObservedRow, found: Observed) -> None:
        quotes = [(each.observation_id, each.evidence) for each in found.observations]
        if quotes:
            self._quotes.setdefault(row.name, []).extend(quotes)

    def _turn(self, record: Record) -> None:
        self._original(record)
        if is_restored_turn(record):
            self._history.restored.add(decoding.key_of(record))
            return
        partitions, now = self._history.counts.of(record.position), datetime.now(UTC)
        read = decoding.turn(record, partitions=partitions, policy=self._policy, now=now)
        if isinstance(read, Refusal):
            self._refused(read)
            return
        row = read.row
        if not self._keep(row.tenant_id):
            return
        if row.position in self._wanted_originals:
            self._history.original_turns[row.position] = row.name
        self._history.turns.append(row)
        self._look_for_quotes(read)

    def _look_for_quotes(self, read: DecodedTurn) -> None:
        quotes = self._quotes.get(read.row.name, ())
        for (observation_id, _), found in zip(quotes, read.quoted(quote for _, quote in quotes), strict=True):
            # two turns may have the same id and different words: one of the two must contain the quote
            self._has_quote[observation_id] = self._has_quote.get(observation_id, False) or found

    def _mark_quotes(self) -> None:
        for rows in self._history.observed.values():
            for place, row in enumerate(rows):
                marked = tuple(
                    replace(each, quoted=self._has_quote.get(each.observation_id)) for each in row.observations
                )
                rows[place] = replace(row, observations=marked)
        self._quotes.clear()
        self._has_quote.clear()

    # ------------------------------------------------------------------------------------------------ the table
    async def _waiting(self) -> None:
        """Find the deferred turns. Each has its own row in the table of the observer.

        The changelog of this table is large. Therefore, it is read only when some turns have no other effect, and only
        the rows of the sessions of these turns are kept.
        """
        history = self._history
        missing = turns_without_effect(history)
        if not missing:
            return
        name = changelog_name("observer", TABLES["observer"])
        if await self._log.partitions(name) is None:
            return
        sessions = {row.session_key for row in missing}
        rows: dict[str, bytes] = {}
        async for record in self._log.read(name):
            key = decoding.key_of(record)
            if key in sessions or session_of_waiting_key(key) in sessions:
                if record.value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = record.value
        history.waiting = _waiting_turns(rows, sessions)

    # ------------------------------------------------------------------------------------------------ the store
    async def _collections(self) -> None:
        for name in (FACTS_COLLECTION, BUDGETS, *decoding.COLLECTIONS):
            if not await self._store.exists(name):
                continue
            for tenant_id in sorted(self._tenants):
                await self._points(name, tenant_id)

    async def _points(self, collection: str, tenant_id: str) -> None:
        history = self._history
        try:
            for found in await self._store.select(collection, tenant_id=tenant_id):
                where = f"{collection}/{found.id}"
                try:
                    if collection == FACTS_COLLECTION:
                        self._stored_fact(found.id, StoredFact.from_payload(found.payload), where)
                    elif collection == BUDGETS:
                        history.budgets.append(StoredBudget.from_payload(found.payload))
                    else:
                        history.points.setdefault(collection, []).append(decoding.point(collection, found))
                except (UnreadableRecord, ValidationError) as why:
                    history.unreadable[where] = str(why).splitlines()[0]
        except Fatal as foreign:  # the store found a payload of another tenant
            history.unreadable[f"{collection} of {tenant_id}"] = str(foreign)

    def _stored_fact(self, point_id: str, row: StoredFact, where: str) -> None:
        view = decoding.fact_view(row.public())
        if point_id != row.fact_id or row.owner_key != view.owner_key:
            self._history.unreadable[where] = "its id or its owner_key does not match its fact"
        self._history.stored_facts[point_id] = view
        self._evidence(row, where)

    def _evidence(self, fact: Fact, where: str) -> None:
        for piece, said in decoding.evidence(fact):
            self._history.evidence.setdefault(piece, where)
            self._history.evidence_keys.add(said)


def turns_without_effect(history: History) -> list[TurnRow]:
    """Return the turns that the observer acknowledged, and that were neither observed nor refused."""
    dead_lettered = history.dead_lettered("observer")
    return [
        row
        for row in history.turns
        if row.placed
        and row.name not in history.observed
        and row.position not in dead_lettered
        and history.processed("observer", row.position)
    ]


def _waiting_turns(rows: Mapping[str, bytes], sessions: Collection[str]) -> set[Position]:
    """Return the positions of the waiting turns. A row counts when its number is in the range that the row of its
    session gives. After a crash, a row outside this range may exist."""
    waiting: set[Position] = set()
    counted = {key: SessionRow.read(rows[key]) for key in sessions if key in rows}
    for key, value in rows.items():
        session = counted.get(session_of_waiting_key(key) or "")
        if session is not None and session.waiting_from <= int(key.rpartition("/")[2]) < session.waiting_next:
            row = WaitingTurn.read(value)
            waiting.add(Position(row.topic, row.partition, row.offset))
    return waiting

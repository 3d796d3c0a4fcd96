"""The one handler shape of all stages: decide → table with outcome → store → publish → commit.

A stage decides once for an event and keeps the complete outcome in its table; everything after that can be done
again. `Handler.handle` below is the whole guarantee; the stages (agents/) fill in the verbs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import structlog

from ...schemas.errors import Poison
from ...schemas.outcomes import Outcome, OutRecord, Source
from ...schemas.topics import DEAD_LETTER_SUFFIX, StageName, Topic
from ..log.port import Position, Record
from .codec import lane_key
from .crash_points import CrashPoint, Step
from .dead_letters import dead_letter
from .error_boundary import DecisionFailed, ErrorBoundary, decoded, unexpected
from .metrics import StageMetrics
from .retry import Calls

log = structlog.get_logger(__name__)
W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)


class Rows(Protocol):
    """A stage's table, raw. Reads and writes belong to the partition of the event in hand."""

    def row(self, key: str) -> bytes | None: ...

    async def put(self, rows: Mapping[str, bytes | None]) -> None:
        """Write in this order (None deletes); durable on the changelog when it returns."""
        ...

    def scan(self, partition: int) -> Iterator[tuple[str, bytes]]:
        """All rows of one partition."""
        ...


class NoRows:
    """For a stage without a table."""

    def row(self, key: str) -> bytes | None:
        return None

    async def put(self, rows: Mapping[str, bytes | None]) -> None:
        if rows:
            raise AssertionError("this stage has no table")

    def scan(self, partition: int) -> Iterator[tuple[str, bytes]]:
        return iter(())


@dataclass(frozen=True, slots=True)
class Decision:
    """One outcome on its way into the table. `row` (under `key`) holds the entry with the outcome inside; `before`
    are rows that must be there first. A stage without a table leaves key, row and before empty."""

    outcome: Outcome
    key: str = ""
    row: bytes | None = None
    before: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoutedEvent(Generic[W_co]):
    """A decoded event and its lane: events of one lane are handled one after the other."""

    lane: str
    work: W_co


@dataclass(frozen=True, slots=True)
class UndecodableEvent:
    """An event that could not be decoded."""

    lane: str
    poison: Poison


@dataclass(frozen=True, slots=True)
class DecodeCrash:
    """An event at which the decoder itself failed, as nobody expected."""

    lane: str
    failure: DecisionFailed


class Stage(Protocol[W]):
    """What a stage fills in. `W` is its decoded event."""

    @property
    def name(self) -> StageName: ...

    @property
    def reads(self) -> tuple[Topic, ...]: ...

    def writes_dead_letters(self, topic: str) -> bool:
        """Whether this stage writes the dead letters of a topic (else it counts what it refuses). What killed the
        worker three times is a dead letter of the stage that it killed, whatever this says."""
        ...

    def route(self, record: Record) -> RoutedEvent[W]:
        """Decode. Raises Poison."""
        ...

    def last(self, work: W, rows: Rows) -> Decision | None:
        """The last outcome of this event's key, as it stands in the table."""
        ...

    def decide(self, work: W, record: Record, rows: Rows) -> AsyncIterator[Decision]:
        """One outcome after the other; each is applied in full before the next one is asked for. Yields nothing for
        an event that was applied before or is a duplicate. Raises Poison, Transient, Relinquished, Fatal."""
        ...

    async def store(self, outcome: Outcome) -> None:
        """Apply the outcome's writes; a no-op the second time."""
        ...

    async def publish_state(self, outcome: Outcome) -> None:
        """After the outcome's records were sent: state that is read at the send (memory.facts)."""
        ...

    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        """These partitions are ours now, tables recovered; others no longer are (timers of theirs are dropped)."""
        ...

    async def background(self) -> None:
        """Timers. Runs while the worker runs; has no effect except by sending commands."""
        ...


Committed = Callable[[str, int], int | None]
"""The committed offset (the next one to read) of a topic and partition; None when it is not known."""
KNOWN_APPLIED_MAX = 10_000
Send = Callable[[OutRecord], Awaitable[Awaitable[object]]]
"""Hand a record to the producer; the inner awaitable ends when it is durable. Order of the calls is the log's order
within a partition. Raises LeaseLost, Transient when the broker is away, Fatal for a record that it never takes."""


def source_of(record: Record, event_id: str) -> Source:
    """Return the coordinates of an event for its outcome."""
    position = record.position
    return Source(topic=position.topic, partition=position.partition, offset=position.offset, id=event_id)


def same_source(source: Source, position: Position) -> bool:
    return (source.topic, source.partition, source.offset) == (position.topic, position.partition, position.offset)


class Handler(Generic[W]):
    """Runs events of one stage. See the module."""

    def __init__(
        self,
        *,
        stage: Stage[W],
        rows: Rows,
        calls: Calls,
        boundary: ErrorBoundary,
        send: Send,
        metrics: StageMetrics,
        crash: CrashPoint | None = None,
        committed: Committed = lambda topic, partition: None,
        decided: Callable[[], None] = lambda: None,
        fence: Callable[[], None] = lambda: None,
    ) -> None:
        self._stage = stage
        self._rows = rows
        self._calls = calls
        self._boundary = boundary
        self._send = send
        self._metrics = metrics
        self._crash = crash
        self._committed = committed
        self._decided = decided
        """Told when a decision stands, before its effects."""
        self._fence = fence
        """Raises LeaseLost when others may own our partitions. Table and producer look themselves; the store cannot."""
        self._known_applied: OrderedDict[tuple[int, str], int] = OrderedDict()
        """By partition and key: the row (its hash) whose outcome this process has applied in full."""

    def route(self, record: Record) -> RoutedEvent[W] | UndecodableEvent | DecodeCrash:
        """Decode, once, at the edge."""
        self._metrics.event_in(record)
        try:
            return decoded(lambda: self._stage.route(record))
        except Poison as poison:
            return UndecodableEvent(lane_key(record), poison)
        except DecisionFailed as failure:
            return DecodeCrash(lane_key(record), failure)

    async def run(self, record: Record, routed: RoutedEvent[W] | UndecodableEvent | DecodeCrash) -> None:
        """An event to its end: when this returns it may be acknowledged."""

        async def handle() -> None:
            if isinstance(routed, UndecodableEvent):
                raise routed.poison
            if isinstance(routed, DecodeCrash):
                raise routed.failure
            await self.handle(record, routed.work)

        async def refuse(poison: Poison, attempts: int) -> None:
            await self._refuse(record, poison, attempts)

        with self._metrics.in_flight(record):
            await self._boundary.run(record.position, handle, refuse)

    async def handle(self, record: Record, work: W) -> None:
        """decide → table → store → publish; the commit follows when this returns."""
        last = self._stage.last(work, self._rows)
        if last is not None and not self._was_applied(last, record.position):
            await self._effects(await self._written_again(last))
        decisions = self._stage.decide(work, record, self._rows)
        while (decided := await self._next(decisions)) is not None:
            self._passed("decide")
            self._decided()
            await self._effects(decided)
            last = decided
        if last is not None and last.row is not None:
            self._remember_applied(last, record.position.partition)

    def _was_applied(self, last: Decision, position: Position) -> bool:
        """Whether the key's last outcome had all of its effects, so that the next one may take its place.

        Mostly it had, because its event was ended before this one began. But a worker that died in the middle of an
        event may get another event of that key first: of another topic, or an older one of the same topic. A decision
        on that one would overwrite the only record of what is still to be done.
        """
        source = last.outcome.source
        if same_source(source, position):
            return False
        if (source.topic, source.partition) == (position.topic, position.partition) and source.offset < position.offset:
            return True  # delivery is in order of offsets: it was ended, or committed
        if last.row is not None and self._known_applied.get((position.partition, last.key)) == hash(last.row):
            return True
        committed = self._committed(source.topic, source.partition)
        return committed is not None and source.offset < committed

    def _remember_applied(self, last: Decision, partition: int) -> None:
        self._known_applied[partition, last.key] = hash(last.row)
        self._known_applied.move_to_end((partition, last.key))
        if len(self._known_applied) > KNOWN_APPLIED_MAX:
            self._known_applied.popitem(last=False)

    async def _effects(self, decided: Decision) -> None:
        outcome = decided.outcome
        if decided.row is not None:
            await self._rows.put({**decided.before, decided.key: decided.row, **outcome.after})
            self._passed("table")
        if outcome.writes:
            await self._calls.call("store", lambda: self._stored(outcome))
        self._passed("store")
        await self.send(outcome.records)
        if outcome.state_ids:
            await self._calls.call("store", lambda: self._stage.publish_state(outcome))
        self._passed("publish")
        if outcome.cleanup:
            await self._rows.put(dict.fromkeys(outcome.cleanup))
        self._count(outcome)

    async def _stored(self, outcome: Outcome) -> None:
        self._fence()  # a projection is put whole: put late, it would replace what the next owner has put since
        await self._stage.store(outcome)

    async def _written_again(self, last: Decision) -> Decision:
        """Its changelog records may never have arrived (a row is known here from the call on): all of its rows are
        written once more."""
        before = {key: value for key in last.outcome.before if (value := self._rows.row(key)) is not None}
        return Decision(outcome=last.outcome, key=last.key, row=last.row, before=before)

    async def _next(self, decisions: AsyncIterator[Decision]) -> Decision | None:
        """The next outcome. What nobody expected is told apart from trouble with table, store or broker."""
        try:
            return await anext(decisions, None)
        except BaseException as error:
            if unexpected(error) and isinstance(error, Exception):
                raise DecisionFailed(repr(error)) from error
            raise

    async def send(self, records: tuple[OutRecord, ...]) -> None:
        """Durable when it returns; records of one key in this order."""
        durable = [await self._send(record) for record in records]
        if durable:
            await asyncio.gather(*durable)
        for record in records:
            self._metrics.event_out(record.topic)

    async def _refuse(self, record: Record, poison: Poison, attempts: int) -> None:
        position = record.position
        if poison.reason == "fatal" or self._stage.writes_dead_letters(position.topic):
            letter = dead_letter(record, stage=self._stage.name, reason=poison.reason, error=poison, attempts=attempts)
            await self.send((letter,))
        self._metrics.refused(position.topic, poison.reason)
        log.warning(
            "record_refused",
            stage=self._stage.name,
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            reason=poison.reason,
            why=str(poison.__cause__ or poison)[:300],
        )

    def _count(self, outcome: Outcome) -> None:
        letters = sum(record.topic.endswith(DEAD_LETTER_SUFFIX) for record in outcome.records)
        if letters:
            for _ in range(letters):
                self._boundary.count_dead_letter()
        else:
            self._boundary.succeeded()

    def passed_commit(self) -> bool:
        """Whether the crash point after the commit is armed (the runner then commits at once and passes it)."""
        return self._crash is not None and self._crash.armed(self._stage.name, "commit")

    def _passed(self, step: Step) -> None:
        if self._crash is not None:
            self._crash.passed(self._stage.name, step)

    def passed(self, step: Step) -> None:
        """For the runner's own step (commit)."""
        self._passed(step)

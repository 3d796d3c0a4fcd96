"""The handler that all stages share: decide → table with outcome → store → publish → commit.

A stage decides once for an event and keeps the complete outcome in its table. Every later step can be repeated.
`Handler.handle` gives this guarantee; the stages (agents/) implement the steps (`Stage`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import structlog

from ...schemas.base import describe
from ...schemas.errors import DeploymentFault, Poison, Relinquished, Transient
from ...schemas.outcomes import Outcome, OutRecord, Source
from ...schemas.row_keys import partition_key
from ...schemas.topics import DEAD_LETTER_SUFFIX, StageName, Topic
from ..log.partition_count import CountCheck
from ..log.port import Position, Record
from .applied import AppliedOutcomes, Committed
from .codec import is_keyed_by, lane_key, tenant_of
from .crash_points import CrashPoint, Step
from .dead_letters import dead_letter, is_filtered_letter, is_refused_by_model, message_of, reason_of
from .decision import Rows, StageDecision
from .error_boundary import CRASHES_MAX, ErrorBoundary, decoded, is_of_one_key, unexpected
from .failures import DecisionFailed, EffectFailed
from .lane_events import DecodeCrash, LookAhead, QueuedEvents, Routed, RoutedEvent, UndecodableEvent, nothing_ahead
from .last_keys import LastKeys
from .metrics import StageMetrics
from .parking import PARKED_MAX, ParkedKeys, is_parked, outcome_of, parked_row, read_parked, retry_of
from .retry import BROKER, Calls
from .steps import Phase

log = structlog.get_logger(__name__)
W = TypeVar("W")


class Stage(Protocol[W]):
    """The part of the handling that differs between stages. `W` is the decoded event of the stage."""

    @property
    def name(self) -> StageName: ...

    @property
    def reads(self) -> tuple[Topic, ...]: ...

    def writes_dead_letters(self, topic: str) -> bool:
        """Return whether this stage writes the dead letters of a topic; otherwise it only counts refused records.

        A record that crashed the worker three times always becomes a dead letter of the stage that crashed.
        """
        ...

    def route(self, record: Record) -> RoutedEvent[W]:
        """Decode a record. Raises Poison."""
        ...

    def last(self, work: W, rows: Rows) -> StageDecision | None:
        """Return the last outcome of the event's key from the table, or None."""
        ...

    def decide(self, work: W, record: Record, rows: Rows, queued: QueuedEvents[W]) -> AsyncIterator[StageDecision]:
        """Yield the outcomes of an event. The handler applies each outcome completely before it requests the next.

        Yields nothing for an event that was applied before or is a duplicate. An outcome may also have the effects of
        events in `queued`. If a decision with queued events fails with Poison or an unexpected exception, the event is
        decided alone. Raises Poison, Transient, Relinquished and Fatal.
        """
        ...

    async def store(self, outcome: Outcome) -> None:
        """Apply the writes of an outcome to the store. Idempotent."""
        ...

    async def publish_state(self, outcome: Outcome) -> None:
        """Publish the current state of the changed objects (topic memory.facts).

        Called after the outcome's records are sent. The state is read from the store, through the store's breaker, when
        it is sent. Raises Transient when a record does not arrive.
        """
        ...

    def retain(self, partitions: frozenset[int]) -> None:
        """Drop the timers of all partitions except these."""
        ...

    async def rediscover(self, partition: int, rows: Rows) -> None:
        """Find waiting work in a newly assigned partition and set its timers.

        Called when the partition's table is recovered. Events of the partition are handled at the same time, so the
        search works in slices (row_scan.py). After a cancellation, the next assignment starts the search from the
        beginning. Raises Transient, Relinquished and Fatal.
        """
        ...

    async def end_rows(self, partition: int, rows: Rows) -> None:
        """Expire old rows of a partition: delete them, or send commands that delete them. Called periodically.

        Raises Transient, Relinquished and Fatal.
        """

    async def background(self) -> None:
        """Run timers while the worker runs. Their only effect is to send commands."""
        ...


class EventFilter(Protocol):
    """The events of erased users (agents/common/erased_events.py)."""

    def ignores(self, work: Any, record: Record) -> bool:
        """Return whether an event has no effect."""
        ...

    def erases(self, work: Any) -> bool:
        """Return whether an event is a command that erases its key. A parked key accepts it."""
        ...


class EveryEvent:
    """The filter that ignores no event."""

    def ignores(self, work: Any, record: Record) -> bool:
        return False

    def erases(self, work: Any) -> bool:
        return False


REFUSED_LANES_MAX = 1_000
Send = Callable[[OutRecord], Awaitable[Awaitable[object]]]
"""Function that passes a record to the producer. The inner awaitable ends when the record is durable. Records of a
partition keep the order of the calls. Raises LeaseLost, Transient when the broker does not answer, and Fatal for a
record that the broker always refuses.
"""


def source_of(record: Record, event_id: str) -> Source:
    """Return the coordinates of an event for its outcome."""
    position = record.position
    return Source(topic=position.topic, partition=position.partition, offset=position.offset, id=event_id)


class Handler(Generic[W]):
    """The handler of one stage's events (see the module docstring)."""

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
        kept: Callable[[Record], Record] = lambda record: record,
        count: CountCheck | None = None,
        ahead: LookAhead = nothing_ahead,
        cover: Callable[[int], Awaitable[None]] | None = None,
        enter: Callable[[Phase], None] = lambda phase: None,
        events: EventFilter | None = None,
    ) -> None:
        self._stage = stage
        self._filter = events or EveryEvent()
        self._rows = rows
        self._calls = calls
        self._boundary = boundary
        self._send = send
        self._metrics = metrics
        self._crash = crash
        self._committed = committed
        self._decided = decided
        """Called when a decision is made, before its effects."""
        self._fence = fence
        """Raises LeaseLost when other workers may own the partitions. Table and producer check the lease themselves."""
        self._kept = kept
        """Returns a refused record in the form that its dead letter may keep."""
        self._partition_count = count
        self._ahead = ahead
        self._cover = cover
        """Called with the number of queued events that an applied outcome covers."""
        self._enter = enter
        """Called when the event enters another phase of its handling."""
        self.parked = ParkedKeys(stage=stage.name, send=self.send, metrics=metrics)
        self.applied = AppliedOutcomes(lambda topic, partition: self._committed(topic, partition))
        self._refused_lanes = LastKeys[str, bool](REFUSED_LANES_MAX)
        """Lanes of a stage without a table in which an outcome could not be applied."""

    def lane(self, record: Record) -> str:
        """Count a delivered record. Return its lane without decoding the record."""
        self._metrics.event_in(record)
        return lane_key(record)

    def route(self, record: Record) -> Routed[W]:
        """Decode a record. Called when the record's turn in its lane has come."""
        if self._boundary.deaths_by_hang(record.position) >= CRASHES_MAX:  # the error boundary refuses it
            return UndecodableEvent(lane_key(record), Poison("fatal", "workers hung at it"))
        try:
            return decoded(lambda: self._stage.route(record))
        except Poison as poison:
            return UndecodableEvent(lane_key(record), poison)
        except DecisionFailed as failure:
            return DecodeCrash(lane_key(record), failure)

    async def run(self, record: Record, routed: Routed[W]) -> None:
        """Handle an event to its end. It may be acknowledged when this returns."""

        async def handle() -> None:
            if isinstance(routed, UndecodableEvent):
                await self._confirm_count(record, record.key)
                raise routed.poison
            if isinstance(routed, DecodeCrash):
                raise routed.failure
            await self._confirm_count(record, routed.lane.encode())
            retry = retry_of(record)
            if retry is None:
                try:
                    await self.handle(record, routed)
                except EffectFailed as failed:
                    failed.of_refused_lane = self._refused_lanes.get(routed.lane) is not None
                    raise
            elif retry.stage == self._stage.name and partition_key(retry.key) == routed.lane:
                await self._retry(retry.key, record.position.partition)

        async def refuse(poison: Poison, attempts: int) -> None:
            await self._refuse(record, poison, attempts)

        async def park(failed: EffectFailed, attempts: int) -> None:
            await self._park(record, failed, attempts)
            if failed.decided.row is None:
                self._refused_lanes.put(routed.lane, True)

        with self._metrics.in_flight(record):
            await self._boundary.run(
                record.position, handle, refuse, park=park, tenant_id=lambda: tenant_of(record.value)
            )

    async def _confirm_count(self, record: Record, key: bytes | None) -> None:
        """If the key belongs to another partition than the record's, check that the partition count is still correct.

        Raises CountChanged when partitions were added to the topic.
        """
        count = self._partition_count
        if count is not None and key is not None and count.misplaces(record, key):
            await self._calls.call(BROKER, lambda: count.confirm(record.position.topic))

    async def handle(self, record: Record, routed: RoutedEvent[W]) -> None:
        """Run decide → table → store → publish. The commit follows later."""
        queued = self._queued(alone=self._boundary.deaths_by_hang(record.position) > 0)
        try:
            await self._handle(record, routed, queued)
        except (Poison, DecisionFailed) as error:
            if not queued.were_given:
                raise
            # another event of the lane may be the cause, so this event is decided alone
            self._metrics.counted("decided_alone")
            log.info("decided_alone", stage=self._stage.name, why=str(error)[:300])
            await self._handle(record, routed, self._queued(alone=True))

    def _queued(self, *, alone: bool = False) -> QueuedEvents[W]:
        count = self._partition_count

        def misplaced(record: Record, lane: str) -> bool:
            return not is_keyed_by(record, lane) or (count is not None and count.misplaces(record, lane.encode()))

        def by_itself(record: Record, lane: str) -> bool:
            """Return whether an event must be decided alone.

            True for a misplaced record. True also for a record at which a worker hung: decided together with another
            event, it would make the next hang count against the record of that event.
            """
            return misplaced(record, lane) or self._boundary.deaths_by_hang(record.position) > 0

        def ignored(record: Record, work: W) -> bool:
            return self._filter.ignores(work, record)

        return QueuedEvents(self._ahead, by_itself=by_itself, ignored=ignored, alone=alone)

    async def _handle(self, record: Record, routed: RoutedEvent[W], queued: QueuedEvents[W]) -> None:
        self._enter("decide")
        work = routed.work
        if self._filter.ignores(work, record):
            self._metrics.counted("erased")
            return
        # another lane owns the rows of the key and may be writing them, so a misplaced event does not use them
        misplaced = not is_keyed_by(record, routed.lane)
        last = None if misplaced else self._stage.last(work, self._rows)
        if last is not None and last.row is not None and is_parked(last.row):
            entry, _ = read_parked(last.row)
            if self._filter.erases(work):  # the outcome that cannot be applied is erased with its row
                await self.parked.unpark(last.key)
                last = None
        if last is not None and last.row is not None and is_parked(last.row):
            # The row is readable since `put`, but a crash or an outage may have prevented its changelog record.
            if last.key not in self.parked:
                await self._put({last.key: last.row})
                await self.parked.park(entry)
            raise Poison("parked", f"the key {last.key} is parked: {entry.error}")
        if last is not None and not self._was_applied(last, record.position):
            await self._effects(await self._written_again(last))
        decisions = self._stage.decide(work, record, self._rows, queued)
        while (decided := await self._next(decisions)) is not None:
            self._passed("decide")
            self._decided()
            await self._effects(decided)
            self._enter("decide")
            if decided.covers and self._cover is not None:
                self._metrics.covered(record, decided.covers)
                await self._cover(decided.covers)
            last = decided
        if last is not None:
            self._remember_applied(last, record.position.partition)

    def _was_applied(self, last: StageDecision, position: Position) -> bool:
        """Return whether the key's last outcome has all of its effects, so that the next outcome may replace it.

        After a crash in the middle of an event, the worker may first get another event of the key, and the record of
        the interrupted event may be gone. A new decision would then overwrite the only copy of the missing effects.
        """
        source = last.outcome.source
        moved_below = self._rows.applied_before(position.partition, source.topic, source.partition)
        return self.applied.has(source, position, key=last.key, row=last.row, moved_below=moved_below)

    def _remember_applied(self, last: StageDecision, partition: int) -> None:
        if last.row is not None:
            self.applied.remember(partition, last.key, last.row)

    async def _effects(self, decided: StageDecision) -> None:
        """Apply a decision. Raises EffectFailed for a failure that affects only its key, after the rows are durable."""
        outcome = decided.outcome
        self._enter("table")
        if decided.row is not None:
            await self._put({**decided.before, decided.key: decided.row, **outcome.after})
            self._passed("table")
        try:
            await self._applied(outcome)
        except Exception as error:
            if not is_of_one_key(error) or (decided.row is None and isinstance(error, Poison)):
                raise
            raise EffectFailed(error, decided) from error
        self._count(outcome)

    async def _applied(self, outcome: Outcome) -> None:
        """Run the steps after the table: store, publish, clean-up. Idempotent."""
        self._enter("store")
        if outcome.writes:
            await self._calls.call("store", lambda: self._stored(outcome))
        self._passed("store")
        self._enter("publish")
        await self.send(outcome.records)
        if outcome.state_ids:
            await self._stage.publish_state(outcome)
        self._passed("publish")
        if outcome.cleanup:
            await self._put(dict.fromkeys(outcome.cleanup))

    async def _park(self, record: Record, failed: EffectFailed, attempts: int) -> None:
        """Park the key of an outcome, and write a dead letter for the current event.

        The current event may need more outcomes than the parked one. A redrive of the dead letter produces them. If no
        outcome is missing, the redriven event counts as a duplicate. A stage without a table cannot park a key, so it
        refuses the event permanently.
        """
        decided, error = failed.decided, failed.error
        if decided.row is None:
            poison = Poison("fatal", describe(error))
        elif len(self.parked) >= PARKED_MAX and decided.key not in self.parked:
            raise DeploymentFault(
                f"{len(self.parked)} keys of {self._stage.name} are parked, and one more cannot be applied: "
                f"{describe(error)}. The cause is probably not in the keys: look at `memstream doctor`"
            ) from error
        else:
            entry = self.parked.entry(decided.key, decided.outcome.source, message_of(error))
            await self._put({decided.key: parked_row(decided.row, entry)})
            self._passed("table")
            await self.parked.park(entry)
            poison = Poison("parked", f"the key {decided.key} is parked: {entry.error}")
        poison.__cause__ = error
        await self._refuse(record, poison, attempts)
        if poison.reason == "fatal" and not failed.of_refused_lane:
            self._boundary.count_dead_letter()

    async def _retry(self, key: str, partition: int) -> None:
        """Try the outcome of a parked key again. When it is applied, the key accepts events again."""
        stored = self._rows.row(key)
        if stored is None or not is_parked(stored):  # applied before; a crash or an outage prevented the unparking
            await self._put({} if stored is None else {key: stored})
            await self.parked.unpark(key)
            return
        _, row = read_parked(stored)
        decided = StageDecision(outcome_of(row), key, row)
        try:
            await self._applied(decided.outcome)
        except Exception as error:
            if not is_of_one_key(error):
                raise
            self.parked.failed_again(key, message_of(error))
            return
        self._count(decided.outcome)
        await self._put({key: row})
        self._passed("table")
        await self.parked.unpark(key)
        self._remember_applied(decided, partition)

    async def _stored(self, outcome: Outcome) -> None:
        self._fence()  # a late write could overwrite what the partition's next owner has written
        await self._stage.store(outcome)

    async def _written_again(self, last: StageDecision) -> StageDecision:
        """Return the decision together with the rows that are written before its own row, to write all of them again.

        A row is readable as soon as `put` is called. So a readable row may be missing on the changelog.
        """
        before = {key: value for key in last.outcome.before if (value := self._rows.row(key)) is not None}
        return StageDecision(outcome=last.outcome, key=last.key, row=last.row, before=before)

    async def _next(self, decisions: AsyncIterator[StageDecision]) -> StageDecision | None:
        """Return the next outcome. An unexpected exception of `decide` becomes DecisionFailed."""
        try:
            return await anext(decisions, None)
        except BaseException as error:
            if unexpected(error) and isinstance(error, Exception):
                raise DecisionFailed(describe(error)) from error
            raise

    async def _put(self, rows: Mapping[str, bytes | None]) -> None:
        """Write rows durably; repeat while the broker is away. No other lane writes these rows meanwhile."""

        async def put() -> None:
            try:
                await self._rows.put(rows)
            except Transient as failed:
                if failed.component != BROKER:  # the local store failed: the worker ends
                    raise Relinquished(str(failed), remedy=failed.remedy) from failed
                raise

        await self._calls.call(BROKER, put)

    async def send(self, records: tuple[OutRecord, ...]) -> None:
        """Send records durably; repeat all of them while the broker is away. Records of one key keep this order."""

        async def send() -> None:
            await asyncio.gather(*[await self._send(record) for record in records])

        if records:
            await self._calls.call(BROKER, send)
        for record in records:
            self._metrics.event_out(record.topic)

    async def _refuse(self, record: Record, poison: Poison, attempts: int) -> None:
        position = record.position
        if poison.reason in ("fatal", "parked") or self._stage.writes_dead_letters(position.topic):
            kept = self._kept(record)
            refused = dead_letter(kept, stage=self._stage.name, reason=poison.reason, error=poison, attempts=attempts)
            await self.send((refused,))
        self._metrics.refused(position.topic, poison.reason)
        log.warning(
            "record_refused",
            stage=self._stage.name,
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            reason=poison.reason,
            why=message_of(poison.__cause__ or poison)[:300],
        )

    def _count(self, outcome: Outcome) -> None:
        """Count the outcome's dead letters or its success. Do not count an outcome that only stores a waiting event."""
        dead_letters = [record for record in outcome.records if record.topic.endswith(DEAD_LETTER_SUFFIX)]
        for letter in (each for each in dead_letters if reason_of(each.headers) != "over_ceiling"):
            refused_of = outcome.tenant_id if is_refused_by_model(letter) else None
            self._boundary.count_dead_letter(tenant_id=refused_of, filtered=is_filtered_letter(letter))
        waits = outcome.before and not (outcome.records or outcome.writes)
        if not dead_letters and not waits:
            self._boundary.succeeded(outcome.tenant_id)

    def ends_after_commit(self) -> bool:
        """Return whether the crash point after the commit is armed. The runner then commits immediately."""
        return self._crash is not None and self._crash.armed(self._stage.name, "commit")

    def _passed(self, step: Step) -> None:
        if self._crash is not None:
            self._crash.passed(self._stage.name, step)

    def passed(self, step: Step) -> None:
        """Count a completed step of the runner (commit)."""
        self._passed(step)

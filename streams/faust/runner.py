"""A stage on Faust: one app and one consumer group per stage, and one agent that reads all topics of the stage.

The agent passes each record to the lanes, and the lanes call the handler. `StageRunner` builds these parts and connects
nothing. `run_worker` (worker.py) starts one or more runners in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import structlog
from faust.types import TP as FaustTP

from ...schemas.errors import Relinquished, Transient
from ...schemas.outcomes import OutRecord
from ...schemas.topics import TABLES, group_of
from ..engine.codec import tenant_of_lane
from ..engine.crash_points import CrashPoint
from ..engine.decision import Rows
from ..engine.error_boundary import CrashCounter, ErrorBoundary, exception_of
from ..engine.handler import EventFilter, Handler, Stage
from ..engine.hangs import Hang
from ..engine.held_events import TP, BeyondTheEnd, beyond_the_end
from ..engine.lane_events import Routed
from ..engine.lanes import HELD_BYTES, Lanes
from ..engine.metrics import StageMetrics
from ..engine.no_rows import NoRows
from ..engine.parking import read_parked_keys
from ..engine.retry import BROKER, Calls, is_of_a_tenant
from ..engine.shared_deaths import NOTE_SECONDS, SharedDeaths
from ..engine.steps import EventStep, StepScheduler
from ..engine.unread import UnreadNotes
from ..log.markers import Range
from ..log.partition_count import CountCheck
from ..log.port import Log, PartitionBacklog, Position, Record
from .app import AppSettings, create_app
from .lane_items import EventPlace, LaneItem, LogRereads, record_of
from .sender import Sender
from .table import event_scope, open_rows
from .timer_ownership import TimerOwnership

log = structlog.get_logger(__name__)
ASSIGNMENT_POLL = 0.25
LAG_POLL = 2.0
PARKED_POLL = 1.0
AWAY = "away: "
"""Beginning of the readiness text of a stage whose components are unavailable."""
AWAY_SHOWN = 3
"""Maximum number of unavailable components that readiness names. Each tenant's model counts as one component."""
TENANTS_AWAY_MAX = 3
"""Number of tenants with an unavailable model at which the worker is not ready."""
SPARE = "a spare: there are more workers than partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """The settings of one worker of a stage. No other stage or worker uses `datadir`."""

    broker: str
    datadir: Path
    app: AppSettings
    in_flight: int = 64
    held_bytes: int = HELD_BYTES
    drain_timeout: float = 20.0
    crash: CrashPoint | None = None
    steps: StepScheduler = field(default_factory=StepScheduler)
    """The scheduler that all stages of the process share."""


class StageRunner:
    """One stage in this process. It builds the app, the sender and the rows, then the stage, then handler and lanes.

    `build_stage` gets this runner and returns the stage. The stage may keep the runner's `sender`, `committed` and
    `ahead`, and may call them only while the worker runs. `kept` returns the form of a refused record that its dead
    letter may contain.
    """

    def __init__(
        self,
        *,
        name: str,
        settings: RunnerSettings,
        log_client: Log,
        calls: Calls,
        metrics: StageMetrics,
        build_stage: Callable[[StageRunner], Stage[Any]],
        kept: Callable[[Record], Record] = lambda record: record,
        events: EventFilter | None = None,
    ) -> None:
        self.name = name
        self.calls = calls
        self.metrics = metrics
        self.in_flight = settings.in_flight
        self.steps = settings.steps
        self._settings = settings
        self._log = log_client
        self.app = create_app(
            name=group_of(name), broker=settings.broker, datadir=settings.datadir / "tables", settings=settings.app
        )
        self.app.log_client = log_client
        self.sender = Sender(self.app, calls)
        table = TABLES.get(name)  # type: ignore[call-overload]
        self._table = open_rows(self.app, table) if table is not None else None
        self.rows: Rows = self._table or NoRows()
        self._unread = UnreadNotes(stage=name, log_client=log_client, send=self.sender.durable, metrics=metrics)
        self._stage = build_stage(self)
        self._timers = TimerOwnership(self._stage, self.rows, crash=self.app.crash)
        self.app.sources = tuple(topic.name for topic in self._stage.reads)
        self._shared_deaths = SharedDeaths(stage=name, log_client=log_client, send=self._append)
        self._untold: list[tuple[Position, str, int]] = []
        """Hangs of the previous process that are not shared with other workers yet: position, reason, deaths."""
        self._learning: asyncio.Task[None] | None = None
        self._boundary = ErrorBoundary(
            crashes=CrashCounter(self._settings.datadir / "attempts"),
            shared=SharedDeaths(stage=name, log_client=log_client, send=self.sender.durable),
        )
        self.handler: Handler[Any] = Handler(
            stage=self._stage,
            rows=self.rows,
            calls=calls,
            boundary=self._boundary,
            send=self.sender,
            metrics=metrics,
            crash=self._settings.crash,
            committed=self.committed,
            decided=lambda: self._lanes.release_slot(),
            fence=self.app.check_lease,
            kept=kept,
            count=CountCheck(log_client, partitions=settings.app.partitions),
            ahead=self._ahead,
            cover=lambda count: self._lanes.cover(count),
            enter=self.steps.enter,
            events=events,
        )
        self.app.assignment_begins = self._assignment_begins
        self._lanes: Lanes[LaneItem] = Lanes(
            handle=self._handle,
            commit=self._commit,
            acknowledged=self._end_after_commit if self.handler.ends_after_commit() else None,
            first_at_or_after=lambda tp, offset: self._log.first_at_or_after(tp[0], tp[1], offset),
            passed_over=self._passed_over,
            crash=self.app.crash,
            crashed=self.app._crashed.is_set,
            interrupt=calls.interrupt,
            lease_ok=self.app.lease_ok,
            in_flight=self.in_flight,
            held_bytes=self._settings.held_bytes,
            has_room_again=lambda: self.app.consumer.has_room_again(),
            partitions=lambda: sum(topic in self.app.sources for topic, _ in self.app.assigned()),
            drain_timeout=self._settings.drain_timeout,
            rereads=LogRereads(log_client),
            shares=self.steps.shares,
        )
        self.app.lanes = self._lanes
        source = self.app.topic(
            *(topic.name for topic in self._stage.reads),
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )
        self.app.agent(source, name=f"{self.app.conf.id}-agent")(self._consume)
        self.app.on_partitions_revoked.connect(self._stop_rediscovery, weak=False)
        self.app.on_partitions_assigned.connect(self._note_assignment, weak=False)
        self.app.task(self._watch_assignment)
        self.app.task(self._background)
        self.app.task(self._watch_lag)
        if table is not None:
            self.app.task(self._retry_parked)

    def prepare(self) -> None:
        """Create this worker's folder."""
        (self._settings.datadir / "tables").mkdir(parents=True, exist_ok=True)

    # ------------------------------------------------------------------------------------------------ hangs
    @property
    def hang_folder(self) -> Path:
        """The folder for the files of the hang watchdog."""
        return self._settings.datadir / "attempts"

    def note_hang(self, hang: Hang) -> None:
        """Count a hang of the previous process durably in this worker's folder."""
        deaths = self._boundary.count_hang(hang.position, hang.why, hang.where)
        self._untold.append((hang.position, hang.why, deaths))

    async def tell_hangs(self) -> None:
        """Add the hangs to the counts that all workers share. If the broker is away, only this worker counts them."""
        while self._untold:
            position, why, own = self._untold.pop()
            self._boundary.learn_hung({position: await self._shared_deaths.add(position, why, own=own)})

    async def _learn_hung(self) -> None:
        """Read the hangs that all workers have counted. Events wait for this call, at most `NOTE_SECONDS`."""
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                self._boundary.learn_hung(await self._shared_deaths.hung())
        except (Transient, TimeoutError) as away:
            log.warning("hangs_not_learnt", stage=self.name, why=str(away))

    async def _append(self, record: OutRecord) -> None:
        await self._log.append(record.topic, key=record.key, value=record.value)

    # ------------------------------------------------------------------------------------------------ events
    async def _consume(self, stream: Any) -> None:
        """Run the agent. A failure crashes the app.

        This method never raises, because Faust acknowledges an event at which an agent fails, and continues.
        """
        failure = await exception_of(self._take(stream))
        if failure is not None:
            await self.app.crash(failure)

    async def _take(self, stream: Any) -> None:
        async for event in stream.noack().events():
            message = event.message
            record = record_of(message)
            hole = None
            if message.generation_id == self.app.consumer_generation_id:
                hole = self.handler.applied.receive(message.topic, message.partition, message.offset)
            lane = self.handler.lane(record)
            tenant = tenant_of_lane(lane)
            self._lanes.submit(
                (message.topic, message.partition),
                message.offset,
                lane,
                LaneItem(EventPlace(message.topic, message.partition), record, tenant, hole),
                committed=self.app.consumer._committed_offset.get(message.tp),
                current=message.generation_id == self.app.consumer_generation_id,
                tenant=tenant,
                size=record.size(),
                follows=message.follows,
                left=message.left,
            )
            self.metrics.held(self._lanes.stats.held, self._lanes.stats.held_bytes)

    def _assignment_begins(self) -> None:
        """Record the committed offsets at the start of an assignment, before its first event.

        Later offsets are no proof that an event was applied: they may have moved past records that the log has lost.
        """
        committed = {(tp.topic, tp.partition): at for tp, at in self.app.consumer._committed_offset.items()}
        table = self._table
        sources = [tp for tp in self.app.assigned() if tp[0] in self.app.sources]
        passed_over = {} if table is None else {tp: table.passed_over(*tp) for tp in sources}
        self.handler.applied.begin(committed, passed_over)

    async def _pass_over(self, topic: str, partition: int, hole: Range) -> None:
        """Record durably which offsets of a hole the log has lost, before the group's offset moves past them.

        A crash may have left outcomes of the lost records that are not applied yet. Only offsets below the start of the
        log are lost. Holes above the start (for example of transactions) contain no records. Raises Transient.
        """
        if self._table is None:
            return
        start = (await self._log.starts(topic))[partition]
        if start > hole[0]:
            lost = hole[0], min(start, hole[1])
            self.handler.applied.pass_over(topic, partition, lost)
            await self._table.note_lost(topic, partition, lost)
            log.info("offsets_passed_over", stage=self.name, topic=topic, partition=partition, offsets=lost)

    async def _handle(self, item: LaneItem) -> None:
        if self._learning is not None and not self._learning.done():
            await asyncio.wait([self._learning])
        if (hole := item.hole) is not None:
            position = item.record.position
            await self.calls.call(BROKER, lambda: self._pass_over(position.topic, position.partition, hole))
        with event_scope(item.place):
            step = EventStep(self.name, item.record.position)
            await self.steps.run(self._in_steps(item), tenant=item.tenant, step=step, size=item.record.size())

    async def _in_steps(self, item: LaneItem) -> None:
        await self.handler.run(item.record, self._decoded(item))

    def _decoded(self, item: LaneItem) -> Routed[Any]:
        if item.decoded is None:
            with self.steps.within(EventStep(self.name, item.record.position)):
                item.decoded = self.handler.route(item.record)
        return item.decoded

    def _ahead(self) -> Iterator[tuple[Record, Routed[Any]]]:
        """Iterate over the waiting events of the running event's lane, in order.

        The iteration ends at an event after a hole, because the hole must be recorded before that event is handled.
        """
        items = takewhile(lambda item: item.hole is None, self._lanes.queued())
        return ((item.record, self._decoded(item)) for item in items)

    async def _end_after_commit(self, tp: TP, offset: int) -> None:
        await self.app.consumer.commit()
        self.handler.passed("commit")

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        committed: bool = await self.app.consumer._commit_offsets(
            {FaustTP(topic, partition): offset for (topic, partition), offset in offsets.items()}
        )
        return committed

    # ------------------------------------------------------------------------------------------------ tasks
    async def _watch_assignment(self) -> None:
        """Let the stage find the waiting work of its new partitions when their tables are recovered."""
        try:
            while not self.app.should_stop:
                if self.app.ready():
                    self._timers.take(self._partitions_of(self.app.assigned()))
                await self.app.sleep(ASSIGNMENT_POLL)
        finally:
            self._timers.stop()

    async def _stop_rediscovery(self, app: Any, revoked: Any, **_: Any) -> None:
        self._timers.stop()

    async def _note_assignment(self, app: Any, assigned: Any, **_: Any) -> None:
        self._learning = asyncio.create_task(self._learn_hung())
        self._timers.assigned(self._partitions_of((tp.topic, tp.partition) for tp in assigned))

    def _partitions_of(self, tps: Iterable[TP]) -> frozenset[int]:
        first = self._stage.reads[0].name
        return frozenset(partition for topic, partition in tps if topic == first)

    async def _background(self) -> None:
        await self._stage.background()

    async def _retry_parked(self) -> None:
        """Load the parked keys of this worker's partitions, and retry their outcomes when due."""
        known: frozenset[int] = frozenset()
        while not self.app.should_stop:
            await self.app.sleep(PARKED_POLL)
            try:
                here = self._partitions_of(self.app.assigned()) if self.app.ready() else known
                if known != here:
                    known = await self._learn_parked(here)
                for record in self.handler.parked.due():
                    await self.sender.durable(record)
            except (Transient, Relinquished) as error:  # the keys become due again later
                log.warning("parked_keys_not_tried", stage=self.name, why=str(error))

    async def _learn_parked(self, assigned: frozenset[int]) -> frozenset[int]:
        """Load the parked keys of these partitions. Return the partitions. Raises Transient."""
        entries = await read_parked_keys(self._log)
        count = await self._log.partitions(self._stage.reads[0].name)
        self.handler.parked.assign(assigned, entries.values(), count=count or 1)
        return assigned

    async def _watch_lag(self) -> None:
        seen: dict[Any, int | None] = {}
        """Committed offsets at the last check."""
        while not self.app.should_stop:
            await self.app.sleep(LAG_POLL)
            consumer = self.app.consumer
            self.metrics.held(self._lanes.stats.held, self._lanes.stats.held_bytes)
            self.metrics.full_partitions(self._lanes.full())
            self.metrics.tenants(
                held={unquote(tenant): count for tenant, count in self._lanes.stats.held_by.items()},
                in_flight={unquote(tenant): count for tenant, count in self._lanes.running_by().items()},
                paused=[name.partition(":")[2] for name in self.calls.paused()],
                users_paused={name.partition(":")[2]: count for name, count in self.calls.paused_users().items()},
            )
            self.metrics.forget_lag(but=self.app.assigned())
            for tp, offset in dict(consumer._committed_offset).items():
                end = (
                    consumer.highwater(tp)
                    if self.app.ready() and (tp.topic, tp.partition) in self.app.assigned()
                    else None
                )
                if end is None:
                    continue
                behind = end - (offset or 0)
                self.metrics.lag(tp.topic, tp.partition, max(0, behind))
                if behind < 0:  # `end` may be of an older assignment, so the end is read from the log
                    await self._check_end(tp.topic, tp.partition, offset)
                elif behind and tp in seen and seen[tp] == offset and not self._lanes.held((tp.topic, tp.partition)):
                    await self._commit_past_markers(tp, offset or 0)
                seen[tp] = offset

    async def _check_end(self, topic: str, partition: int, committed: int) -> None:
        """Crash when the committed offset is beyond the end of the log.

        Without a new record in the partition, no other check finds this error.
        """
        try:
            ends = await self._log.ends(topic)
        except Transient:
            return
        if ends[partition] < committed:
            await self.app.crash(BeyondTheEnd(beyond_the_end((topic, partition), committed)))

    async def _commit_past_markers(self, tp: Any, committed: int) -> None:
        """Commit the end offset of a partition that has no unread record.

        Transaction markers are never delivered. If a marker is the last entry of its partition, the lag would not reach
        0 without this commit. The log is asked first, because a record may be fetched and not delivered yet.
        """
        try:
            ends = await self._log.ends(tp.topic)
            nothing = await self._log.first_at_or_after(tp.topic, tp.partition, committed) is None
            if nothing and (hole := self.handler.applied.hole_before(tp.topic, tp.partition, ends[tp.partition])):
                await self._pass_over(tp.topic, tp.partition, hole)
        except Transient:
            return
        if nothing and self.app.ready() and (tp.topic, tp.partition) in self.app.assigned():
            await self._passed_over((tp.topic, tp.partition), committed, ends[tp.partition])
            await self._commit({(tp.topic, tp.partition): ends[tp.partition]})

    async def _passed_over(self, tp: TP, first: int, until: int) -> None:
        """Report the offsets in [first, until) that retention deleted. A new group has not missed any record."""
        if first or self.committed(*tp) is not None:
            await self._unread.passed_over(*tp, first, until)

    # ------------------------------------------------------------------------------------------------ views
    def committed(self, topic: str, partition: int) -> int | None:
        """Return the committed offset (the next offset to read) of a partition; None when it is not known."""
        return self.app.consumer._committed_offset.get(FaustTP(topic, partition))  # type: ignore[no-any-return]

    def ahead(self, topic: str, partition: int) -> PartitionBacklog | None:
        """Return the unfinished records of a partition.

        None before the partition's first fetch, and for a partition of another worker.
        """
        tp = FaustTP(topic, partition)
        position = self._lanes.taken_until((topic, partition))
        if position is None:
            if (topic, partition) not in self.app.assigned():
                return None
            position = self.app.consumer._committed_offset.get(tp)
        end: int | None = self.app.consumer.highwater(tp)
        if end is None:
            return None
        # without a committed offset, the number of records that retention has left is unknown
        unread = 0 if position is None else max(0, end - position)
        return PartitionBacklog(unread, self._lanes.held((topic, partition)))

    def ready(self) -> tuple[bool, str]:
        """Return whether this stage is ready, and the reason if it is not.

        A spare worker is ready (`StageApp.why_not_ready`). A worker with parked keys, with paused tenants, or with
        unavailable models of fewer than `TENANTS_AWAY_MAX` tenants is ready, too; the text then names these problems.
        """
        why = self.app.why_not_ready()
        if why:
            return False, why
        away = self.calls.away()
        if away:
            why = "; ".join(f"{AWAY}{name}: {failure}" for name, failure in sorted(away.items())[:AWAY_SHOWN])
            why += f"; and {len(away) - AWAY_SHOWN} more" if len(away) > AWAY_SHOWN else ""
            return all(is_of_a_tenant(name) for name in away) and len(away) < TENANTS_AWAY_MAX, why
        if not self.app.assigned():
            return True, SPARE
        told = (self.handler.parked.told(), self.calls.paused_told(), self.calls.remark)
        return True, "; ".join(each for each in told if each)

"""Recovery of tables from their changelogs: Faust's recovery with four corrections.

Line numbers refer to faust-streaming 0.15.3:

- `faust/tables/recovery.py:649` resumes the source partitions, then seeks them to the committed offsets, then calls
  `flow_control.resume()`. That call clears every queue while events already flow, so events are lost. Here the seek
  comes first, no queue is cleared while events flow, and the sources are resumed last. Faust's `_resume_streams` (for a
  stage without a table) has the same fault and is replaced, too.
- `mode/services.py:796` returns "stopped" also on a time-out. So a recovery during a broker outage ended silently, and
  the worker stayed alive and idle forever. Here the worker crashes. A watchdog crashes the worker when the recovery
  makes no progress for another reason.
- `faust/tables/recovery.py:925` waits for the record at the offset high water − 1. This record is never delivered if
  compaction removed it, or if it is a transaction marker. Here a load ends when the position after the last read
  reaches the end (`bulk_load.load`).
- `faust/tables/recovery.py:855` handles each entry separately. Here the active partitions are loaded in bulk, one after
  the other, before any event flows. Only the standbys are read by Faust's method, while events are handled.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

import structlog
from aiokafka.errors import IllegalStateError
from faust.tables import TableManager
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP
from mode import Service

from ...schemas.errors import Fatal, Relinquished, Transient
from ..log.markers import MARKER_KEY, Marker
from .bulk_load import READ_WAIT, BulkLoad, ChangelogSource, load
from .bulk_writes import BulkWrites
from .changelog_check import (
    ChangelogState,
    another_topic,
    lost,
    not_whole,
    of_another_count,
    outdated,
    sources_of,
    unreadable,
)
from .table import DurableTable

log = structlog.get_logger(__name__)


class StageRecovery(Recovery):
    """Faust's recovery with the corrections above."""

    #: seconds without progress of a rebalance or recovery after which the worker crashes; its supervisor restarts it
    stall_timeout: float = 120.0
    #: seconds between two checks of the watchdog
    watch_interval: float = 5.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._states: dict[TP, ChangelogState] = {}
        self._checked_at = 0.0
        self._known: set[TP] = set()
        """Changelogs whose marker this process has checked."""
        self._loading = asyncio.Lock()
        """A load holds this lock until the end of its last write, even if the load is interrupted."""

    async def _wait(self, coro: Any, timeout: float | None = None) -> None:
        try:
            await super()._wait(coro, timeout=timeout)
        except ServiceStopped:
            if not self.should_stop and not self.app.should_stop:
                await self.app.crash(
                    Transient("broker", f"table recovery: a step took longer than {timeout} s", remedy="is it up?")
                )
            raise

    @Service.task  # type: ignore[untyped-decorator]
    async def _watchdog(self) -> None:
        seen: Any = None
        since = time.monotonic()
        while not self.should_stop:
            await self.sleep(self.watch_interval)
            now = (
                self.app.consumer_generation_id,
                self.app.rebalancing,
                sum(offset or 0 for offset in self.active_offsets.values()),
            )
            if not self.app.rebalancing or now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > self.stall_timeout:
                await self.app.crash(Transient("broker", f"no progress in recovery for {self.stall_timeout:.0f} s"))
                return

    @Service.task  # type: ignore[untyped-decorator]
    async def _restart_recovery(self) -> None:
        """Run one recovery after each assignment. A new assignment interrupts the running recovery."""
        while not self.should_stop:
            if await self.wait_for_stopped(self.signal_recovery_start):
                return
            self.signal_recovery_start.clear()
            try:
                await self._recover(self._generation_id)
            except (RebalanceAgain, IllegalStateError):
                continue
            except ServiceStopped:
                return
            except (Fatal, Transient, Relinquished) as error:
                await self.app.crash(error)
                return

    async def _recover(self, generation_id: int) -> None:
        limit = float(self.app.conf.broker_request_timeout)
        if not self.tables:
            await self._resume_streams(generation_id)
            return
        self._set_recovery_started()
        self.standbys_pending = True
        self.flush_buffers()  # the buffers of standbys
        if self.app._producer is not None:
            await self._wait(self.app._producer.flush(), timeout=limit)
        consumer, tps = self.app.consumer, self.active_tps
        await self._wait(self._build_highwaters(consumer, tps, self.active_highwaters, "active"), limit)
        async with self._loading:
            pass
        await self._wait(self._find_states(generation_id), limit)
        async with consumer.changelogs() as changelog:
            for tp in sorted(tps):
                await self._wait(self._restore(self._states[tp], changelog, generation_id))
        self._set_recovery_ended()
        if self.standby_tps:
            await self._start_standbys(limit)
        await self._wait(self.on_recovery_completed(generation_id))

    def _is_current(self, generation_id: int) -> bool:
        return bool(self.app.consumer_generation_id == generation_id)

    def _check_current(self, generation_id: int) -> None:
        """Raise `RebalanceAgain` when a newer assignment exists. It opens and closes the local tables in threads, and a
        database that is opened twice is an error."""
        if not self._is_current(generation_id):
            raise RebalanceAgain

    async def _find_states(self, generation_id: int) -> None:
        """Determine each partition's state. Raises `ChangelogLost` when reading cannot continue from a local table."""
        starts = await self.app.consumer.earliest_offsets(*self.active_tps)
        self._check_current(generation_id)
        self._states, self._checked_at = {}, time.time()
        self._known &= self.active_tps  # a partition that another worker owned meanwhile is checked again
        for tp in self.active_tps:
            table: DurableTable = self.tp_to_table[tp]
            have = self.active_offsets[tp]
            local = table.marker(tp.partition)
            if local is not None and local.partitions not in (None, self._partitions):
                log.warning("table_of_another_count", table=table.name, partition=tp.partition, count=local.partitions)
                await table.forget(tp.partition)  # the changelog is read from the start: rows have moved or will move
                self._check_current(generation_id)
                have = None
            state = ChangelogState(tp, starts[tp] or 0, self.active_highwaters[tp] + 1, -1 if have is None else have)
            is_outdated = outdated(state, complete_at=table.complete_at(tp.partition), now=self._checked_at)
            if is_outdated and unreadable(state) is None:
                log.warning("table_outdated", table=table.name, partition=tp.partition, remedy="none: it is read again")
                await table.forget(tp.partition)
                self._check_current(generation_id)
                state = replace(state, have=-1)
            self._states[tp], self.active_offsets[tp] = state, state.have
        self._raise_if_lost({tp: unreadable(state) for tp, state in self._states.items()}, generation_id)

    async def _restore(self, state: ChangelogState, changelog: ChangelogSource, generation_id: int) -> None:
        """Load the entries of a partition that the local store does not have."""
        tp, began = state.tp, time.monotonic()
        if state.have + 1 >= state.end:
            return
        wanted = BulkLoad(tp, max(state.have + 1, state.start), state.end)
        table: DurableTable = self.tp_to_table[tp]

        def loaded(offset: int) -> None:
            self.active_offsets[tp] = offset

        async with self._loading:
            self._check_current(generation_id)
            with table.store_errors():
                async with BulkWrites(table.data, tp.partition) as target:
                    count = await load(
                        wanted,
                        changelog=changelog,
                        target=target,
                        current=lambda: self._is_current(generation_id),
                        loaded=loaded,
                    )
        log.info(
            "table_restored",
            table=table.name,
            partition=tp.partition,
            entries=count,
            from_offset=wanted.start,
            seconds=round(time.monotonic() - began, 3),
        )

    async def _check_whole(self, generation_id: int) -> None:
        """Check that each changelog partition is whole, and write a marker to each new partition.

        Runs after the load, when the committed offsets are known, and before any event flows. Raises `ChangelogLost`
        when rows are missing, and `CountChanged` when rows are placed by another partition count.
        """
        await self.app.check_count()
        if not self._is_current(generation_id):
            return  # the next assignment opens and closes the local tables
        found: dict[TP, str | None] = {}
        markers: dict[TP, Marker | None] = {}
        for tp, state in self._states.items():
            table: DurableTable = self.tp_to_table[tp]
            marker = markers[tp] = table.marker(tp.partition)
            committed = sources_of(self.app.consumer._committed_offset, self.tables.changelog_topics, tp.partition)
            was_whole = table.was_whole(tp.partition)
            found[tp] = not_whole(state, marker, committed, was_whole=was_whole)
            if marker is not None and was_whole and tp not in self._known and not await self._has_marker(marker, state):
                found[tp] = another_topic(state)
            if not self._is_current(generation_id):
                return
        self._raise_if_lost(found, generation_id)
        await self._check_counts(markers, generation_id)
        if not self._is_current(generation_id):
            return  # the result belongs to an older assignment
        for tp, state in self._states.items():
            table, marker, count = self.tp_to_table[tp], markers[tp], self._partitions
            if marker is None:
                marker = Marker(identity=uuid.uuid4().hex, whole_from=state.end, written_at=state.end, partitions=count)
                await table.write_marker(tp.partition, marker)
            elif marker.partitions is None:  # an earlier version wrote it: add the current count
                marker = marker.model_copy(update={"written_at": state.end, "partitions": count})
                await table.write_marker(tp.partition, marker)
            if tp not in self._known:
                table.note_whole(tp.partition, marker)
                self._known.add(tp)
            table.note_complete(tp.partition, self._checked_at)

    @property
    def _partitions(self) -> int:
        return int(self.app.conf.topic_partitions)

    async def _check_counts(self, markers: Mapping[TP, Marker | None], generation_id: int) -> None:
        """Check that the rows are placed by this worker's partition count. Raises `CountChanged`.

        A partition without a marker is new. If another partition of the topic has a marker, the new partition was added
        later, and the count in that marker must be this worker's count.
        """
        found: dict[TP, int | None] = {}
        for tp, marker in markers.items():
            if marker is not None and marker.partitions not in (None, self._partitions):
                found[tp] = marker.partitions
        new = [tp for tp, marker in markers.items() if marker is None]
        beside = {topic: await self.app.some_marker(topic) for topic in {tp.topic for tp in new}}
        for tp in new:
            other = beside[tp.topic]
            if other is not None and other.partitions != self._partitions:
                found[tp] = other.partitions
        if found and self._is_current(generation_id):
            raise of_another_count(self.tp_to_table[next(iter(found))].name, found, self._partitions)

    async def _has_marker(self, marker: Marker, state: ChangelogState) -> bool:
        """Return whether the log still has the local table's marker."""
        at = max(marker.written_at, state.start)
        if state.start > marker.written_at:
            log.error(
                "changelog_was_cut",
                topic=state.tp.topic,
                partition=state.tp.partition,
                starts_at=state.start,
                remedy="only this worker's local table has all rows: restore the topic from a backup before the "
                "partition moves to another worker",
            )
            return True
        async with self.app.consumer.changelogs() as changelog:
            while at < state.end:
                entries, after = await changelog.read(state.tp, at, READ_WAIT)
                for entry in entries:
                    if entry.key == MARKER_KEY.encode():
                        return Marker.of(entry.value) == marker
                at = max(at, after)
        return False

    def _raise_if_lost(self, found: Mapping[TP, str | None], generation_id: int) -> None:
        missing = {tp: problem for tp, problem in found.items() if problem is not None}
        if missing and self._is_current(generation_id):
            table = self.tp_to_table[next(iter(missing))]
            stage = self.app.conf.id.removeprefix("memory-")
            raise lost(table.name, stage, missing, folder=self.app.conf.tabledir)

    async def _start_standbys(self, limit: float) -> None:
        consumer = self.app.consumer
        await self._wait(self._build_offsets(consumer, self.standby_tps, self.standby_offsets, "standby"), limit)
        await self._wait(self._seek_offsets(consumer, self.standby_tps, self.standby_offsets, "standby"), limit)
        await self._wait(self._build_highwaters(consumer, self.standby_tps, self.standby_highwaters, "standby"), limit)
        consumer.resume_partitions(self.standby_tps)
        if not self.app.flow_control.is_active():  # if it is active, resume() would clear queues with events
            self.app.flow_control.resume()
        consumer.resume_flow()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Start the flow of events. Called when the tables of this assignment are up to date."""
        app = self.app
        await app.on_rebalance_complete.send()
        self._set_recovery_ended()
        done: list[Awaitable[None]] = [
            table.on_recovery_completed(self.actives_for_table[table], self.standbys_for_table[table])
            for table in self.tables.values()
        ]
        await asyncio.gather(*done)
        if await self._start_sources(generation_id):
            self.tables.on_actives_ready()
            if not app.assignor.assigned_standbys():
                self.tables.on_standbys_ready()
            app.on_rebalance_end()
            log.info("worker_ready", app=app.conf.id, partitions=len(app.consumer.assignment()))

    async def _resume_streams(self, generation_id: int = 0) -> None:
        app = self.app
        await app.on_rebalance_complete.send()
        await self.app.check_count()
        if await self._start_sources(generation_id):
            self.tables.on_actives_ready()
            self.tables.on_standbys_ready()
            app.on_rebalance_end()
            log.info("worker_ready", app=app.conf.id, partitions=len(app.consumer.assignment()))

    async def _start_sources(self, generation_id: int) -> bool:
        """Seek, then resume the flow and the sources. Return False if another rebalance began.

        The recovery after that rebalance then resumes the flow and the sources.
        """
        app, consumer = self.app, self.app.consumer
        if not self._is_current(generation_id):
            return False
        assignment = consumer.assignment()
        if assignment:  # the source partitions are still paused
            await self._wait(consumer.perform_seek(), timeout=app.conf.broker_request_timeout)
        if not self._is_current(generation_id):
            return False
        app.assignment_begins()
        await self._wait(self._check_whole(generation_id))
        if not self._is_current(generation_id):
            return False
        self.completed.set()
        if not app.flow_control.is_active():  # if it is active, resume() would clear queues with events
            app.flow_control.resume()
        consumer.resume_flow()
        consumer.resume_partitions({tp for tp in assignment if not self._is_changelog_tp(tp)})
        await app._fetcher.maybe_start()
        return True


class StageTableManager(TableManager):
    """Faust's table manager with `StageRecovery`."""

    _recovery: StageRecovery | None = None

    async def on_start(self) -> None:
        # Faust first sleeps for a second (`faust/tables/manager.py:138`), for tables that are registered late. Our
        # tables are registered before the app starts, and the sleep would delay every worker.
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> StageRecovery:
        if self._recovery is None:
            self._recovery = StageRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

"""Recovery of tables from their changelogs: never silently ended, never in the wrong order, never stuck at a gap.

Lines are those of faust-streaming 0.15.3:

- `faust/tables/recovery.py:649` resumes the source partitions, then seeks them to the committed offsets, then calls
  `flow_control.resume()`, which clears every queue while the flow already runs: events are thrown away. Here: seek
  first, clear nothing while the flow runs, sources last. `_resume_streams` (a stage without a table) had it too.
- `mode/services.py:796` answers "stopped" on a time-out too, so a recovery during a broker outage ended silently: the
  worker was alive and idle for ever. Here it crashes, and a watchdog crashes it for any stall that nobody knows yet.
- `faust/tables/recovery.py:925` waits for offset high water − 1; when compaction or a transaction marker took that
  one, it never comes. Here the consumer's position decides, once nothing moves and nothing is in hand.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import structlog
from aiokafka.errors import KafkaError
from faust.exceptions import ConsumerNotStarted
from faust.tables import TableManager
from faust.tables.recovery import Recovery, ServiceStopped
from mode import Service

from ..schemas.errors import Transient

log = structlog.get_logger(__name__)


class StageRecovery(Recovery):
    """Faust's recovery with the three mends."""

    #: seconds without any progress of a rebalance or recovery, after which the worker crashes: restarted beats idle
    stall_timeout: float = 120.0
    #: seconds between two looks of the watchdog
    watch_interval: float = 5.0
    #: seconds between two looks at a gap, and how many quiet ones in a row it takes
    gap_interval: float = 1.0
    gap_quiet: int = 3

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
    async def _skip_gap_at_end(self) -> None:
        seen: Any = None
        quiet = 0
        while not self.should_stop:
            await self.sleep(self.gap_interval)
            # Quiet: nothing fetched is on its way, and no offset of any partition moved. The position alone is not
            # enough: it moves when records are fetched, not when they are applied.
            now = tuple(self.active_offsets.items())
            if (
                not self.in_recovery
                or self.signal_recovery_start.is_set()
                or now != seen
                or getattr(self.app.consumer, "in_hand", 0)
                or not self.tables.changelog_queue.empty()
            ):
                seen, quiet = now, 0
                continue
            quiet += 1
            if quiet >= self.gap_quiet and self.need_recovery():
                await self._skip_gaps()

    async def _skip_gaps(self) -> None:
        consumer = self.app.consumer
        for tp, highwater in list(self.active_highwaters.items()):
            have = self.active_offsets.get(tp)
            if have is None or highwater is None or have >= highwater:
                continue
            try:
                position = await consumer.position(tp)
            except (KafkaError, ConsumerNotStarted):  # not assigned any more: the next recovery looks again
                return
            if position is not None and position > highwater:
                log.warning("changelog_ends_in_a_gap", topic=tp.topic, partition=tp.partition, have=have, end=highwater)
                self.active_offsets[tp] = highwater
        if self.in_recovery and not self.need_recovery():
            self.flush_buffers()
            self._set_recovery_ended()
            self.signal_recovery_end.set()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Called when the tables of this assignment are up to date."""
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
        if await self._start_sources(generation_id):
            self.tables.on_actives_ready()
            self.tables.on_standbys_ready()
            app.on_rebalance_end()
            log.info("worker_ready", app=app.conf.id, partitions=len(app.consumer.assignment()))

    async def _start_sources(self, generation_id: int) -> bool:
        """Seek, then flow, then the source partitions. False when another rebalance has begun: its recovery resumes."""
        app, consumer = self.app, self.app.consumer
        if app.consumer_generation_id != generation_id:
            return False
        assignment = consumer.assignment()
        if assignment:  # its source partitions are still paused
            await self._wait(consumer.perform_seek(), timeout=app.conf.broker_request_timeout)
        if app.consumer_generation_id != generation_id:
            return False
        self.completed.set()
        if not app.flow_control.is_active():  # resume() clears the queues
            app.flow_control.resume()
        consumer.resume_flow()
        consumer.resume_partitions({tp for tp in assignment if not self._is_changelog_tp(tp)})
        await app._fetcher.maybe_start()
        return True


class StageTableManager(TableManager):
    """Faust's table manager with `StageRecovery`."""

    _recovery: StageRecovery | None = None

    async def on_start(self) -> None:
        # Faust sleeps a second first (`faust/tables/manager.py:138`), for tables that are registered late. Ours are
        # there before the app starts, and every worker would be a second later.
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> StageRecovery:
        if self._recovery is None:
            self._recovery = StageRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

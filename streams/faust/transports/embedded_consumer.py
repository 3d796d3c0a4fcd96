"""Faust's consumer over the log on disk: one process owns all partitions of the group.

Faust's assignor, table recovery and assignment callbacks are used unchanged. Only the group coordinator is replaced.
The group's lock file ensures that the group has one process, and `_rebalance` runs when the subscription or the topics
change. A fetched record is delivered or given back. Giving back moves the position back to the record, so no offset is
skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import structlog
from faust.exceptions import ConsumerNotStarted
from faust.transport import base
from faust.types import TP, ConsumerMessage
from mode import Service

from ....schemas.errors import Transient
from ...log import group_lock
from ...log.kafka_rules import choose_partition
from ...log.log_registry import close_log, open_log
from ...log.port import Headers
from ...log.sqlite_log import SqliteLog
from ...log.sqlite_tables import LogRow
from .coverage import Coverage
from .embedded_changelog import EmbeddedChangelogReader
from .lane_feed import AsksLanes, left_of, to_come

log = structlog.get_logger(__name__)

_MEMBER = "embedded"
_CREATE_TIME = 0


class _Cluster:
    """The part of Kafka's metadata that Faust's assignor uses."""

    def __init__(self, opened: SqliteLog) -> None:
        self._opened = opened

    def partitions_for_topic(self, name: str) -> set[int] | None:
        topic = self._opened.topic(name)
        return None if topic is None else set(range(len(topic.parts)))


class EmbeddedConsumer(AsksLanes, base.Consumer):
    """A consumer that delivers every record of the group's topics in order, from the committed offsets on."""

    #: Maximum number of records, and maximum bytes, that one fetch returns of a partition.
    max_records: int = 500
    max_bytes: int = 1 << 20
    #: Seconds to wait while another process still holds the group.
    group_wait: float = group_lock.WAIT_SECONDS
    #: Seconds between two clean-ups of the log (retention, compaction).
    clean_interval: float = 60.0
    changelog_suffix: str = "-changelog"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._log: SqliteLog | None = None
        self._release: Callable[[], None] | None = None
        self._unwatch: Callable[[], None] | None = None
        self._subscribed: frozenset[str] = frozenset()
        self._assigned: frozenset[TP] = frozenset()
        self._parts: dict[TP, int] = {}
        self._positions: dict[TP, int] = {}
        self._coverage = Coverage()
        self._generation = 0
        self._wake = asyncio.Event()
        self._rebalance_wanted = asyncio.Event()

    # ------------------------------------------------------------------------------------------------------- life

    async def on_start(self) -> None:
        await super().on_start()
        opened = await open_log(self.transport.folder)
        try:
            self._release = await group_lock.hold(opened.folder, self.app.conf.id, wait=self.group_wait)
        except BaseException:
            await close_log(opened)
            raise
        self._log = opened
        self._unwatch = opened.watch(self._on_change)

    async def on_stop(self) -> None:
        """Let Faust commit, then release the group's lock."""
        try:
            if self._log is not None:
                await super().on_stop()
        finally:
            opened, self._log = self._log, None
            self._wake.set()
            if self._unwatch is not None:
                self._unwatch()
            if self._release is not None:
                self._release()
            self._unwatch = self._release = None
            if opened is not None:
                await close_log(opened)

    async def on_restart(self) -> None:
        await super().on_restart()
        self._assigned = frozenset()
        self._parts.clear()
        self._positions.clear()

    def _opened(self) -> SqliteLog:
        if self._log is None:
            raise ConsumerNotStarted("the log is not open yet")
        return self._log

    def _on_change(self, changed: frozenset[int] | None) -> None:
        if self._log is None:
            return  # a late call: the watch has ended
        if changed is None and self._generation and self._parts != self._current_parts():
            self._rebalance_wanted.set()
        if changed is None or not changed.isdisjoint(self._parts.values()):
            self._wake.set()

    # -------------------------------------------------------------------------------------------------- assignment

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Request an assignment. Do not wait for it, because Faust's assignment callbacks wait for this call."""
        self._subscribed = frozenset(topics)
        self._rebalance_wanted.set()

    def assignment(self) -> set[TP]:
        return set(self._assigned)

    def _current_parts(self) -> dict[TP, int]:
        opened = self._opened()
        found = (opened.topic(name) for name in sorted(self._subscribed))
        return {TP(topic.name, n): part for topic in found if topic for n, part in enumerate(topic.parts)}

    @Service.task  # type: ignore[untyped-decorator]
    async def _coordinate(self) -> None:
        while not self.should_stop:
            if await self.wait_for_stopped(self._rebalance_wanted):
                return
            self._rebalance_wanted.clear()
            await self._rebalance()

    async def _rebalance(self) -> None:
        """Run the steps of a Kafka rebalance with this process as the only member."""
        app, opened = self.app, self._opened()
        opened.refresh()
        app.on_rebalance_start()
        await self.on_partitions_revoked(set(self._assigned))
        self._parts = self._current_parts()
        missing = self._subscribed - {tp.topic for tp in self._parts}
        if missing:
            log.warning("topics_missing", topics=sorted(missing), remedy="memstream topics create")
        self._generation += 1
        app.consumer_generation_id = self._generation
        metadata = app.assignor.metadata({tp.topic for tp in self._parts})
        given = app.assignor.assign(_Cluster(opened), {_MEMBER: metadata})[_MEMBER]
        app.assignor.on_assignment(given)
        self._assigned = frozenset(TP(topic, partition) for topic, partition in given.partitions())
        self._positions = {}
        self._seek_committed(self._assigned)
        await self.on_partitions_assigned(set(self._assigned), self._generation)

    async def seek_to_committed(self) -> Mapping[TP, int | None]:
        """Seek the source partitions to their committed offsets. Changelogs keep the offsets of the recovery."""
        return self._seek_committed(tp for tp in self._assigned if not self._is_changelog_tp(tp))

    def _seek_committed(self, wanted: Iterable[TP]) -> Mapping[TP, int | None]:
        opened = self._opened()
        tps = list(wanted)
        parts = [self._parts[tp] for tp in tps]
        committed = opened.committed(self.app.conf.id, parts)
        latest = self.app.conf.consumer_auto_offset_reset == "latest"
        fallback = opened.ends(parts) if latest else opened.starts(parts)
        for tp, offset, otherwise in zip(tps, committed, fallback, strict=True):
            self._positions[tp] = otherwise if offset is None else offset
        self._wake.set()
        return dict(zip(tps, committed, strict=True))

    # ------------------------------------------------------------------------------------------------------- flow

    def resume_flow(self) -> None:
        super().resume_flow()
        self._wake.set()

    def stop_flow(self) -> None:
        super().stop_flow()
        self._wake.set()

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        super().resume_partitions(tps)
        self._wake.set()

    def on_buffer_drop(self, tp: TP) -> None:
        super().on_buffer_drop(tp)
        self._wake.set()

    def has_room_again(self) -> None:
        """Fetch immediately from a partition for which the lanes had no room."""
        self._wake.set()

    # ------------------------------------------------------------------------------------------------------ fetching

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """Deliver records as Faust's method does, but give back records that cannot be delivered.

        Records cannot be delivered when the flow stops, a partition is paused, or a new assignment begins. Faust would
        drop such records, treat the hole as compaction, and commit past the hole.
        """
        if not self.flow_active:
            await self.wait(self.can_resume_flow)
        active, generation = self._get_active_partitions(), self._generation
        records = await self._getmany(frozenset(active), timeout)
        if self.should_stop:
            return
        given_back: dict[TP, int] = {}
        left = left_of(records)
        for tp, (row, follows) in self.scheduler.iterate(records):
            left[tp] -= 1
            if (
                tp not in given_back  # after a given-back record, all later records of its partition are given back
                and self.flow_active
                and self._generation == generation
                and (tp in active or tp in self._buffered_partitions)
            ):
                self.app.monitor.track_tp_end_offset(tp, highwater := self.highwater(tp))
                message = self._to_message(tp, row)
                message.follows, message.left = follows, to_come(left[tp], row.offset, highwater)
                yield tp, message
            else:
                given_back.setdefault(tp, row.offset)
        if self._generation == generation:  # otherwise the new assignment starts from the committed offsets
            for tp, offset in given_back.items():
                self._positions[tp] = min(offset, self._positions.get(tp, offset))

    async def _getmany(
        self, active_partitions: Iterable[TP] | None, timeout: float
    ) -> dict[TP, list[tuple[LogRow, int]]]:
        """Return the next records of these partitions, except partitions for which the lanes have no room.

        Each record comes with its `follows` (coverage.py): there is no record from this offset up to the record. If
        there is no record yet, wait at most `timeout` seconds, or until the log, the flow or the set of active
        partitions changes, and return no record. The caller then calls again.
        """
        opened = self._opened()
        self._wake.clear()
        if not self.flow_active:
            return {}
        starts = {
            tp: self._positions[tp]
            for tp in active_partitions or ()
            if tp in self._positions and self._positions[tp] < opened.end(self._parts[tp]) and self.has_room(tp)
        }
        if not starts:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)
            return {}
        records: dict[TP, list[tuple[LogRow, int]]] = {}
        for tp, start in starts.items():
            part = self._parts[tp]
            rows, end = opened.read(
                part, start, opened.end(part), max_records=self.max_records, max_bytes=self.max_bytes
            )
            self._positions[tp] = end
            if rows and rows[0].offset > start:  # as on Kafka, deleted records are no part of the fetch
                start = max(start, min(opened.starts([part])[0], rows[0].offset))
            if found := self._coverage.extended(tp, start, end, rows):
                records[tp] = found
        return records

    def changelogs(self) -> EmbeddedChangelogReader:
        """Return the reader for a bulk load (`bulk_load.ChangelogSource`)."""
        return EmbeddedChangelogReader(self._opened(), self._parts)

    def _to_message(self, tp: TP, record: LogRow) -> ConsumerMessage:
        headers: Headers = record.headers
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            record.offset,
            record.timestamp / 1000.0,
            _CREATE_TIME,
            headers,
            record.key,
            record.value,
            None,
            -1 if record.key is None else len(record.key),
            -1 if record.value is None else len(record.value),
            tp,
            generation_id=self.app.consumer_generation_id,
        )

    # ------------------------------------------------------------------------------------------------------ offsets

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        mine = {self._parts[tp]: offset for tp, offset in offsets.items() if tp in self._assigned}
        if mine:
            await self._opened().commit(self.app.conf.id, mine)
        return True

    async def _seek(self, partition: TP, offset: int) -> None:
        self._positions[partition] = offset
        self._wake.set()

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        for tp, offset in partitions.items():
            self._positions[tp] = offset
            if offset > 0:
                self._read_offset[tp] = offset
            else:
                self._read_offset.pop(tp, None)
        self._wake.set()

    async def seek_to_beginning(self, *partitions: TP) -> None:
        self._positions.update(await self.earliest_offsets(*partitions))
        self._wake.set()

    async def position(self, tp: TP) -> int | None:
        return self._positions.get(tp)

    def highwater(self, tp: TP) -> int:
        return self._opened().end(self._parts[tp])

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        ends = self._opened().ends([self._parts[tp] for tp in partitions])
        return dict(zip(partitions, ends, strict=True))

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        starts = self._opened().starts([self._parts[tp] for tp in partitions])
        return dict(zip(partitions, starts, strict=True))

    # ------------------------------------------------------------------------------------------------------- topics

    def topic_partitions(self, topic: str) -> int | None:
        found = self._opened().topic(topic)
        return None if found is None else len(found.parts)

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        found = self._opened().topic(topic)
        return None if found is None else choose_partition(found, key, partition)

    async def create_topic(self, topic: str, partitions: int, replication: int, **kwargs: Any) -> None:
        await self.app.producer.create_topic(topic, partitions, replication, **kwargs)

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    @Service.task  # type: ignore[untyped-decorator]
    async def _clean(self) -> None:
        """Apply retention and compaction periodically.

        A changelog is cleaned only by its own app, and only when the tables are up to date, because a table must read a
        tombstone before compaction removes the tombstone.
        """
        while not self.should_stop:
            await self.sleep(self.clean_interval)
            if self.should_stop or not self._generation or self.app.rebalancing or self.app.in_recovery:
                continue
            own = self.app.tables.changelog_topics
            topics = [
                name for name in self._opened().topics() if name in own or not name.endswith(self.changelog_suffix)
            ]
            try:
                await self._opened().clean(topics)
            except Transient as exc:
                log.warning("log_clean_failed", error=str(exc))

"""Growth of the topics (`memstream topics grow`): add partitions, and move every row to the partition of its key.

All topics with the deployment's partition count grow together, because a key must have the same partition number in
each of them. docs/design/growth.md describes the order of the steps, and the state after a crash in each step. The
command may be interrupted at any point and called again. It then determines the remaining work from the log.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import reduce

from faust.types import TP

from ...schemas.cloudevents import MOVED_HEADER
from ...schemas.errors import Fatal
from ...schemas.row_keys import SESSION_EPOCHS
from ...schemas.session_epochs import SessionEpochs
from ...schemas.topics import (
    FACTS,
    STAGES,
    TURNS,
    StageName,
    Topic,
    catalogue,
    changelog_of,
    group_of,
    read_by,
)
from ..log.append_window import AppendWindow
from ..log.growth_plan import (
    SHOWN,
    CompactedPartition,
    KeyOf,
    MovePlan,
    MoveStep,
    event_key,
    misplaced_rows,
    own_key,
    plan_moves,
    steps,
)
from ..log.markers import TopicOffsets
from ..log.partitioner import partition_for
from ..log.port import Log, Record
from ..log.waiting_records import WaitingRange, in_order, waiting_ranges
from .changelog_check import ChangelogState, not_whole
from .growth_markers import GrowthMarkers, was_added

WaitingTurns = Callable[[Mapping[bytes, bytes]], int]
"""Function that counts the turns waiting to be observed in these rows of the observer's table."""
WAITING_PARTS = 4
"""Number of parts in the key of a waiting turn's row."""


class GrowthRefused(Exception):
    """The topics cannot grow now. The message names the step that is needed first (exit code 2)."""


class StillWaiting(Exception):
    """Some records are not observed or reflected yet (exit code 1)."""


@dataclass(frozen=True, slots=True)
class GrownTopic:
    """The result for one topic. `rows`: number of rows of a compacted topic. `moved`: number of moved rows."""

    topic: str
    partitions_before: int
    partitions: int
    rows: int = 0
    moved: int = 0
    sent_again: int = 0
    """Number of unhandled records that were sent again to the partitions of their keys."""


@dataclass(slots=True)
class _Table:
    """A compacted topic: a changelog and the stage that writes it, or memory.facts (`stage` is None)."""

    topic: str
    stage: StageName | None
    key_of: KeyOf
    image: list[CompactedPartition]
    plan: MovePlan

    @property
    def counts(self) -> set[int]:
        """The partition counts in the topic's markers."""
        return {part.marker.partitions for part in self.image if part.marker and part.marker.partitions}


def growing_topics() -> tuple[Topic, ...]:
    """Return the topics that grow, in the order of growth.

    Changelogs come first: from then on, a worker with the earlier partition count refuses to start. memory.turns comes
    last: until then, a worker with the new partition count refuses to start (`topic_admin`).
    """
    topics = [topic for topic in catalogue() if topic.partitions is None]
    changelogs = {topic.name for stage in STAGES if (topic := changelog_of(stage)) is not None}
    return tuple(sorted(topics, key=lambda topic: (topic.name not in changelogs, topic.name == TURNS.name)))


class TopicGrowth:
    """One growth to `partitions`. `tell` receives a line of progress at each step."""

    def __init__(
        self, log: Log, *, partitions: int, waiting_turns: WaitingTurns, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self._log = log
        self._partitions = partitions
        self._waiting_turns = waiting_turns
        self._tell = tell
        self._counts: dict[str, int] = {}
        self._sent_again: dict[str, int] = {}
        self._markers = GrowthMarkers(log, partitions=partitions, tell=tell)
        self._ran: frozenset[StageName] = frozenset()
        """Stages whose group has committed an offset."""

    async def run(self) -> list[GrownTopic]:
        """Grow the topics. Return the result for each topic.

        Raises:
            GrowthRefused: workers are running, a topic is missing, or a topic has more partitions.
            StillWaiting: a group has records to read, or turns wait to be observed.
            Fatal: rows cannot be placed, or a table is not whole.
            Transient: the log does not answer.
        """
        await self._refuse_workers()
        self._counts = await self._present_counts()
        self._ran = frozenset([stage for stage in STAGES if await self._has_committed(stage)])
        tables = [await self._table(stage) for stage in STAGES if changelog_of(stage) is not None]
        facts = await self._facts()
        if self._begins(tables):
            await self._refuse_waiting(tables)
        await self._add_partitions([table.topic for table in tables])
        await self._refuse_workers()
        await self._add_partitions([topic.name for topic in growing_topics() if topic != TURNS])
        for table in tables:
            await self._move(table)
            if table.stage is not None:
                await self._join_epochs(table)
                await self._markers.write(table.topic, table.stage, table.image)
        await self._move(facts)
        sources = dict.fromkeys(topic for stage in STAGES for topic in read_by(stage))
        again: TopicOffsets = {}
        for topic in (*(each for each in sources if each != TURNS), TURNS):
            if topic == TURNS:
                await self._add_partitions([TURNS.name])
            again |= await self._send_again(topic.name)
        if again:
            for table in tables:
                if table.stage is not None:
                    await self._markers.note_sent_again(table.topic, table.stage, table.image, again)
        rows = {table.topic: table.plan for table in (*tables, facts)}
        return [self._grown(topic.name, rows.get(topic.name)) for topic in growing_topics()]

    async def _join_epochs(self, table: _Table) -> None:
        """Write the highest session epochs to each partition, because sessions of any partition may move to it."""
        joined = reduce(SessionEpochs.joined, (part.epochs for part in table.image), SessionEpochs())
        for partition in range(self._partitions):
            part = table.image[partition] if partition < len(table.image) else CompactedPartition()
            if part.epochs != joined:
                key, value = SESSION_EPOCHS.encode(), joined.to_bytes()
                await self._log.append(table.topic, key=key, value=value, partition=partition)

    def _grown(self, topic: str, plan: MovePlan | None) -> GrownTopic:
        return GrownTopic(
            topic,
            self._counts[topic],
            self._partitions,
            rows=0 if plan is None else len(plan.rows),
            moved=0 if plan is None else len(plan.moves),
            sent_again=self._sent_again.get(topic, 0),
        )

    # ------------------------------------------------------------------------------------------------ preconditions
    async def _refuse_workers(self) -> None:
        live = {group_of(stage): await self._log.members(group_of(stage)) for stage in STAGES}
        named = ", ".join(f"{group} ({members})" for group, members in live.items() if members)
        if named:
            raise GrowthRefused(
                f"workers are running: {named}. Stop all workers first; a worker with MEMSTREAM_WORKER_ID counts until "
                "its session time-out has passed"
            )

    async def _present_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for topic in growing_topics():
            count = await self._log.partitions(topic.name)
            if count is None:
                raise GrowthRefused(f"there is no topic {topic.name}: run `memstream topics create`")
            counts[topic.name] = count
        more = {name: count for name, count in counts.items() if count > self._partitions}
        if more:
            name, count = max(more.items(), key=lambda item: item[1])
            raise GrowthRefused(
                f"{name} has {count} partitions, and partitions cannot be taken away: use --partitions {count} or more"
            )
        return counts

    async def _has_committed(self, stage: StageName) -> bool:
        offsets = [await self._log.committed(group_of(stage), topic.name) for topic in read_by(stage)]
        return any(offset is not None for each in offsets for offset in each)

    def _begins(self, tables: Sequence[_Table]) -> bool:
        """Return whether no topic has grown yet.

        Only in this case unread records are a reason to refuse the growth. When a topic has grown, no worker can read
        these records, so the growth sends them again.
        """
        counts = set(self._counts.values()).union(*(table.counts for table in tables))
        return len(counts) == 1 and counts != {self._partitions}

    async def _refuse_waiting(self, tables: Sequence[_Table]) -> None:
        waiting: dict[str, int] = {}
        for stage in STAGES:
            if stage not in self._ran:
                self._tell(f"{group_of(stage)} has never read a record, so its topics are not checked")
                continue
            for topic in read_by(stage):
                ranges = await waiting_ranges(self._log, [group_of(stage)], topic.name)
                lag = sum(each.records for each in ranges.values())
                if lag:
                    waiting[f"{group_of(stage)} on {topic.name}"] = lag
        if waiting:
            named = ", ".join(f"{name}: {lag}" for name, lag in waiting.items())
            raise StillWaiting(
                f"records wait to be read ({named}). Stop the services that send, let the workers run until their lag "
                "is 0, then stop the workers"
            )
        for table in tables:
            if table.stage == "observer" and (turns := await self._turns_to_observe(table)):
                raise StillWaiting(
                    f"{group_of('observer')}: {turns} turns wait in its table to be observed. Let it run until they "
                    "are observed, or flush a session with `memstream flush`, then stop it"
                )

    async def _turns_to_observe(self, table: _Table) -> int:
        """Count the turns that wait according to the row of their session. A turn's own row may be outdated."""
        waiting = 0
        for partition, part in enumerate(table.image):
            sessions = {event_key(key) for key in part.rows if key.count(b"/") == WAITING_PARTS - 1}
            rows: dict[bytes, bytes] = {}
            if sessions:
                async with aclosing(self._log.read(table.topic, start={partition: 0})) as records:
                    async for record in records:
                        if record.key in sessions and record.value is not None:
                            rows[record.key] = record.value
            waiting += self._waiting_turns(rows)
        return waiting

    # ------------------------------------------------------------------------------------------------ tables
    async def _table(self, stage: StageName) -> _Table:
        changelog = changelog_of(stage)
        assert changelog is not None
        topic, count = changelog.name, self._counts[changelog.name]
        image = await self._read(topic, count)
        await self._refuse_lost(stage, topic, image)
        above = {part.marker.partitions or 0 for part in image if part.marker is not None}
        if max(above, default=0) > self._partitions:
            raise GrowthRefused(
                f"the rows in {topic} are already placed by {max(above)} partitions: use --partitions {max(above)}"
            )
        return _Table(topic, stage, event_key, image, plan_moves(topic, image, self._partitions, key_of=event_key))

    async def _facts(self) -> _Table:
        image = await self._read(FACTS.name, self._counts[FACTS.name])
        plan = plan_moves(FACTS.name, image, self._partitions, key_of=own_key, newest_on_target=True)
        return _Table(FACTS.name, None, own_key, image, plan)

    async def _read(self, topic: str, partitions: int) -> list[CompactedPartition]:
        self._tell(f"{topic}: reading")
        image = [CompactedPartition() for _ in range(partitions)]
        async with aclosing(self._log.read(topic)) as records:
            async for record in records:
                if record.position.partition < len(image):
                    image[record.position.partition].take(record)
        return image

    async def _refuse_lost(self, stage: StageName, topic: str, image: Sequence[CompactedPartition]) -> None:
        """Raise Fatal when rows of the table are missing, because the growth would make the loss permanent."""
        committed = {each.name: await self._log.committed(group_of(stage), each.name) for each in read_by(stage)}
        places = zip(await self._log.starts(topic), await self._log.ends(topic), strict=True)
        for partition, (start, end) in enumerate(places):
            used = {
                TP(name, partition): offsets[partition] or 0
                for name, offsets in committed.items()
                if partition < len(offsets)
            }
            state = ChangelogState(TP(topic, partition), start, end, -1)
            marker = image[partition].marker
            if marker is None and was_added(partition, image, self._partitions):
                continue
            if (why := not_whole(state, marker, used, was_whole=False)) is not None:
                raise Fatal(
                    f"rows are missing from {topic}, partition {partition}: {why}. Start a worker of {stage}: its "
                    "error names the remedies. Nothing was changed"
                )

    async def _move(self, table: _Table) -> None:
        """Move the rows, then check that each row is on the partition of its key. Raises Fatal if a row is not."""
        moves = table.plan.moves
        if not moves:
            return
        done = 0
        for group in steps(moves):
            done += await self._write(table, group)
            if group and group[0].kind == "remove":
                self._tell(f"{table.topic}: {done} of {len(moves)} rows moved")
        image = await self._read(table.topic, self._partitions)
        problems = misplaced_rows(table.plan, image, self._partitions, key_of=table.key_of)
        if problems:
            raise Fatal(f"{table.topic} has wrong rows after the move: {'; '.join(problems[:SHOWN])}")
        table.image = image
        self._tell(f"{table.topic}: {len(table.plan.rows)} rows before and after, each in one place")

    async def _write(self, table: _Table, group: Sequence[MoveStep]) -> int:
        """Execute the steps of a group. Return the number of rows removed from their old partition."""
        window = AppendWindow()
        if not group:
            return 0
        if group[0].kind == "remove":
            headers = {move.target: ((MOVED_HEADER, b"%d" % move.target),) for move in (step.move for step in group)}
            for step in group:
                kept = headers[step.move.target] if table.stage is None else ()
                await window.add(
                    self._log.append(
                        table.topic, key=step.move.key, value=None, headers=kept, partition=step.move.source
                    )
                )
            await window.durable()
            return len(group)
        wanted = {step.move.offset: step.move for step in group}
        source = group[0].move.source
        async with aclosing(self._log.read(table.topic, start={source: min(wanted)})) as records:
            async for record in records:
                move = wanted.pop(record.position.offset, None)
                if move is not None:
                    await window.add(self._copied(record, table, move.target), size=len(record.value or b""))
                if not wanted:
                    break
        await window.durable()
        if wanted:
            raise Fatal(f"{table.topic}: {len(wanted)} rows of partition {source} are gone: is a worker running?")
        return 0

    def _copied(self, record: Record, table: _Table, partition: int) -> Awaitable[object]:
        timestamp = _timestamp(record) if table.stage is None else None
        return self._log.append(
            table.topic,
            key=record.key,
            value=record.value,
            headers=record.headers,
            partition=partition,
            timestamp=timestamp,
        )

    # ------------------------------------------------------------------------------------------------ topics
    async def _add_partitions(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if await self._log.partitions(topic) != self._partitions:
                self._tell(f"{topic}: {self._counts[topic]} → {self._partitions} partitions")
                await self._log.add_partitions(topic, self._partitions)

    async def _send_again(self, topic: str) -> TopicOffsets:
        """Send all unhandled records of a topic again by the new partition count, if any of them is misplaced.

        The records are sent in their original order, so that the records of a key keep their order. The committed
        offsets of the groups move past the old records. Return the end offsets of the old records; empty if nothing was
        sent.
        """
        readers = [
            group_of(stage)
            for stage in STAGES
            if stage in self._ran and topic in {each.name for each in read_by(stage)}
        ]
        ranges = await waiting_ranges(self._log, readers, topic) if readers else {}
        if not await self._some_misplaced(topic, ranges):
            return {}
        window = AppendWindow()
        sent = 0
        async with aclosing(in_order(self._log, topic, ranges)) as records:
            async for record in records:
                sent += 1
                await window.add(self._sent(topic, record), size=len(record.value or b""))
        await window.durable()
        ends = {partition: each.end for partition, each in ranges.items()}
        for group in readers:
            committed = await self._log.committed(group, topic)
            await self._log.commit(
                group, topic, {partition: max(end, committed[partition] or 0) for partition, end in ends.items()}
            )
        self._sent_again[topic] = sent
        self._tell(f"{topic}: {sent} waiting records were sent again to the partitions of their keys")
        return {topic: tuple(ends.get(partition, 0) for partition in range(self._partitions))}

    async def _some_misplaced(self, topic: str, ranges: Mapping[int, WaitingRange]) -> bool:
        if not ranges:
            return False
        async with aclosing(in_order(self._log, topic, ranges)) as records:
            async for record in records:
                key, partition = record.key, record.position.partition
                if key is not None and partition_for(key, self._partitions) != partition:
                    return True
        return False

    def _sent(self, topic: str, record: Record) -> Awaitable[object]:
        return self._log.append(
            topic,
            key=record.key,
            value=record.value,
            headers=record.headers,
            partition=record.position.partition if record.key is None else None,
            timestamp=_timestamp(record),
        )


def _timestamp(record: Record) -> int | None:
    """Return the timestamp for a copy of a record; None means the time of the append.

    The log would refuse a copy with a timestamp in the future, even if the original record has this timestamp.
    """
    return record.timestamp if 0 <= record.timestamp <= time.time_ns() // 1_000_000 else None

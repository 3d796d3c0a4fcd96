"""Growth of the topics (`memstream topics grow`): more partitions, and every row on the partition of its key.

All topics with the deployment's partition count belong together: an event's key must give the same partition number on
each of them. See docs/design/growth.md for the order of the steps and what a crash after each of them leaves. The
command may be interrupted anywhere and called again. It finds what is left to do in the log alone.
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
"""Count the turns that wait to be observed in these rows of the observer's table."""
WAITING_PARTS = 4
"""Parts of the key of such a turn's row."""


class GrowthRefused(Exception):
    """The topics cannot grow by this command. The message says what must be done first (exit code 2)."""


class StillWaiting(Exception):
    """Something is not observed or reflected yet (exit code 1)."""


@dataclass(frozen=True, slots=True)
class GrownTopic:
    """What became of one topic. `rows`: a table's rows, or states; `moved`: those that were on another partition."""

    topic: str
    partitions_before: int
    partitions: int
    rows: int = 0
    moved: int = 0
    sent_again: int = 0
    """Records that no stage had handled, sent again to the partitions of their keys."""


@dataclass(slots=True)
class _Table:
    """A compacted topic: a changelog with the stage that writes it, or memory.facts."""

    topic: str
    stage: StageName | None
    key_of: KeyOf
    image: list[CompactedPartition]
    plan: MovePlan

    @property
    def counts(self) -> set[int]:
        """The counts that its markers name."""
        return {part.marker.partitions for part in self.image if part.marker and part.marker.partitions}


def growing_topics() -> tuple[Topic, ...]:
    """Return the topics that grow, in the order in which they do: changelogs first, so that no worker can take them up;
    memory.turns last, so that until then no worker starts (`topic_admin`)."""
    topics = [topic for topic in catalogue() if topic.partitions is None]
    changelogs = {topic.name for stage in STAGES if (topic := changelog_of(stage)) is not None}
    return tuple(sorted(topics, key=lambda topic: (topic.name not in changelogs, topic.name == TURNS.name)))


class TopicGrowth:
    """One growth to `partitions`. `tell` gets a line of progress at each step."""

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
        """Stages whose group has committed something."""

    async def run(self) -> list[GrownTopic]:
        """Let the topics grow. Return what became of each.

        Raises:
            GrowthRefused: workers run, a topic is missing, or has more partitions.
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
        """Let each partition have the highest epochs of all: it has sessions that ended on another one."""
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

    # ------------------------------------------------------------------------------------------------ may it begin?
    async def _refuse_workers(self) -> None:
        live = {group_of(stage): await self._log.members(group_of(stage)) for stage in STAGES}
        named = ", ".join(f"{group} ({members})" for group, members in live.items() if members)
        if named:
            raise GrowthRefused(
                f"workers are running: {named}. Stop all workers first; one with MEMSTREAM_WORKER_ID counts until its "
                "session time-out is over"
            )

    async def _present_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for topic in growing_topics():
            count = await self._log.partitions(topic.name)
            if count is None:
                raise GrowthRefused(f"there is no topic {topic.name}: `memstream topics create` makes it")
            counts[topic.name] = count
        more = {name: count for name, count in counts.items() if count > self._partitions}
        if more:
            name, count = max(more.items(), key=lambda item: item[1])
            raise GrowthRefused(
                f"{name} has {count} partitions, and partitions cannot be taken away: --partitions {count} is the least"
            )
        return counts

    async def _has_committed(self, stage: StageName) -> bool:
        offsets = [await self._log.committed(group_of(stage), topic.name) for topic in read_by(stage)]
        return any(offset is not None for each in offsets for offset in each)

    def _begins(self, tables: Sequence[_Table]) -> bool:
        """Whether no topic has grown yet. Afterwards workers cannot read what waits, and it is sent again instead."""
        counts = set(self._counts.values()).union(*(table.counts for table in tables))
        return len(counts) == 1 and counts != {self._partitions}

    async def _refuse_waiting(self, tables: Sequence[_Table]) -> None:
        waiting: dict[str, int] = {}
        for stage in STAGES:
            if stage not in self._ran:
                self._tell(f"{group_of(stage)} has never read anything, so nothing is expected of it")
                continue
            for topic in read_by(stage):
                ranges = await waiting_ranges(self._log, [group_of(stage)], topic.name)
                lag = sum(each.records for each in ranges.values())
                if lag:
                    waiting[f"{group_of(stage)} on {topic.name}"] = lag
        if waiting:
            named = ", ".join(f"{name}: {lag}" for name, lag in waiting.items())
            raise StillWaiting(
                f"records wait to be read ({named}). Let the workers run until their lag is 0 while no service sends, "
                "then stop them"
            )
        for table in tables:
            if table.stage == "observer" and (turns := await self._turns_to_observe(table)):
                raise StillWaiting(
                    f"{group_of('observer')}: {turns} turns wait in its table to be observed. Let it run until they "
                    "are, or ask for a session with `memstream flush`, then stop it"
                )

    async def _turns_to_observe(self, table: _Table) -> int:
        """Count the turns that the sessions' rows call waiting. A row of such a turn alone may be a remainder."""
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
                f"the rows in {topic} lie by {max(above)} partitions already: --partitions {max(above)}"
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
        """Raises Fatal when rows of the table are missing: they would be missing for good."""
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
                    f"rows are missing from {topic}, partition {partition}: {why}. Start a worker of {stage}: it says "
                    "what can be done. Nothing was changed"
                )

    async def _move(self, table: _Table) -> None:
        """Move the rows, and look whether each is in its one place. Raises Fatal when one is not."""
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
            raise Fatal(f"{table.topic} is not as it should be after the move: {'; '.join(problems[:SHOWN])}")
        table.image = image
        self._tell(f"{table.topic}: {len(table.plan.rows)} rows before and after, each in one place")

    async def _write(self, table: _Table, group: Sequence[MoveStep]) -> int:
        """Take the steps of a group. Return how many rows are off their old partition."""
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
            raise Fatal(f"{table.topic}: {len(wanted)} rows of partition {source} are gone: does a worker run?")
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
        """Send what no stage has handled to the partitions of the new count, if some of it lies on others.

        All of it is sent, in the order in which it came, so that a key's records keep their order. The groups go on
        behind the old records. Return where those end.
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
        self._tell(f"{topic}: {sent} records that waited were sent again to the partitions of their keys")
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
    """Return the timestamp that a copy of a record gets; None: that of the append.

    A log may hold a record that is dated ahead, and refuses a copy with the same date.
    """
    return record.timestamp if 0 <= record.timestamp <= time.time_ns() // 1_000_000 else None

"""`Log` (port.py) over files in a folder, without a broker. It follows Kafka's rules (partitioner, names, offsets)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from ...schemas.errors import Fatal, Transient
from . import group_lock
from .kafka_rules import check_size, check_timestamp, check_topic, choose_partition, unknown_topic
from .log_registry import close_log, open_log
from .port import Headers, Position, Record, TopicLayout, TopicSpec
from .sqlite_log import SqliteLog
from .sqlite_tables import LogRow, LogTopic


class EmbeddedLog:
    """The log in the folder of an `embedded:///folder` address. Several processes may use it at the same time."""

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder
        self._log: SqliteLog | None = None

    async def start(self) -> None:
        if self._log is None:
            self._log = await open_log(self._folder)

    async def close(self) -> None:
        opened, self._log = self._log, None
        if opened is not None:
            await close_log(opened)

    async def append(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Position:
        found = self._topic(topic)
        if found is None:
            raise unknown_topic(topic)
        partition = choose_partition(found, key, partition)
        check_size(found, key, value, headers)
        check_timestamp(found, timestamp, now=time.time_ns() // 1_000_000)
        offset = await self._opened().append(
            found.parts[partition], key=key, value=value, headers=headers, timestamp=timestamp
        )
        return Position(topic, partition, offset)

    async def partitions(self, topic: str) -> int | None:
        found = self._topic(topic)
        return None if found is None else len(found.parts)

    async def ends(self, topic: str) -> tuple[int, ...]:
        return tuple(self._opened().ends(self._parts(topic)))

    async def starts(self, topic: str) -> tuple[int, ...]:
        return tuple(self._opened().starts(self._parts(topic)))

    async def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]:
        opened = self._opened()
        parts = self._parts(topic)
        firsts, ends = opened.starts(parts), opened.ends(parts)
        positions = {
            partition: min(max(offset, firsts[partition]), ends[partition])
            for partition, offset in (enumerate(firsts) if start is None else start.items())
            if 0 <= partition < len(parts)
        }
        grown = asyncio.Event()
        unwatch = opened.watch(lambda changed: grown.set()) if follow and positions else None
        try:
            while positions:
                grown.clear()
                if follow:
                    ends = [max(known, opened.end(part)) for known, part in zip(ends, parts, strict=True)]
                behind = [partition for partition in sorted(positions) if positions[partition] < ends[partition]]
                for partition in behind:
                    rows, positions[partition] = opened.read(parts[partition], positions[partition], ends[partition])
                    for row in rows:
                        yield _record(topic, partition, row)
                    await asyncio.sleep(0)  # lets other tasks run during a long read
                if not behind:
                    if not follow:
                        return
                    await grown.wait()
                    if len(self._parts(topic)) > len(parts):
                        raise Transient("broker", f"follow {topic}: it has more partitions now")
        finally:
            if unwatch is not None:
                unwatch()

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        parts = self._parts(topic)
        if not 0 <= partition < len(parts):
            return None
        return self._opened().first_at_or_after(parts[partition], max(offset, 0))

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        parts = self._parts(topic)
        if not 0 <= partition < len(parts):
            return None
        return self._opened().offset_at(parts[partition], timestamp)

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        return tuple(self._opened().committed(group, self._parts(topic)))

    async def members(self, group: str) -> int:
        return int(await group_lock.held(self._opened().folder, group))

    async def topics(self) -> dict[str, TopicLayout]:
        opened = self._opened()
        opened.refresh()
        return {
            name: TopicLayout(name, len(topic.parts), dict(topic.config)) for name, topic in opened.topics().items()
        }

    async def create(self, wanted: Sequence[TopicSpec]) -> None:
        for topic in wanted:
            check_topic(topic.name, topic.partitions)
        await self._opened().create([(topic.name, topic.partitions, topic.config) for topic in wanted])

    async def add_partitions(self, topic: str, partitions: int) -> None:
        check_topic(topic, partitions)
        if self._topic(topic) is None:
            raise unknown_topic(topic)
        await self._opened().add_partitions(topic, partitions)

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        parts = self._parts(topic)
        await self._opened().commit(group, {parts[partition]: offset for partition, offset in offsets.items()})

    async def delete(self, topics: Sequence[str]) -> None:
        await self._opened().delete(topics)

    def _topic(self, name: str) -> LogTopic | None:
        opened = self._opened()
        found = opened.topic(name)
        if found is None:
            opened.refresh()  # another process may have created the topic
            found = opened.topic(name)
        return found

    def _parts(self, topic: str) -> tuple[int, ...]:
        found = self._topic(topic)
        return () if found is None else found.parts

    def _opened(self) -> SqliteLog:
        if self._log is None:
            raise Fatal("the log is used before start() or after close()")
        return self._log


def _record(topic: str, partition: int, row: LogRow) -> Record:
    return Record(Position(topic, partition, row.offset), row.key, row.value, row.headers, row.timestamp)

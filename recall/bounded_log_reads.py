"""Reads of one key's records from the log, with a maximum number of records and seconds.

A read that stops early is reported as a missing part. After an increase of the partition count, the key's older records
are still in a former partition. This partition is then read, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ..schemas.errors import Transient
from ..streams.log.markers import former_counts
from ..streams.log.partitioner import partition_for
from ..streams.log.port import Log, Record
from .deadline import UnansweredPart

MARGIN_MILLIS = 60 * 60 * 1000
"""Milliseconds by which clocks of producers, stages and brokers may differ: one hour. A read from a time starts this
much earlier."""

NEWEST = 1_000
GROWTH = 8
"""A read of the newest records first reads `NEWEST` records, then `GROWTH` times as many older ones, and so on."""


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """Limits on the log reads of one answer, over all topics."""

    records: int = 200_000
    seconds: float = 15.0

    def __post_init__(self) -> None:
        if self.records < 1 or self.seconds <= 0:
            raise ValueError("a read of the log needs at least one record and some time")


@dataclass(slots=True)
class FormerCounts:
    """Former partition counts of the topics. The log is asked for them again when the current count changes."""

    log: Log
    _of: int | None = None
    _known: frozenset[int] = frozenset()

    async def before(self, count: int) -> frozenset[int]:
        """Return the former partition counts. `count` is the current partition count. Raises Transient."""
        if self._of != count:
            self._known = await former_counts(self.log)
            self._of = count
        return self._known - {count}


@dataclass(slots=True)
class BoundedLogReads:
    """The log reads of one answer. Create a new instance per answer."""

    log: Log
    policy: LogPolicy
    former: FormerCounts
    missing: list[UnansweredPart] = field(default_factory=list)
    """Parts that were not read completely, in read order."""
    _left: int = field(init=False)
    _deadline: float | None = None

    def __post_init__(self) -> None:
        self._left = self.policy.records

    async def of_key(
        self,
        part: str,
        topic: str,
        key: bytes,
        *,
        take: Callable[[Record], bool],
        whole: Callable[[], bool] = lambda: True,
        since: datetime | None = None,
        begin: int | None = None,
    ) -> None:
        """Pass the records of `key` to `take` in order. `take` returns True when it needs no later record.

        The read starts at the offset `begin`, or else at the time `since`, or else at the first record. If `whole`
        returns False after this read, the records before the start are read. If `whole` still returns False, the key's
        former partitions are read. When a read stops early or the log does not answer, `missing` gets an entry with
        `part`.
        """
        async with self._limited(part, topic):
            if (place := await self._place(topic, key)) is None:
                return
            if begin is None:
                begin = (
                    place.first if since is None else await self._offset_at(topic, place, since, otherwise=place.end)
                )
            middle = min(max(place.first, begin or 0), place.end)
            await self._stretch(topic, place.partition, key, middle, place.end, take)
            if not whole():
                await self._stretch(topic, place.partition, key, place.first, middle, take)
            if not whole():
                await self._former_partitions(topic, key, place.count, take)

    async def newest_of_key(
        self,
        part: str,
        topic: str,
        key: bytes,
        *,
        take: Callable[[Record], bool],
        found: Callable[[], bool],
        since: datetime | None = None,
    ) -> None:
        """Pass the records of `key` to `take`, stretch by stretch, until `found` returns True after a stretch.

        The first stretch has the newest records. Records within a stretch are in order. So a record that was just
        written is found without a time, because the clocks of its writer and of the caller may differ. Records older
        than `since` are left out, and then also the former partitions. A `since` after every record leaves out nothing.
        `missing` as in `of_key`.
        """
        async with self._limited(part, topic):
            if (place := await self._place(topic, key)) is None:
                return
            first, stop, size = place.first, place.end, NEWEST
            if since is not None:
                first = max(first, await self._offset_at(topic, place, since, otherwise=first))
            while stop > first:
                start = max(first, stop - size)
                await self._stretch(topic, place.partition, key, start, stop, take)
                if found():
                    return
                stop, size = start, size * GROWTH
            if since is None and not found():
                await self._former_partitions(topic, key, place.count, take)

    @asynccontextmanager
    async def _limited(self, part: str, topic: str) -> AsyncIterator[None]:
        """Stop the reads of this block at the limits, and note the part as missing."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self.policy.seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                yield
        except TimeoutError:
            self._gave_up(part, f"stopped after {self.policy.seconds:g} s in {topic}")
        except _Spent:
            self._gave_up(part, f"stopped in {topic}: {self.policy.records} records were read")
        except Transient as away:
            self._gave_up(part, str(away))

    async def _place(self, topic: str, key: bytes) -> _Place | None:
        """Return the partition of a key with its offsets; None for a topic that does not exist."""
        if (count := await self.log.partitions(topic)) is None:
            return None
        partition = partition_for(key, count)
        return _Place(
            count, partition, (await self.log.starts(topic))[partition], (await self.log.ends(topic))[partition]
        )

    async def _offset_at(self, topic: str, place: _Place, since: datetime, *, otherwise: int) -> int:
        """Return the offset at which a read from `since` begins, or `otherwise` when every record is older."""
        millis = int(since.timestamp() * 1000)  # negative before 1970; producers may send the year 1
        found = await self.log.offset_at(topic, place.partition, millis - MARGIN_MILLIS)
        return otherwise if found is None else found

    async def _former_partitions(self, topic: str, key: bytes, count: int, take: Callable[[Record], bool]) -> None:
        former = {partition_for(key, each) for each in await self.former.before(count)} - {partition_for(key, count)}
        starts, ends = await self.log.starts(topic), await self.log.ends(topic)
        for partition in sorted(former):
            await self._stretch(topic, partition, key, starts[partition], ends[partition], take)

    async def _stretch(
        self, topic: str, partition: int, key: bytes, start: int, stop: int, take: Callable[[Record], bool]
    ) -> None:
        if start >= stop:
            return
        async with aclosing(self.log.read(topic, start={partition: start})) as records:
            async for record in records:
                if record.position.offset >= stop:
                    return
                if self._left == 0:
                    raise _Spent
                self._left -= 1
                if record.key == key and take(record):
                    return

    def _gave_up(self, part: str, why: str) -> None:
        self.missing.append(UnansweredPart(part, why))


@dataclass(frozen=True, slots=True)
class _Place:
    """The partition of a key. `end`: the offset of the next record. `count`: the number of partitions of the topic."""

    count: int
    partition: int
    first: int
    end: int


class _Spent(Exception):
    """The maximum number of records has been read."""

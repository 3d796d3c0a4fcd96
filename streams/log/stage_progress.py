"""Records of several topics as one topic that `TopicFanout` follows, each as soon as its stage has committed it.

A partition of this topic is a partition of one source. The end of a source is the offset that its stage has committed,
so a reader gets a record when the stage has handled it. A topic may have several sources: two stages read
`memory.turns`, and a reader gets each turn twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from ...schemas.errors import Transient
from ...schemas.topics import StageName, Topic, group_of
from .port import Log, Record


@dataclass(frozen=True, slots=True)
class HandledTopic:
    """A topic, and the stage that commits its records. None: its end is the end of the topic."""

    topic: Topic
    stage: StageName | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """Ends of a source. `first` is the number of its first partition in the joint topic."""

    topic: Topic
    first: int
    ends: tuple[int, ...]


class StageProgress:
    """Log with one topic, whose name is ignored. `seconds`: time between two reads of the ends."""

    def __init__(self, log: Log, sources: Sequence[HandledTopic], *, seconds: float) -> None:
        self._log = log
        self._sources = sources
        self._seconds = seconds

    async def ends(self, topic: str) -> tuple[int, ...]:
        return tuple(end for part in await self._parts() for end in part.ends)

    async def starts(self, topic: str) -> tuple[int, ...]:
        """Return zeros: a reader skips the records that the log deleted before a stage read them."""
        return tuple(0 for _ in await self.ends(topic))

    async def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]:
        """Yield the records from `start` to the ends, in order within a partition. See `Log.read`."""
        places = dict(start or {})
        parts = await self._parts()
        while True:
            for part in parts:
                async with aclosing(self._between(part, places)) as records:
                    async for record in records:
                        yield record
            if not follow:
                return
            await asyncio.sleep(self._seconds)
            before, parts = parts, await self._parts()
            if [len(part.ends) for part in parts] != [len(part.ends) for part in before]:
                raise Transient("broker", "a topic has more partitions now")

    async def _between(self, part: _Part, places: dict[int, int]) -> AsyncGenerator[Record]:
        """Yield the records of a part from `places` to its ends, and move `places`."""
        begin = {n: places[part.first + n] for n, end in enumerate(part.ends) if places.get(part.first + n, end) < end}
        unread = set(begin)
        if unread:
            async with aclosing(self._log.read(part.topic.name, start=begin)) as records:
                async for record in records:
                    n, offset = record.position.partition, record.position.offset
                    if offset < part.ends[n]:
                        yield replace(record, position=replace(record.position, partition=part.first + n))
                    if offset + 1 >= part.ends[n]:
                        unread.discard(n)
                    if not unread:
                        break
        places.update({part.first + n: part.ends[n] for n in begin})

    async def _parts(self) -> list[_Part]:
        found = await asyncio.gather(*map(self._ends_of, self._sources))
        parts: list[_Part] = []
        first = 0
        for source, ends in zip(self._sources, found, strict=True):
            parts.append(_Part(source.topic, first, ends))
            first += len(ends)
        return parts

    async def _ends_of(self, source: HandledTopic) -> tuple[int, ...]:
        if source.stage is None:
            return await self._log.ends(source.topic.name)
        committed = await self._log.committed(group_of(source.stage), source.topic.name)
        return tuple(offset or 0 for offset in committed)

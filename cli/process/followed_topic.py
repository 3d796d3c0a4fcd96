"""Reader that keeps a state of this process equal to a compacted topic: the whole topic first, then record by record.

The reader uses no consumer group, because every process needs every record.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from ...schemas.errors import StageError
from ...schemas.topics import Topic
from ...streams.log.port import Log, Record


@dataclass(slots=True)
class FollowedTopic(ABC):
    """The reader of one topic. A subclass applies the records."""

    topic: ClassVar[Topic]
    pause: ClassVar[float]
    """Seconds until the topic is read again after the log did not answer."""
    log: Log
    _next: dict[int, int] = field(default_factory=dict, init=False)

    async def read_whole(self) -> None:
        """Read the topic to its end, then apply all its records in one step.

        Otherwise an event could be handled with a state that a later record replaces. Raises Transient, and the errors
        of the records.
        """
        if await self.log.partitions(self.topic.name) is None:
            return  # an older deployment has no such topic; workers refuse to start without it
        ends = await self.log.ends(self.topic.name)
        async with aclosing(self.log.read(self.topic.name)) as records:
            self._take_all([record async for record in records])
        self._next = dict(enumerate(ends))

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the topic in the background while the block runs."""
        task = asyncio.create_task(self.follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def follow(self) -> None:
        """Follow the topic until cancelled. While the log does not answer, the present state stays in force."""
        while True:
            try:
                if not self._next:
                    await self.read_whole()
                async with aclosing(self.log.read(self.topic.name, start=self._next, follow=True)) as records:
                    async for record in records:
                        self._take(record)
            except StageError as error:
                self._not_read(error)
            self._next = {}
            await asyncio.sleep(self.pause)

    def _take_all(self, records: Sequence[Record]) -> None:
        """Apply all records of the topic."""
        for record in records:
            self._take(record)

    @abstractmethod
    def _take(self, record: Record) -> None:
        """Apply a record."""

    @abstractmethod
    def _not_read(self, error: StageError) -> None:
        """Report that the topic cannot be read now."""

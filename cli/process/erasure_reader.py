"""Reader of memory.erasures: the whole topic before the first event, then record by record.

The reader uses no consumer group, because every process needs every marker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import structlog
from pydantic import ValidationError

from ...memory.erasures import ErasedUsers
from ...schemas.base import explain
from ...schemas.erasures import USER_PREFIX, ErasureMarker
from ...schemas.errors import LaterVersion, StageError
from ...schemas.topics import ERASURES
from ...streams.log.port import Log, Record

log = structlog.get_logger(__name__)
PAUSE = 1.0
"""Seconds until the topic is read again after the log did not answer."""


@dataclass(slots=True)
class ErasureReader:
    """Reader that keeps `erased` equal to the topic. It is the only writer of `erased`."""

    log: Log
    erased: ErasedUsers = field(default_factory=ErasedUsers)
    _next: dict[int, int] = field(default_factory=dict)

    async def read_whole(self) -> None:
        """Read the topic to its end. Raises Transient, and LaterVersion for a marker that this version cannot read."""
        if await self.log.partitions(ERASURES.name) is None:
            return  # an older deployment has no such topic; workers refuse to start without it
        ends = await self.log.ends(ERASURES.name)
        async with aclosing(self.log.read(ERASURES.name, start=self._next or None)) as records:
            async for record in records:
                self._take(record)
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
        """Follow the topic until cancelled. While the log does not answer, the known markers stay in force."""
        while True:
            try:
                await self.read_whole()
                async with aclosing(self.log.read(ERASURES.name, start=self._next, follow=True)) as records:
                    async for record in records:
                        self._take(record)
                        self._next[record.position.partition] = record.position.offset + 1
            except StageError as error:
                log.warning("erasures_not_read", why=str(error), remedy="none: the known markers stay in force")
            await asyncio.sleep(PAUSE)

    def _take(self, record: Record) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        if not key.startswith(USER_PREFIX) or not record.value:
            return
        try:
            marker = ErasureMarker.read(record.value)
        except ValidationError as error:
            raise LaterVersion(
                f"memory.erasures has a marker that this version cannot read ({explain(error)}). Start the version "
                "that wrote it"
            ) from None
        self.erased.set(key.removeprefix(USER_PREFIX), marker)
        log.info("user_erased", erasure_id=marker.erasure_id, state=marker.state)

"""A topic as many readers follow it at once, each from its own place, without a consumer group.

What is said now is read once, by one reader that all share (`_Tail`). Whoever begins earlier reads what lies behind
with a reader of its own, and then joins: what comes meanwhile waits in its queue, so nothing falls between and nothing
comes twice. A reader that is too slow for its queue is cut off, with a reason; it goes on from the place of the last
record it was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import structlog

from ...schemas.errors import StageError, Transient
from .offsets import Offsets, PositionedRecord
from .port import Log, Record

log = structlog.get_logger(__name__)

CANCEL_AGAIN = 0.2
"""Seconds."""
CLOSE = 100
"""Records behind the end from which a reader joins."""

Ended = Literal["slow", "unavailable", "gone", "shutdown"]
"""Why a following ended: its reader was too slow, the log is away, its place is no longer in the log, or this process
stops."""
Select = Callable[[Record], bool]
"""Which records a reader gets; the others only move its place."""


class OffsetsLost(Exception):
    """A place that the log no longer has: retention has deleted what came after it, or the topic was made anew."""


class TooManyReaders(Exception):
    """As many follow as may."""


Begin = Offsets | Literal["beginning", "now"]


# ------------------------------------------------------------------------------------------------ the shared reader
@dataclass(slots=True, eq=False)
class _Live:
    """One reader's share of what is said now."""

    select: Select
    places: Offsets
    waiting: asyncio.Queue[PositionedRecord | None]
    """None: it has ended."""
    ended: Ended | None = None

    def offer(self, record: Record, places: Offsets) -> None:
        self.places = places
        if self.ended is None and self.select(record):
            if self.waiting.full():
                self.end("slow")
            else:
                self.waiting.put_nowait(PositionedRecord(record, places))

    def end(self, why: Ended) -> None:
        """What waits is still given out; of what comes nothing is taken any more."""
        self.ended = self.ended or why
        if not self.waiting.full():
            self.waiting.put_nowait(None)

    async def told(self) -> AsyncIterator[PositionedRecord]:
        while self.ended is None or not self.waiting.empty():
            told = await self.waiting.get()
            if told is not None:
                yield told


class _Tail:
    """The one reader of what is said now. It runs while somebody listens."""

    def __init__(self, *, log: Log, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._places = Offsets(())
        self._listening: set[_Live] = set()
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def join(self, select: Select, *, room: int) -> _Live:
        """From now on, `room` records at most waiting; its `places` are where it begins."""
        async with self._starting:
            if self._reading is None or self._reading.done():
                self._places = Offsets(await self._log.ends(self._topic))
                self._reading = asyncio.create_task(self._read())
        live = _Live(select, self._places, asyncio.Queue(room))
        self._listening.add(live)
        return live

    async def leave(self, live: _Live) -> None:
        self._listening.discard(live)
        if not self._listening and self._reading is not None:
            reading, self._reading = self._reading, None
            await stopped(reading)

    async def _read(self) -> None:
        why: Ended = "unavailable"
        try:
            start = dict(enumerate(self._places.offsets))
            async with aclosing(self._log.read(self._topic, start=start, follow=True)) as records:
                async for record in records:
                    if record.position.offset < self._places.of(record.position.partition):
                        why = "gone"  # the client began anew, for its place was no longer there
                        break
                    self._places = self._places.after(record.position)
                    for live in self._listening:
                        live.offer(record, self._places)
        except StageError as error:
            log.warning("following_interrupted", topic=self._topic, why=str(error))
        for live in self._listening:
            live.end(why)


# ------------------------------------------------------------------------------------------------ one reader
@dataclass(slots=True, eq=False)
class TopicReader:
    """One reader's way through the topic."""

    begins: Offsets
    behind: bool
    """It still catches up."""
    ended: Ended | None = None
    _read: Offsets = field(init=False)
    """After the last record that was handed out or passed over."""
    _handed: asyncio.Queue[PositionedRecord | None] = field(default_factory=lambda: asyncio.Queue(1))
    _live: _Live | None = None

    def __post_init__(self) -> None:
        self._read = self.begins

    async def next(self, *, within: float) -> PositionedRecord | None:
        """The next record that was selected, in the order of the log. None: nothing came within these seconds, or the
        end (`ended` tells)."""
        try:
            async with asyncio.timeout(within):
                return await self._handed.get()
        except TimeoutError:
            return None

    def place(self) -> Offsets:
        """Where to go on, for a reader that got nothing from `next`: what was passed over meanwhile is behind it."""
        live = self._live
        return self._read.at_least(live.places) if live is not None and live.waiting.empty() else self._read

    def end(self, why: Ended) -> None:
        """At once: what was not handed out is read again by whoever comes back."""
        self.ended = self.ended or why
        if self._handed.empty():
            self._handed.put_nowait(None)

    async def take(self, record: Record, places: Offsets, *, selected: bool) -> None:
        """Waits while the reader is slow."""
        if selected:
            await self._handed.put(PositionedRecord(record, places))
        self._read = places

    def passed(self, places: Offsets) -> None:
        self._read = self._read.at_least(places)

    @property
    def read(self) -> Offsets:
        return self._read

    def joins(self, live: _Live) -> None:
        self._live = live


@dataclass(frozen=True, slots=True)
class FanoutBounds:
    """How many follow at once, how many of them read alone, and how many records wait for a slow one."""

    readers: int
    catching_up: int
    room: int


class TopicFanout:
    """All readers of one topic in this process."""

    def __init__(self, *, log: Log, topic: str, bounds: FanoutBounds) -> None:
        self._log = log
        self._topic = topic
        self._bounds = bounds
        self._tail = _Tail(log=log, topic=topic)
        self._followings: set[TopicReader] = set()
        self._closed = False

    @property
    def readers(self) -> int:
        return len(self._followings)

    @property
    def catching_up(self) -> int:
        return sum(following.behind for following in self._followings)

    @asynccontextmanager
    async def follow(self, begin: Begin, select: Select) -> AsyncIterator[TopicReader]:
        """Raises Lost, TooMany, and Transient when the log is away."""
        starts, ends = await self._offsets()
        places = starts if begin == "beginning" else ends if begin == "now" else begin
        self._check(places, starts, ends)
        if self._closed or len(self._followings) >= self._bounds.readers:
            raise TooManyReaders(f"{self._bounds.readers} streams are open, as many as may be")
        behind = _distance(places, ends) > CLOSE
        if behind and self.catching_up >= self._bounds.catching_up:
            raise TooManyReaders(f"{self._bounds.catching_up} streams still read what lies behind, as many as may")
        following = TopicReader(places, behind=behind)
        self._followings.add(following)
        feeding = asyncio.create_task(self._feed(following, select))
        try:
            yield following
        finally:
            self._followings.discard(following)
            await stopped(feeding)

    def close(self) -> None:
        """All end, and nobody begins any more."""
        self._closed = True
        for following in self._followings:
            following.end("shutdown")

    # ------------------------------------------------------------------------------------------------ inside
    async def _offsets(self) -> tuple[Offsets, Offsets]:
        starts, ends = await self._log.starts(self._topic), await self._log.ends(self._topic)
        if not ends:
            raise Transient("broker", f"there is no topic {self._topic}", remedy="memstream topics create")
        return Offsets(starts), Offsets(ends)

    def _check(self, places: Offsets, starts: Offsets, ends: Offsets) -> None:
        """Everything that comes after the place is still there. Raises Lost."""
        if places.behind(starts):
            raise OffsetsLost(f"retention has deleted records of {self._topic} that came after this place")
        if ends.behind(places):
            raise OffsetsLost(f"{self._topic} was made anew, or has lost its end: this place lies beyond it")

    async def _feed(self, following: TopicReader, select: Select) -> None:
        try:
            await self._catch_up(following, select)
            live = await self._tail.join(select, room=self._bounds.room)
            try:
                await self._alone(following, select, until=live.places)
                following.joins(live)
                async for told in live.told():
                    position = told.record.position
                    if position.offset >= following.read.of(position.partition):
                        await following.take(told.record, following.read.at_least(told.places), selected=True)
            finally:
                await self._tail.leave(live)
            if live.ended is not None:
                following.end(live.ended)
        except OffsetsLost as lost:
            log.warning("following_lost_its_place", topic=self._topic, why=str(lost))
            following.end("gone")
        except StageError as error:
            log.warning("following_interrupted", topic=self._topic, why=str(error))
        finally:
            following.end("unavailable")

    async def _catch_up(self, following: TopicReader, select: Select) -> None:
        """Until near the end, each record when its reader has taken the one before."""
        while True:
            _, ends = await self._offsets()
            if _distance(following.read, ends) <= CLOSE:
                following.behind = False
                return
            await self._alone(following, select, until=ends)

    async def _alone(self, following: TopicReader, select: Select, *, until: Offsets) -> None:
        """What lies before `until`, with a reader of its own. Raises Lost."""
        behind = following.read.behind(until)
        if not behind:
            return
        starts, ends = await self._offsets()
        self._check(following.read, starts, ends)
        async with aclosing(self._log.read(self._topic, start=behind)) as records:
            async for record in records:
                position = record.position
                if following.read.of(position.partition) <= position.offset < until.of(position.partition):
                    await following.take(record, following.read.after(position), selected=select(record))
        following.passed(until)


def _distance(places: Offsets, ends: Offsets) -> int:
    return sum(ends.of(partition) - at for partition, at in places.behind(ends).items())


async def stopped(task: asyncio.Task[None]) -> None:
    """Cancelled until it has ended: a consumer of aiokafka that is being closed takes the first for its own
    (`consumer/fetcher.py`, `Fetcher.close`)."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_AGAIN)

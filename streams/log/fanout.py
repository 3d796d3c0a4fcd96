"""Fan-out of a topic to many readers without a consumer group. Each reader begins at its own offsets.

New records are read once, by one shared reader (`_Tail`). A reader that begins at earlier offsets first reads the older
records directly from the log, and then joins the shared reader. While it reads the last older records, new records wait
in its queue. So it misses no record and gets no record twice. When the queue of a reader is full, the reader ends with
the reason `slow`. Its caller can start a new reader after the last record that it received.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import structlog

from ...schemas.errors import StageError, Transient
from .offsets import Offsets, PositionedRecord
from .port import ReadableLog, Record

log = structlog.get_logger(__name__)

CANCEL_AGAIN = 0.2
"""Seconds between two cancellations of a task that does not end."""
CLOSE = 100
"""Maximum number of older records with which a reader joins the shared reader."""

Ended = Literal["slow", "unavailable", "gone", "shutdown", "busy"]
"""Reason why a reader ended, in this order: the reader was too slow, the log does not answer, the log no longer has the
reader's offsets, this process stops, or another caller needed the reader's place."""
Select = Callable[[Record], bool]
"""Filter: returns whether a reader gets a record. Records that it does not get only advance the reader's offsets."""


CatchingUp = Callable[[], AbstractAsyncContextManager[Callable[[], None]]]
"""Function that returns a context manager. The context takes a place among the readers that catch up. Its value is a
function that frees the place early."""


class OffsetsLost(Exception):
    """The log no longer has these offsets: retention deleted later records, or the topic was created again."""


class TooManyReaders(Exception):
    """The maximum number of readers is reached."""


Begin = Offsets | Literal["beginning", "now"]


# ------------------------------------------------------------------------------------------------ the shared reader
@dataclass(slots=True, eq=False)
class _Subscription:
    """One reader's queue of new records."""

    select: Select
    places: Offsets
    waiting: asyncio.Queue[PositionedRecord | None]
    """The queue; None marks the end."""
    ended: Ended | None = None

    def offer(self, record: Record, places: Offsets) -> None:
        """Queue a new record if it is selected. A full queue ends the subscription."""
        self.places = places
        if self.ended is None and self.select(record):
            if self.waiting.full():
                self.end("slow")
            else:
                self.waiting.put_nowait(PositionedRecord(record, places))

    def end(self, why: Ended) -> None:
        """Accept no further record. Queued records are still delivered."""
        self.ended = self.ended or why
        if not self.waiting.full():
            self.waiting.put_nowait(None)

    async def records(self) -> AsyncIterator[PositionedRecord]:
        """Iterate over the queued records until the end."""
        while self.ended is None or not self.waiting.empty():
            record = await self.waiting.get()
            if record is not None:
                yield record


class _Tail:
    """The shared reader of new records. It runs while there is a subscription."""

    def __init__(self, *, log: ReadableLog, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._places = Offsets(())
        self._subscriptions: set[_Subscription] = set()
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def join(self, select: Select, *, room: int) -> _Subscription:
        """Subscribe to new records, which begin at the offsets `places` of the result. At most `room` of them wait."""
        async with self._starting:
            if self._reading is None or self._reading.done():
                self._places = Offsets(await self._log.ends(self._topic))
                self._reading = asyncio.create_task(self._read())
        subscription = _Subscription(select, self._places, asyncio.Queue(room))
        self._subscriptions.add(subscription)
        return subscription

    async def leave(self, subscription: _Subscription) -> None:
        """End a subscription. When no subscription is left, stop the shared reader."""
        self._subscriptions.discard(subscription)
        if not self._subscriptions and self._reading is not None:
            reading, self._reading = self._reading, None
            await cancelled(reading)

    async def _read(self) -> None:
        why: Ended = "unavailable"
        try:
            start = dict(enumerate(self._places.offsets))
            async with aclosing(self._log.read(self._topic, start=start, follow=True)) as records:
                async for record in records:
                    if record.position.offset < self._places.of(record.position.partition):
                        # The Kafka client restarted at the beginning, because the log no longer has the offsets.
                        why = "gone"
                        break
                    self._places = self._places.after(record.position)
                    for subscription in self._subscriptions:
                        subscription.offer(record, self._places)
        except StageError as error:
            log.warning("following_interrupted", topic=self._topic, why=str(error))
        for subscription in self._subscriptions:
            subscription.end(why)


# ------------------------------------------------------------------------------------------------ one reader
@dataclass(slots=True, eq=False)
class TopicReader:
    """One reader of the topic."""

    begins: Offsets
    behind: bool
    """True while the reader is more than `CLOSE` records behind the end."""
    ended: Ended | None = None
    _read: Offsets = field(init=False)
    """The offsets after the last record that was delivered or skipped."""
    _handed: asyncio.Queue[PositionedRecord | None] = field(default_factory=lambda: asyncio.Queue(1))
    _subscription: _Subscription | None = None
    _caught_up: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self._read = self.begins

    async def next(self, *, within: float) -> PositionedRecord | None:
        """Return the next selected record in the order of the log.

        None: no record came within `within` seconds, or the reader has ended (see `ended`).
        """
        try:
            async with asyncio.timeout(within):
                return await self._handed.get()
        except TimeoutError:
            return None

    def place(self) -> Offsets:
        """Return the offsets from which a new reader continues when `next` returned None.

        Records that this reader skipped are before these offsets.
        """
        if self._subscription is None or not self._subscription.waiting.empty():
            return self._read
        return self._read.at_least(self._subscription.places)

    def end(self, why: Ended) -> None:
        """End immediately. A new reader that starts at `place` reads the undelivered records again."""
        self.ended = self.ended or why
        if self._handed.empty():
            self._handed.put_nowait(None)

    async def take(self, record: Record, places: Offsets, *, selected: bool) -> None:
        """Deliver a selected record, or skip it. Wait until the caller has taken the previous record."""
        if selected:
            await self._handed.put(PositionedRecord(record, places))
        self._read = places

    def when_caught_up(self, call: Callable[[], None]) -> None:
        """Register a function that is called once, when the reader is close to the end."""
        self._caught_up = call

    def catch_up(self) -> None:
        """Record that the reader is close to the end, and call the registered function."""
        self.behind = False
        if self._caught_up is not None:
            self._caught_up()
            self._caught_up = None

    def skip(self, places: Offsets) -> None:
        """Move the offsets forward past records that are not delivered."""
        self._read = self._read.at_least(places)

    @property
    def read(self) -> Offsets:
        return self._read

    def join(self, subscription: _Subscription) -> None:
        """Record the subscription that delivers new records from now on."""
        self._subscription = subscription


@dataclass(frozen=True, slots=True)
class FanoutBounds:
    """Maximum numbers of readers, of readers that catch up, and of records that wait for a slow reader (`room`)."""

    readers: int
    catching_up: int
    room: int


class TopicFanout:
    """All readers of one topic in this process."""

    def __init__(self, *, log: ReadableLog, topic: str, bounds: FanoutBounds) -> None:
        self._log = log
        self._topic = topic
        self._bounds = bounds
        self._tail = _Tail(log=log, topic=topic)
        self._readers: set[TopicReader] = set()
        self._closed = False

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def catching_up(self) -> int:
        return sum(reader.behind for reader in self._readers)

    @asynccontextmanager
    async def follow(
        self, begin: Begin, select: Select, *, catching_up: CatchingUp | None = None
    ) -> AsyncIterator[TopicReader]:
        """Follow the topic from `begin` during the block.

        A reader that is more than `CLOSE` records behind the end takes a place from `catching_up`. Without this
        argument, `FanoutBounds.catching_up` limits the number of such readers. Raises OffsetsLost, TooManyReaders, and
        Transient when the log does not answer.
        """
        starts, ends = await self._offsets()
        places = starts if begin == "beginning" else ends if begin == "now" else begin
        self._check(places, starts, ends)
        if self._closed or len(self._readers) >= self._bounds.readers:
            raise TooManyReaders(f"{self._bounds.readers} streams are open, which is the maximum")
        behind = _distance(places, ends) > CLOSE
        if behind and catching_up is None and self.catching_up >= self._bounds.catching_up:
            raise TooManyReaders(f"{self._bounds.catching_up} streams are far behind the end, which is the maximum")
        reader = TopicReader(places, behind=behind)
        async with AsyncExitStack() as stack:
            if behind and catching_up is not None:
                reader.when_caught_up(await stack.enter_async_context(catching_up()))
            self._readers.add(reader)
            feeding = asyncio.create_task(self._feed(reader, select))
            try:
                yield reader
            finally:
                self._readers.discard(reader)
                await cancelled(feeding)

    async def is_close(self, places: Offsets) -> bool:
        """Return whether at most `CLOSE` records follow these offsets. Raises Transient."""
        return _distance(places, await self.end()) <= CLOSE

    async def end(self) -> Offsets:
        """Return the offsets after the last record. Raises Transient when the log does not answer."""
        ends = await self._log.ends(self._topic)
        if not ends:
            raise Transient("broker", f"there is no topic {self._topic}", remedy="memstream topics create")
        return Offsets(ends)

    def close(self) -> None:
        """End all readers, and accept no new reader."""
        self._closed = True
        for reader in self._readers:
            reader.end("shutdown")

    # ------------------------------------------------------------------------------------------------ inside
    async def _offsets(self) -> tuple[Offsets, Offsets]:
        return Offsets(await self._log.starts(self._topic)), await self.end()

    def _check(self, places: Offsets, starts: Offsets, ends: Offsets) -> None:
        """Check that the log has all records after these offsets. Raises OffsetsLost."""
        if places.behind(starts):
            raise OffsetsLost(f"retention has deleted records of {self._topic} after this position")
        if ends.behind(places):
            raise OffsetsLost(f"this position is past the end of {self._topic}: it was created again or lost records")

    async def _feed(self, reader: TopicReader, select: Select) -> None:
        try:
            await self._catch_up(reader, select)
            subscription = await self._tail.join(select, room=self._bounds.room)
            try:
                await self._read_older(reader, select, until=subscription.places)
                reader.join(subscription)
                async for next_record in subscription.records():
                    position = next_record.record.position
                    if position.offset >= reader.read.of(position.partition):
                        places = reader.read.at_least(next_record.places)
                        await reader.take(next_record.record, places, selected=True)
            finally:
                await self._tail.leave(subscription)
            if subscription.ended is not None:
                reader.end(subscription.ended)
        except OffsetsLost as lost:
            log.warning("following_lost_its_place", topic=self._topic, why=str(lost))
            reader.end("gone")
        except StageError as error:
            log.warning("following_interrupted", topic=self._topic, why=str(error))
        finally:
            reader.end("unavailable")

    async def _catch_up(self, reader: TopicReader, select: Select) -> None:
        """Deliver older records one at a time, until the reader is close to the end."""
        while True:
            _, ends = await self._offsets()
            if _distance(reader.read, ends) <= CLOSE:
                reader.catch_up()
                return
            await self._read_older(reader, select, until=ends)

    async def _read_older(self, reader: TopicReader, select: Select, *, until: Offsets) -> None:
        """Deliver the records before `until`, read directly from the log. Raises OffsetsLost."""
        behind = reader.read.behind(until)
        if not behind:
            return
        starts, ends = await self._offsets()
        self._check(reader.read, starts, ends)
        async with aclosing(self._log.read(self._topic, start=behind)) as records:
            async for record in records:
                position = record.position
                if reader.read.of(position.partition) <= position.offset < until.of(position.partition):
                    await reader.take(record, reader.read.after(position), selected=select(record))
        reader.skip(until)


def _distance(places: Offsets, ends: Offsets) -> int:
    return sum(ends.of(partition) - at for partition, at in places.behind(ends).items())


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task repeatedly until it has ended.

    One cancellation may have no effect: an aiokafka consumer that is closing cancels its own tasks and suppresses the
    resulting CancelledError (`consumer/fetcher.py`, `Fetcher.close`).
    """
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_AGAIN)

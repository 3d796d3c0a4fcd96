"""Fan-out of a topic: tokens, retention, and a log that stops answering."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import Transient
from memstream.streams.log.fanout import CLOSE, FanoutBounds, OffsetsLost, TopicFanout
from memstream.streams.log.offsets import TOKEN_MAX, Offsets
from memstream.streams.log.port import Log, Position, Record

OFFSETS = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=64).map(tuple)
BOUNDS = FanoutBounds(readers=4, catching_up=2, room=10)


@given(OFFSETS)
def test_a_token_decodes_to_its_offsets(offsets: tuple[int, ...]) -> None:
    token = Offsets(offsets).token()
    assert Offsets.read(token) == Offsets(offsets)
    assert token.isascii()
    assert not set(token) & set(' \r\n,;"')


@given(
    st.text(max_size=40)
    | OFFSETS.map(lambda offsets: Offsets(offsets).token()).flatmap(
        lambda token: st.integers(0, len(token)).map(lambda cut: token[:cut] + "é" + token[cut:])
    )
)
def test_other_texts_are_refused(text: str) -> None:
    try:
        places = Offsets.read(text)
    except ValueError:
        return
    assert places.token() == text


@pytest.mark.parametrize(
    "text", ["", "1.", "2.MA", "1.LTE", "1.MSwx", "1." + "M" * TOKEN_MAX, "1.MS4w", "1.IDE", "1.MA!!!"]
)
def test_these_are_no_tokens(text: str) -> None:
    if text == "1.MSwx":  # "1,1": this one is
        assert Offsets.read(text) == Offsets((1, 1))
        return
    with pytest.raises(ValueError, match="is not a position"):
        Offsets.read(text)


@given(OFFSETS, OFFSETS)
def test_the_later_of_two_is_behind_neither(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    both = Offsets(one).at_least(Offsets(other))
    assert both.behind(Offsets(one)) == both.behind(Offsets(other)) == {}
    assert both == Offsets(other).at_least(Offsets(one))


class FakeLog:
    """A log of one partition, with its records, its retention and its outages."""

    def __init__(self, count: int) -> None:
        self.first, self.end = 0, count
        self.away = asyncio.Event()
        self.flowing = asyncio.Event()
        """Followers get records only while it is set."""
        self.flowing.set()
        self.grows = 0
        """The number of records by which the log grows whenever its end is read."""

    async def starts(self, topic: str) -> tuple[int, ...]:
        return (self.first,)

    async def ends(self, topic: str) -> tuple[int, ...]:
        self.end += self.grows
        return (self.end,)

    async def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncIterator[Record]:
        at, until = max((start or {}).get(0, 0), self.first), self.end
        while follow or at < until:
            if at < self.end and (not follow or self.flowing.is_set()):
                yield Record(Position(topic, 0, at), b"k", b"%d" % at)
                at += 1
                await asyncio.sleep(0)
                continue
            if self.away.is_set():
                raise Transient("broker", "gone away")
            await asyncio.sleep(0)


def followers(log: FakeLog) -> TopicFanout:
    return TopicFanout(log=cast(Log, log), topic="t", bounds=BOUNDS)


async def end_of(reader: Any) -> str:
    async with asyncio.timeout(5):
        while reader.ended is None:
            await reader.next(within=5)
    return str(reader.ended)


async def offsets_of(reader: Any, count: int) -> list[int]:
    found = []
    async with asyncio.timeout(5):
        while len(found) < count:
            received = await reader.next(within=5)
            assert received is not None, f"ended: {reader.ended}"
            found.append(received.record.position.offset)
    return found


async def test_records_that_come_while_a_reader_joins_are_not_missed() -> None:
    log = FakeLog(CLOSE + 2)
    log.grows = 3
    async with followers(log).follow("beginning", lambda record: True) as reader:
        assert await offsets_of(reader, CLOSE + 8) == list(range(CLOSE + 8))


async def test_a_shared_reader_that_lags_delivers_nothing_twice() -> None:
    log = FakeLog(0)
    many = TopicFanout(log=cast(Log, log), topic="t", bounds=FanoutBounds(readers=4, catching_up=2, room=2 * CLOSE))
    async with many.follow("now", lambda record: True) as first:
        assert await first.next(within=0.01) is None  # the shared reader stands at 0
        log.flowing.clear()
        log.end = CLOSE + 8
        async with many.follow("beginning", lambda record: True) as second:
            found = await offsets_of(second, CLOSE + 8)  # by a reader of its own
            assert await second.next(within=0.01) is None
            log.flowing.set()
            log.end += 2
            assert found + await offsets_of(second, 2) == list(range(CLOSE + 10))
        assert await offsets_of(first, CLOSE + 10) == list(range(CLOSE + 10))


class TwoPartitions:
    """A log of two partitions. A follower gets one partition after the other."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.flowing = [asyncio.Event(), asyncio.Event()]

    async def starts(self, topic: str) -> tuple[int, ...]:
        return (0, 0)

    async def ends(self, topic: str) -> tuple[int, ...]:
        return tuple(self.counts)

    async def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncIterator[Record]:
        at = dict(start or {})
        while True:
            for partition in at:
                while at[partition] < self.counts[partition] and (not follow or self.flowing[partition].is_set()):
                    yield Record(Position(topic, partition, at[partition]), b"k", b"v")
                    at[partition] += 1
                    await asyncio.sleep(0)
            if not follow:
                return
            await asyncio.sleep(0)


async def test_offsets_are_the_readers_own_where_the_shared_reader_is_behind() -> None:
    """Otherwise a reader that comes back with these offsets would get the other partition again."""
    log, many = TwoPartitions(), CLOSE + 8
    readers = TopicFanout(log=cast(Log, log), topic="t", bounds=FanoutBounds(readers=4, catching_up=2, room=3 * CLOSE))
    async with readers.follow("now", lambda record: True) as first:
        assert await first.next(within=0.01) is None  # the shared reader stands at (0, 0)
        log.counts = [many, many]
        async with readers.follow("beginning", lambda record: True) as second:
            await offsets_of(second, 2 * many)  # by a reader of its own
            log.flowing[0].set()  # the shared one goes on in partition 0 alone
            log.counts[0] += 1
            received = await second.next(within=5)
            assert received is not None
            assert (received.record.position.partition, received.places) == (0, Offsets((many + 1, many)))
            assert second.place() == Offsets((many + 1, many))
            log.flowing[1].set()
            log.counts[1] += 1
            received = await second.next(within=5)
            assert received is not None
            assert (received.record.position.partition, received.places) == (1, Offsets((many + 1, many + 1)))


async def test_records_deleted_by_retention_are_reported() -> None:
    log = FakeLog(500)
    log.first = 100
    with pytest.raises(OffsetsLost, match="retention"):
        async with followers(log).follow(Offsets((99,)), lambda record: True):
            pass
    async with followers(log).follow(Offsets((100,)), lambda record: True) as reader:
        received = await reader.next(within=5)
        assert received is not None
        assert received.record.position.offset == 100


async def test_retention_during_a_catch_up_ends_the_reader() -> None:
    """The reader is too far behind to join, and retention deletes the records before it."""
    log = FakeLog(CLOSE + 2)
    many = followers(log)
    async with many.follow("beginning", lambda record: True) as reader:
        assert await reader.next(within=5) is not None
        log.end += 2 * CLOSE
        log.first = log.end - 1
        assert await end_of(reader) == "gone"


async def test_a_log_that_does_not_answer_ends_all_readers_and_the_next_one_works() -> None:
    log = FakeLog(0)
    many = followers(log)
    async with many.follow("now", lambda record: True) as one, many.follow("now", lambda record: True) as other:
        await asyncio.sleep(0)
        log.away.set()
        assert [await end_of(one), await end_of(other)] == ["unavailable", "unavailable"]
    log.away.clear()
    async with many.follow("now", lambda record: True) as again:
        log.end += 1
        received = await again.next(within=5)
        assert received is not None
        assert received.places == Offsets((1,))


async def test_a_missing_topic_is_reported_with_its_remedy() -> None:
    log = FakeLog(0)
    log.ends = log.starts = lambda topic: asyncio.sleep(0, ())  # type: ignore[assignment, method-assign]
    with pytest.raises(Transient, match="no topic t") as caught:
        async with followers(log).follow("now", lambda record: True):
            pass
    assert caught.value.remedy == "memstream topics create"

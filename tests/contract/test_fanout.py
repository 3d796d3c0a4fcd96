"""Many readers of one topic, over the folder and over a real broker. Each gets the records after its position once, in
the order of each partition, however readers join, leave and return."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from memstream.streams.log.fanout import (
    Begin,
    FanoutBounds,
    OffsetsLost,
    TooManyReaders,
    TopicFanout,
    TopicReader,
)
from memstream.streams.log.offsets import Offsets, PositionedRecord
from memstream.streams.log.port import Log, Record, TopicSpec

PARTITIONS = 3
BOUNDS = FanoutBounds(readers=8, catching_up=4, room=200)
WITHIN = 30.0


@pytest.fixture
async def topic(log: Log, topic_prefix: str) -> str:
    await log.create([TopicSpec(f"{topic_prefix}told", PARTITIONS, 1, {})])
    return f"{topic_prefix}told"


@pytest.fixture
def followers(log: Log, topic: str) -> TopicFanout:
    return TopicFanout(log=log, topic=topic, bounds=BOUNDS)


async def say(log: Log, topic: str, numbers: Sequence[int]) -> None:
    """Append numbers; number n goes to partition n mod 3."""
    for n in numbers:
        await log.append(topic, key=b"k", value=b"%d" % n, partition=n % PARTITIONS)


def every(record: Record) -> bool:
    return True


async def heard(following: TopicReader, count: int) -> list[PositionedRecord]:
    """Read the next `count` records. Fails when they do not come."""
    taken: list[PositionedRecord] = []
    async with asyncio.timeout(WITHIN):
        while len(taken) < count:
            told = await following.next(within=WITHIN)
            assert told is not None, following.ended
            taken.append(told)
    return taken


async def silent(following: TopicReader) -> bool:
    return await following.next(within=0.4) is None and following.ended is None


async def ended(following: TopicReader) -> str:
    async with asyncio.timeout(WITHIN):
        while following.ended is None:
            await following.next(within=0.1)
    return following.ended


def numbers(told: Sequence[PositionedRecord]) -> list[int]:
    return [int(each.record.value or b"") for each in told]


def each_once_in_order(told: Sequence[PositionedRecord], expected: Sequence[int]) -> None:
    assert sorted(numbers(told)) == sorted(expected)
    of_partition: dict[int, list[int]] = defaultdict(list)
    for each in told:
        of_partition[each.record.position.partition].append(each.record.position.offset)
    assert all(offsets == sorted(offsets) for offsets in of_partition.values())


async def test_from_the_beginning_and_on(log: Log, topic: str, followers: TopicFanout) -> None:
    await say(log, topic, range(10))
    async with followers.follow("beginning", every) as following:
        first = await heard(following, 10)
        await say(log, topic, range(10, 20))
        each_once_in_order(first + await heard(following, 10), range(20))
        assert await silent(following)


async def test_from_now_nothing_that_was(log: Log, topic: str, followers: TopicFanout) -> None:
    await say(log, topic, range(10))
    async with followers.follow("now", every) as following:
        await say(log, topic, [10])
        assert numbers(await heard(following, 1)) == [10]
        assert await silent(following)


async def test_after_each_place_comes_what_follows_it_and_nothing_else(
    log: Log, topic: str, followers: TopicFanout
) -> None:
    await say(log, topic, range(12))
    async with followers.follow("beginning", every) as following:
        told = await heard(following, 12)
    for n, each in enumerate(told):
        async with followers.follow(Offsets.read(each.places.token()), every) as following:
            each_once_in_order(await heard(following, 11 - n), numbers(told)[n + 1 :])
            assert n % 4 or await silent(following)


async def test_what_is_said_while_readers_join_and_come_back_reaches_each_once(
    log: Log, topic: str, followers: TopicFanout
) -> None:
    """Writers continue while readers begin at the beginning, stop, and resume from their last position. Seeded."""
    chance = random.Random(7)
    await say(log, topic, range(300))  # far enough behind that the first reader catches up alone

    async def reader(breaks: Sequence[int]) -> list[PositionedRecord]:
        told: list[PositionedRecord] = []
        begin: Begin = "beginning"
        for until in (*breaks, 600):
            async with followers.follow(begin, every) as following:
                told += await heard(following, until - len(told))
                begin = told[-1].places if told else begin
        return told

    readers = [
        asyncio.create_task(reader(sorted(chance.sample(range(1, 600), 4)))),
        asyncio.create_task(reader([299, 300, 301])),
        asyncio.create_task(reader([])),
    ]
    await say(log, topic, range(300, 600))
    for told in await asyncio.gather(*readers):
        each_once_in_order(told, range(600))


async def test_what_others_are_told_moves_the_place(log: Log, topic: str, followers: TopicFanout) -> None:
    async with followers.follow("now", lambda record: record.value == b"7") as following:
        await say(log, topic, range(8))
        assert numbers(await heard(following, 1)) == [7]
        await say(log, topic, range(8, 12))
        async with asyncio.timeout(WITHIN):
            while following.place() != Offsets(await log.ends(topic)):
                assert await following.next(within=0.05) is None
    async with followers.follow(following.place(), every) as later:
        assert await silent(later)


async def test_a_slow_reader_is_cut_off_and_loses_nothing(log: Log, topic: str) -> None:
    followers = TopicFanout(log=log, topic=topic, bounds=FanoutBounds(readers=8, catching_up=4, room=3))
    async with followers.follow("now", every) as slow, followers.follow("now", every) as quick:
        await say(log, topic, [0])
        assert numbers(await heard(quick, 1)) == [0]
        for n in range(1, 12):  # the fast reader takes each record, the slow one none
            await say(log, topic, [n])
            assert numbers(await heard(quick, 1)) == [n]
        told: list[PositionedRecord] = []
        async with asyncio.timeout(WITHIN):
            while slow.ended is None:
                each = await slow.next(within=WITHIN)
                told += [each] if each is not None else []
        assert slow.ended == "slow"
        assert len(told) < 12
        assert quick.ended is None
    async with followers.follow(told[-1].places, every) as again:
        each_once_in_order(told + await heard(again, 12 - len(told)), range(12))


async def test_there_are_as_many_as_may_be(log: Log, topic: str) -> None:
    followers = TopicFanout(log=log, topic=topic, bounds=FanoutBounds(readers=2, catching_up=1, room=10))
    await say(log, topic, range(200))
    async with followers.follow("beginning", every) as behind:
        await heard(behind, 1)
        with pytest.raises(TooManyReaders, match="behind"):
            async with followers.follow("beginning", every):
                pass
        async with followers.follow("now", every):
            with pytest.raises(TooManyReaders, match="2 streams"):
                async with followers.follow("now", every):
                    pass
        await heard(behind, 199)
        async with asyncio.timeout(WITHIN):
            while followers.catching_up:  # it notices that it has reached the end
                await asyncio.sleep(0.01)
        async with followers.follow("beginning", every) as next_one:
            assert len(await heard(next_one, 200)) == 200
    assert followers.readers == 0


async def test_all_end_when_it_closes(log: Log, topic: str, followers: TopicFanout) -> None:
    async with followers.follow("now", every) as one, followers.follow("beginning", every) as other:
        followers.close()
        assert (await ended(one), await ended(other)) == ("shutdown", "shutdown")
    with pytest.raises(TooManyReaders):
        async with followers.follow("now", every):
            pass


async def test_a_place_beyond_the_end_is_lost(log: Log, topic: str, followers: TopicFanout) -> None:
    await say(log, topic, range(3))
    for places in (Offsets((1, 2, 1)), Offsets((1, 1, 1, 1))):
        with pytest.raises(OffsetsLost):
            async with followers.follow(places, every):
                pass


async def test_partitions_that_came_later_begin_at_their_beginning(
    log: Log, topic: str, followers: TopicFanout
) -> None:
    await say(log, topic, range(6))
    async with followers.follow(Offsets((2,)), every) as following:
        each_once_in_order(await heard(following, 4), [1, 2, 4, 5])

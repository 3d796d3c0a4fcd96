"""The contract of `Log` (streams/log/port.py), over the folder and over a real broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest

from memstream.schemas.errors import Fatal, Poison, Transient
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Headers, Log, Position, Record, TopicSpec

BIG = {"max.message.bytes": str(4 << 20)}


class Topics:
    """Topics of one test, under names that no other test uses."""

    def __init__(self, log: Log, prefix: str) -> None:
        self._log, self._prefix = log, prefix

    def name(self, topic: str) -> str:
        return self._prefix + topic

    async def make(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        await self._log.create([TopicSpec(self.name(topic), partitions, 1, config or {})])
        return self.name(topic)


@pytest.fixture
def topics(log: Log, topic_prefix: str) -> Topics:
    return Topics(log, topic_prefix)


async def everything(log: Log, topic: str, start: Mapping[int, int] | None = None) -> list[Record]:
    return [record async for record in log.read(topic, start=start)]


async def values(log: Log, topic: str, start: Mapping[int, int] | None = None) -> list[bytes | None]:
    return [record.value for record in await everything(log, topic, start)]


async def fill(log: Log, topic: str, contents: Sequence[bytes], key: bytes | None = b"k") -> list[Position]:
    return [await log.append(topic, key=key, value=content) for content in contents]


# ------------------------------------------------------------------------------------------------------------ records


async def test_append_says_where_the_record_lies(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    assert await fill(log, topic, [b"a", b"b"]) == [Position(topic, 0, 0), Position(topic, 0, 1)]
    assert [record.position for record in await everything(log, topic)] == [
        Position(topic, 0, 0),
        Position(topic, 0, 1),
    ]


async def test_records_come_back_as_they_were_given(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    headers: Headers = (("ce_id", b"\x00\xff"), ("ce_id", b"twice"), ("leer", b""), ("größe", "ü😀".encode()))
    given: list[tuple[bytes | None, bytes | None, Headers, int]] = [
        (b"key", b"value", headers, 1_700_000_000_123),
        (None, b"no key", (), 1),
        (b"tombstone", None, (), 1_700_000_000_124),
        (b"", b"", (), 1_700_000_000_125),
        ("schlüssel/😀".encode(), bytes(range(256)), (), 1_700_000_000_126),
    ]
    for key, value, record_headers, timestamp in given:
        await log.append(topic, key=key, value=value, headers=record_headers, timestamp=timestamp)
    found = [(r.key, r.value, r.headers, r.timestamp) for r in await everything(log, topic)]
    assert found == given


async def test_without_a_timestamp_the_time_of_the_append_counts(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    before = int(time.time() * 1000)
    await log.append(topic, key=b"k", value=b"v")
    (record,) = await everything(log, topic)
    assert before <= record.timestamp <= int(time.time() * 1000)


async def test_a_record_of_a_clock_ahead_is_refused(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    hour = 3_600_000
    soon = int(time.time() * 1000) + hour // 2
    await log.append(topic, key=b"k", value=b"taken", timestamp=soon)
    with pytest.raises(Poison, match=r"(?s)message\.timestamp\.after\.max\.ms.*clock") as refused:
        await log.append(topic, key=b"k", value=b"refused", timestamp=soon + hour)
    assert refused.value.reason == "invalid"
    await log.append(topic, key=b"k", value=b"after")
    assert [record.value for record in await everything(log, topic)] == [b"taken", b"after"]


async def test_a_key_stays_on_its_murmur2_partition_and_in_order(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=5)
    keys = [f"acme/u{n}/s{n}".encode() for n in range(20)]
    for n in range(5):
        await asyncio.gather(*(log.append(topic, key=key, value=b"%d" % n) for key in keys))
    found = await everything(log, topic)
    assert len(found) == 100
    for key in keys:
        mine = [record for record in found if record.key == key]
        assert [record.value for record in mine] == [b"%d" % n for n in range(5)]
        assert {record.position.partition for record in mine} == {partition_for(key, 5)}


async def test_concurrent_appends_of_one_caller_keep_their_order(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    contents = [b"%d" % n for n in range(300)]
    places = await asyncio.gather(*(log.append(topic, key=b"k", value=content) for content in contents))
    assert [place.offset for place in places] == list(range(300))
    assert await values(log, topic) == contents


async def test_a_given_partition_wins_over_the_key(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=3)
    for partition in range(3):
        place = await log.append(topic, key=b"same", value=b"v", partition=partition)
        assert place == Position(topic, partition, 0)


async def test_records_without_a_key_get_some_partition(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=3)
    places = await fill(log, topic, [b"%d" % n for n in range(20)], key=None)
    assert {place.partition for place in places} <= {0, 1, 2}
    assert sorted(await values(log, topic), key=lambda v: int(v or b"")) == [b"%d" % n for n in range(20)]


async def test_a_value_of_three_mib_passes_where_the_topic_allows_it(log: Log, topics: Topics) -> None:
    topic = await topics.make("big", config=BIG)
    value = bytes(range(256)) * (3 << 12)
    await log.append(topic, key=b"k", value=value)
    assert await values(log, topic) == [value]


async def test_a_value_above_the_topics_limit_is_refused_and_leaves_no_trace(log: Log, topics: Topics) -> None:
    topic = await topics.make("small", config={"max.message.bytes": "1000"})
    with pytest.raises(Poison) as refused:
        await log.append(topic, key=b"k", value=b"x" * 2000)
    assert refused.value.reason == "oversized"
    await log.append(topic, key=b"k", value=b"x")
    assert await values(log, topic) == [b"x"]


async def test_an_append_to_no_topic_is_fatal_and_names_the_command(log: Log, topics: Topics) -> None:
    with pytest.raises(Fatal, match="topics create"):
        await log.append(topics.name("absent"), key=b"k", value=b"v")


# --------------------------------------------------------------------------------------------------- reading, offsets


async def test_starts_ends_and_reading_from_an_offset(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    for n in range(3):
        await log.append(topic, key=None, value=b"%d" % n, partition=0)
    await log.append(topic, key=None, value=b"one", partition=1)
    assert await log.starts(topic) == (0, 0)
    assert await log.ends(topic) == (3, 1)
    assert await values(log, topic, {0: 1}) == [b"1", b"2"]
    assert await values(log, topic, {1: 0}) == [b"one"]
    assert await values(log, topic, {0: 3}) == []
    assert await values(log, topic, {0: 99}) == []


async def test_a_topic_that_is_not_there_is_empty(log: Log, topics: Topics) -> None:
    absent = topics.name("absent")
    assert await log.partitions(absent) is None
    assert await log.starts(absent) == await log.ends(absent) == await log.committed("g", absent) == ()
    assert await log.first_at_or_after(absent, 0, 0) is None
    assert await values(log, absent) == []


async def test_first_at_or_after(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    await fill(log, topic, [b"0", b"1", b"2"])
    partition = partition_for(b"k", 2)
    assert [await log.first_at_or_after(topic, partition, offset) for offset in (0, 1, 2, 3, 99)] == [
        0,
        1,
        2,
        None,
        None,
    ]
    assert await log.first_at_or_after(topic, 1 - partition, 0) is None
    assert await log.first_at_or_after(topic, 7, 0) is None


async def test_where_a_time_begins(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    now = time.time_ns() // 1_000_000
    for partition, ages in enumerate(([], [50, 40, 40, 40, 30, 10])):
        for age in ages:
            await log.append(topic, key=b"k", value=b"v", partition=partition, timestamp=now - age)
    asked = {60: 0, 50: 0, 49: 1, 40: 1, 39: 4, 30: 4, 10: 5, 9: None, -99: None}
    assert {age: await log.offset_at(topic, 1, now - age) for age in asked} == asked
    assert await log.offset_at(topic, 1, -5) == 0
    assert [await log.offset_at(topic, partition, 0) for partition in (0, 7)] == [None, None]
    assert await log.offset_at(topics.name("absent"), 0, 0) is None


async def test_a_long_topic_is_read_whole(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    contents = [b"%d" % n for n in range(1300)]
    await asyncio.gather(*(log.append(topic, key=None, value=c, partition=n % 2) for n, c in enumerate(contents)))
    found = await everything(log, topic)
    for partition in range(2):
        mine = [record for record in found if record.position.partition == partition]
        assert [record.position.offset for record in mine] == list(range(650))
        assert [record.value for record in mine] == contents[partition::2]


async def test_reading_ends_at_the_ends_of_its_beginning(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    await fill(log, topic, [b"0", b"1"])
    seen = []
    async for record in log.read(topic):
        seen.append(record.value)
        await log.append(topic, key=b"k", value=b"later")
    assert seen == [b"0", b"1"]


async def test_following_goes_on_with_what_comes(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    await log.append(topic, key=None, value=b"old", partition=0)
    seen: list[bytes | None] = []
    arrived = asyncio.Event()

    async def follow() -> None:
        async for record in log.read(topic, start={0: 1, 1: 0}, follow=True):
            seen.append(record.value)
            arrived.set()

    task = asyncio.create_task(follow())
    try:
        for n in range(10):
            arrived.clear()
            await log.append(topic, key=None, value=b"%d" % n, partition=n % 2)
            await asyncio.wait_for(arrived.wait(), 20)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert seen == [b"%d" % n for n in range(10)]


async def test_partitions_are_added_and_keep_what_is_there(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    await fill(log, topic, [b"0", b"1"])
    await log.commit(topics.name("group"), topic, {0: 1})
    for _ in range(2):  # the second time it changes nothing
        await log.add_partitions(topic, 5)
        assert await log.partitions(topic) == len(await log.ends(topic)) == 5
    assert await values(log, topic) == [b"0", b"1"]
    assert await log.committed(topics.name("group"), topic) == (1, None, None, None, None)
    keys = [b"k%d" % n for n in range(20)]
    placed = {key: (await log.append(topic, key=key, value=b"new")).partition for key in keys}
    assert placed == {key: partition_for(key, 5) for key in keys}


async def test_commits_of_a_group_without_members(log: Log, topics: Topics) -> None:
    topic, group = await topics.make("t", partitions=3), topics.name("group")
    await log.commit(group, topic, {0: 4, 2: 7})
    await log.commit(group, topic, {2: 9})
    assert await log.committed(group, topic) == (4, None, 9)


async def test_a_follower_learns_that_its_topic_has_grown(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    if isinstance(log, KafkaLog):
        pytest.skip("its client learns of it after half a minute")

    async def follow() -> None:
        async for _ in log.read(topic, follow=True):
            pass

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await log.add_partitions(topic, 2)
    with pytest.raises(Transient, match="more partitions"):
        await asyncio.wait_for(following, 20)


async def test_two_may_follow_one_topic(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    started = asyncio.Barrier(3)

    async def follow() -> list[bytes | None]:
        seen = []
        await started.wait()
        async for record in log.read(topic, follow=True):
            seen.append(record.value)
            if len(seen) == 3:
                break
        return seen

    tasks = [asyncio.create_task(follow()) for _ in range(2)]
    await started.wait()
    contents = [b"0", b"1", b"2"]
    await fill(log, topic, contents)
    assert await asyncio.wait_for(asyncio.gather(*tasks), 30) == [contents, contents]


async def test_nothing_is_committed_and_nobody_works_for_an_unknown_group(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2)
    assert await log.committed(topics.name("group"), topic) == (None, None)
    assert await log.members(topics.name("group")) == 0


# ------------------------------------------------------------------------------------------------------------- topics


async def test_topics_stand_as_they_were_made(log: Log, topics: Topics) -> None:
    compact = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
    await topics.make("a", partitions=3, config=compact)
    await topics.make("b", config={"retention.ms": "1000"})
    assert await log.partitions(topics.name("a")) == 3
    layouts = await log.topics()
    a, b = layouts[topics.name("a")], layouts[topics.name("b")]
    assert (a.name, a.partitions, b.partitions) == (topics.name("a"), 3, 1)
    assert {name: a.config[name] for name in compact} == compact
    assert b.config["retention.ms"] == "1000"


async def test_making_a_topic_again_changes_nothing(log: Log, topics: Topics) -> None:
    topic = await topics.make("t", partitions=2, config={"retention.ms": "5000"})
    await log.append(topic, key=b"k", value=b"v")
    await log.create([TopicSpec(topic, 4, 1, {"retention.ms": "9000"}), TopicSpec(topics.name("new"), 1, 1, {})])
    layouts = await log.topics()
    assert layouts[topic].partitions == 2
    assert layouts[topic].config["retention.ms"] == "5000"
    assert topics.name("new") in layouts
    assert await values(log, topic) == [b"v"]


async def test_a_topic_made_again_after_it_was_deleted_is_empty(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    await fill(log, topic, [b"a", b"b"])
    await log.delete([topic, topics.name("absent")])
    assert await log.partitions(topic) is None
    await topics.make("t")
    assert await log.ends(topic) == (0,)
    await log.append(topic, key=b"k", value=b"c")
    assert [(r.position.offset, r.value) for r in await everything(log, topic)] == [(0, b"c")]


@pytest.mark.parametrize("name", ["größe", "a b", "a/b", ".", "x" * 250])
async def test_a_name_outside_kafkas_rule_is_refused(log: Log, name: str) -> None:
    with pytest.raises(Fatal):
        await log.create([TopicSpec(name, 1, 1, {})])
    assert name not in await log.topics()


async def test_before_the_start_and_after_the_close_the_log_says_so(log: Log, topics: Topics) -> None:
    topic = await topics.make("t")
    await log.delete([topic])
    await log.close()
    with pytest.raises(Fatal, match="start"):
        await log.append(topic, key=b"k", value=b"v")
    await log.start()  # the log may be opened again
    assert await log.partitions(topic) is None


def test_the_partitioner_is_kafkas_murmur2() -> None:
    """Values from the test of the Java client (UtilsTest.testMurmur2)."""
    assert [partition_for(key, 1000) for key in (b"21", b"foobar", b"a-little-bit-long-string")] == [
        (murmur & 0x7FFFFFFF) % 1000 for murmur in (-973932308, -790332482, -985981536)
    ]
    assert all(0 <= partition_for(b"%d" % n, 12) < 12 for n in range(100))

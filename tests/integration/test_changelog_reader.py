"""What a restore reads with, on the broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.fetch import FetchRequest
from faust.types import TP

from memstream.schemas.topics import changelog_of
from memstream.streams.faust.transports import changelog_reader
from memstream.streams.faust.transports.changelog_reader import ChangelogReader
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.kafka_access import KafkaAccess
from memstream.streams.log.port import TopicSpec
from tests.support.kafka import Broker

pytestmark = pytest.mark.kafka
WAIT = 1.0


@pytest.fixture
async def topic(kafka_broker: str, topic_prefix: str) -> AsyncIterator[str]:
    """Two partitions; 0 has a hundred values of 100 kB that do not shrink, and behind them a transaction's marker; 1 is
    empty. The topic has the settings of a stage's changelog: the broker compresses it."""
    name = f"{topic_prefix}changelog"
    log = KafkaLog(servers=[kafka_broker])
    await log.start()
    changelog = changelog_of("observer")
    assert changelog is not None
    await log.create([TopicSpec(name, 2, 1, changelog.settings())])
    assert (await log.topics())[name].config["compression.type"] == "zstd"
    producer = AIOKafkaProducer(bootstrap_servers=kafka_broker, transactional_id=name, max_request_size=1 << 22)
    async with producer, producer.transaction():
        for n in range(100):
            await producer.send(name, Random(n).randbytes(100_000), key=b"k%d" % n, partition=0)
    yield name
    await log.close()


def reader_of(broker: str) -> ChangelogReader:
    return ChangelogReader(access=KafkaAccess([broker]), client_id="test")


async def read_all(reader: ChangelogReader, tp: TP, start: int, end: int) -> tuple[list[int], int]:
    at, offsets = start, []
    while at < end:
        records, at = await reader.read(tp, at, WAIT)
        offsets += [record.offset for record in records]
    return offsets, at


async def test_a_partition_is_read_from_any_offset_to_behind_the_marker(kafka_broker: str, topic: str) -> None:
    async with reader_of(kafka_broker) as reader:
        assert await read_all(reader, TP(topic, 0), 0, 101) == (list(range(100)), 101)
        assert await read_all(reader, TP(topic, 0), 97, 101) == ([97, 98, 99], 101), "back again"


async def test_a_read_is_bounded_in_rows(kafka_broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of compressed rows may have many times its bytes."""
    monkeypatch.setattr(changelog_reader, "READ_ROWS", 7)
    async with reader_of(kafka_broker) as reader:
        at, read = 0, 0
        while at < 101:
            records, at = await reader.read(TP(topic, 0), at, WAIT)
            assert len(records) <= 7
            read += len(records)
    assert (read, at) == (100, 101)


async def test_it_tells_where_partitions_begin_and_end(kafka_broker: str, topic: str) -> None:
    both = [TP(topic, 0), TP(topic, 1)]
    async with reader_of(kafka_broker) as reader:
        assert await reader.starts(both) == {TP(topic, 0): 0, TP(topic, 1): 0}
        assert await reader.ends(both) == {TP(topic, 0): 101, TP(topic, 1): 0}


async def test_nothing_is_fetched_but_in_a_read(kafka_broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch behind the end would wait at the broker, and whatever is asked next behind it."""
    asked: list[int] = []
    send = AIOKafkaClient.send

    async def watched(client: AIOKafkaClient, node: int, request: Any, **rest: Any) -> Any:
        if isinstance(request, FetchRequest):
            asked.extend(offset for _, partitions in request.topics for _, offset, _ in partitions)
        return await send(client, node, request, **rest)

    monkeypatch.setattr(AIOKafkaClient, "send", watched)
    async with reader_of(kafka_broker) as reader:
        assert (await read_all(reader, TP(topic, 0), 0, 101))[1] == 101
        for _ in range(100):
            await asyncio.sleep(0)
        assert (await read_all(reader, TP(topic, 0), 50, 101))[1] == 101
    assert len(asked) > 2
    assert max(asked) < 101


async def test_an_empty_partition_comes_back_with_nothing_and_the_next_one_is_read(
    kafka_broker: str, topic: str
) -> None:
    async with reader_of(kafka_broker) as reader:
        assert await reader.read(TP(topic, 1), 0, 0.01) == ([], 0)
        assert await read_all(reader, TP(topic, 0), 90, 101) == (list(range(90, 100)), 101)
        assert await reader.read(TP(topic, 1), 0, 0.01) == ([], 0)


@pytest.mark.long
async def test_a_broker_that_is_away_gives_nothing_until_it_is_back(own_kafka: Broker, topic_prefix: str) -> None:
    name, server = f"{topic_prefix}changelog", own_kafka.bootstrap
    log = KafkaLog(servers=[server])
    await log.start()
    await log.create([TopicSpec(name, 1, 1, {})])
    await log.append(name, key=b"k", value=b"v", partition=0)
    await log.close()
    own_kafka.kill()
    async with reader_of(server) as reader:
        assert await reader.read(TP(name, 0), 0, 0.1) == ([], 0)
        own_kafka.start()
        assert await read_all(reader, TP(name, 0), 0, 1) == ([0], 1)
        own_kafka.kill()
        assert await reader.read(TP(name, 0), 1, 0.1) == ([], 1)
        own_kafka.start()

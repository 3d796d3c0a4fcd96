"""What only KafkaLog can show: a server that is not there, goes away, and comes back."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition

from memstream.schemas.errors import DeploymentFault, Fatal, Poison, Transient
from memstream.streams.log import kafka, write_errors
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import Position, TopicSpec
from tests.support.kafka import Broker, free_port
from tests.support.polling import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


async def test_a_server_that_is_not_there_is_named() -> None:
    log = KafkaLog(servers=[f"127.0.0.1:{free_port()}"], timeout=3)
    with pytest.raises(Transient, match=r"kafka://127\.0\.0\.1") as caught:
        await log.start()
    assert caught.value.component == "broker"
    assert caught.value.remedy
    await log.close()


@pytest.mark.long
async def test_a_server_that_goes_away_is_told_in_time_and_found_again(own_kafka: Broker, topic_prefix: str) -> None:
    topic = f"{topic_prefix}t"
    log = KafkaLog(servers=[own_kafka.bootstrap], timeout=3)
    await log.start()
    try:
        await log.create([TopicSpec(topic, 1, 1, {})])
        assert await log.append(topic, key=b"k", value=b"1") == Position(topic, 0, 0)
        await asyncio.to_thread(own_kafka.kill)
        for call in (
            lambda: log.append(topic, key=b"k", value=b"2"),
            lambda: log.ends(topic),
            lambda: log.topics(),
            lambda: log.committed("g", topic),
            lambda: log.members("g"),
            lambda: log.create([TopicSpec(f"{topic}2", 1, 1, {})]),
        ):
            before = time.monotonic()
            with pytest.raises(Transient):
                await call()
            assert time.monotonic() - before < 5
        await asyncio.to_thread(own_kafka.start)

        async def refused() -> Transient | None:
            try:
                await log.append(topic, key=b"k", value=b"3")
            except Transient as error:
                return error
            return None

        await wait_for(refused, "an append to the started broker", until=lambda error: error is None, deadline=60)
        values = [record.value async for record in log.read(topic)]
        # What was told as failed may have arrived all the same: the producer had it, and nobody can take it back.
        assert values[0] == b"1"
        assert set(values) - {b"2"} == {b"1", b"3"}
    finally:
        await log.close()


async def test_closing_while_the_server_is_away_ends(own_kafka: Broker, topic_prefix: str) -> None:
    log = KafkaLog(servers=[own_kafka.bootstrap], timeout=2)
    await log.start()
    await log.create([TopicSpec(f"{topic_prefix}t", 1, 1, {})])
    await asyncio.to_thread(own_kafka.kill)
    with pytest.raises(Transient):
        await log.append(f"{topic_prefix}t", key=b"k", value=b"1")
    before = time.monotonic()
    await log.close()
    assert time.monotonic() - before < 5


async def test_a_producer_that_lost_its_place_is_replaced(kafka_broker: str, topic_prefix: str) -> None:
    """As after an outage in which aiokafka dropped a batch: its sequence number is gone, the broker waits for it."""
    topic = f"{topic_prefix}t"
    log = KafkaLog(servers=[kafka_broker])
    await log.start()
    try:
        await log.create([TopicSpec(topic, 1, 1, {})])
        await log.append(topic, key=b"k", value=b"1")
        log._producer._txn_manager.increment_sequence_number(TopicPartition(topic, 0), 1)
        with pytest.raises(Transient, match="OutOfOrderSequenceNumber"):
            await log.append(topic, key=b"k", value=b"2")
        assert (await log.append(topic, key=b"k", value=b"2")).offset == 1
    finally:
        await log.close()


async def test_a_read_whose_broker_goes_away_is_told_so(own_kafka: Broker, topic_prefix: str) -> None:
    topic, large = f"{topic_prefix}t", bytes(500_000)
    log = KafkaLog(servers=[own_kafka.bootstrap], timeout=3)
    await log.start()
    try:
        await log.create([TopicSpec(topic, 1, 1, {})])
        for _ in range(20):  # more than one fetch brings
            await log.append(topic, key=b"k", value=large)
        reading = log.read(topic)
        await anext(reading)
        await asyncio.to_thread(own_kafka.kill)
        with pytest.raises(Transient, match="nothing came"):
            async for _ in reading:
                pass
    finally:
        await log.close()


AHEAD = 7_200_000
"""Milliseconds; the broker takes an hour by default (message.timestamp.after.max.ms)."""


async def test_a_refusal_for_good_names_its_cause(
    kafka_broker: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{topic_prefix}t"
    log = KafkaLog(servers=[kafka_broker], timeout=10)
    await log.start()
    try:
        await log.create([TopicSpec(topic, 1, 1, {"cleanup.policy": "compact"})])
        stamp = int(time.time() * 1000) + AHEAD
        with pytest.raises(Poison, match=r"message\.timestamp\.after\.max\.ms"):
            await log.append(topic, key=b"k", value=b"1", timestamp=stamp)
        with pytest.raises(Fatal, match="InvalidRecord"):  # compaction needs a key
            await log.append(topic, key=None, value=b"1")
        monkeypatch.setattr(write_errors, "_is_own_time", lambda timestamp: timestamp == stamp)
        with pytest.raises(DeploymentFault, match="time of this machine") as wrong_clock:
            await log.append(topic, key=b"k", value=b"1", timestamp=stamp)
        assert "memstream doctor" in wrong_clock.value.remedy
        assert (await log.append(topic, key=b"k", value=b"2")).offset == 0
    finally:
        await log.close()


@pytest.mark.parametrize("ahead", [0, 7_200, -7_200])
async def test_the_clock_is_compared_with_the_brokers(
    ahead: int, kafka_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KafkaLog(servers=[kafka_broker], timeout=10)
    await log.start()
    try:
        clock = time.time
        monkeypatch.setattr(kafka, "time", SimpleNamespace(time=lambda: clock() + ahead))
        assert await log.clock_ahead(replication=1) == pytest.approx(ahead, abs=5)
    finally:
        await log.close()

"""The broker harness itself: it comes up, and it keeps address and data through a kill."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.support.kafka import Broker, free_port

pytestmark = pytest.mark.kafka


async def _create(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 1)])
    finally:
        await admin.close()


async def test_shared_broker_takes_and_gives_a_record(kafka_broker: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}in"
    await _create(kafka_broker, topic)
    async with AIOKafkaProducer(bootstrap_servers=kafka_broker, acks="all", enable_idempotence=True) as producer:
        await producer.send_and_wait(topic, b"v", key=b"k")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka_broker, auto_offset_reset="earliest")
    async with consumer:
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"v"


async def test_own_broker_keeps_its_data_through_kill(own_kafka: Broker, topic_prefix: str) -> None:
    topic, before = f"{topic_prefix}in", own_kafka.bootstrap
    await _create(before, topic)
    async with AIOKafkaProducer(bootstrap_servers=before, acks="all") as producer:
        await producer.send_and_wait(topic, b"v", partition=0)
    await asyncio.to_thread(own_kafka.kill)
    await asyncio.to_thread(own_kafka.start)
    assert own_kafka.bootstrap == before
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=before, auto_offset_reset="earliest")
    async with consumer:
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"v"


def test_ports_lie_below_the_ephemeral_range() -> None:
    assert all(free_port() < 32768 for _ in range(20))

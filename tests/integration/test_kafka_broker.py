"""The broker harness itself: it comes up, and it keeps address and data through a kill."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.support import kafka
from tests.support.kafka import Broker, ContainerBroker, GivenBroker, JarBroker, free_port, own_broker, session_broker
from tests.support.kafka_fixtures import or_skip


async def _create(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 1)])
    finally:
        await admin.close()


@pytest.mark.kafka
async def test_shared_broker_takes_and_gives_a_record(kafka_broker: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}in"
    await _create(kafka_broker, topic)
    async with AIOKafkaProducer(bootstrap_servers=kafka_broker, acks="all", enable_idempotence=True) as producer:
        await producer.send_and_wait(topic, b"v", key=b"k")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka_broker, auto_offset_reset="earliest")
    async with consumer:
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"v"


@pytest.mark.long
@pytest.mark.kafka
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


def test_the_given_broker_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMSTREAM_TEST_KAFKA", "h:1")
    broker = session_broker(tmp_path)
    assert isinstance(broker, GivenBroker)
    assert broker.bootstrap == "h:1"
    with pytest.raises(RuntimeError):
        broker.kill()


def test_then_docker_then_jars_then_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MEMSTREAM_TEST_KAFKA", raising=False)
    monkeypatch.setattr(kafka, "docker_answers", lambda: True)
    assert isinstance(session_broker(tmp_path), ContainerBroker)
    monkeypatch.setattr(kafka, "docker_answers", lambda: False)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert isinstance(own_broker(tmp_path), JarBroker)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert own_broker(tmp_path) is None


def test_without_one_the_run_says_how_to_get_one_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="MEMSTREAM_TEST_KAFKA"):
        or_skip(None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="MEMSTREAM_TEST_KAFKA"):
        or_skip(None)

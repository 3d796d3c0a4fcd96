"""Fixtures for tests that need a Kafka broker (see tests/support/kafka.py for how one is chosen)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .kafka import NO_BROKER, Broker, own_broker, session_broker


def or_skip(broker: Broker | None) -> Broker:
    """Return the broker. Without one, skip the test; in CI, fail it."""
    if broker is None:
        if os.environ.get("CI"):
            pytest.fail(NO_BROKER, pytrace=False)
        pytest.skip(NO_BROKER)
    return broker


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the broker that all tests of a run share. A test uses topics with its own prefix
    (`topic_prefix`).
    """
    broker = or_skip(session_broker(tmp_path_factory.mktemp("kafka")))
    try:
        broker.start()
        yield broker.bootstrap
    finally:
        broker.close()


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Broker]:
    """A broker for this test alone, started; the test may stop, kill and start it."""
    broker = or_skip(own_broker(tmp_path / "kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.fixture
def topic_prefix() -> str:
    """A unique prefix for topics and consumer groups on the shared broker."""
    return f"t{uuid.uuid4().hex[:10]}-"

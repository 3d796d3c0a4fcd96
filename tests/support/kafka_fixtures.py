"""Fixtures for tests that need a Kafka broker (see tests/support/kafka.py for how one is chosen)."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .kafka import NO_BROKER, Broker, has_jars, own_broker, session_broker
from .secure_kafka import SecureBroker


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--secure-kafka",
        action="store_true",
        help="the shared broker has TLS, SCRAM and ACLs that deny by default, and workers and commands use them",
    )


def or_skip(broker: Broker | None) -> Broker:
    """Return the broker. Without one, skip the test; in CI, fail it."""
    if broker is None:
        if os.environ.get("CI"):
            pytest.fail(NO_BROKER, pytrace=False)
        pytest.skip(NO_BROKER)
    return broker


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the broker that all tests of a run share. A test uses topics with its own prefix
    (`topic_prefix`).
    """
    folder = tmp_path_factory.mktemp("kafka")
    secure = request.config.getoption("secure_kafka")
    broker = or_skip(SecureBroker(folder) if secure and has_jars() else session_broker(folder))
    try:
        broker.start()
        if isinstance(broker, SecureBroker):
            asyncio.run(broker.add_roles())
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


@pytest.fixture(scope="module")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker with TLS, SASL and one user per role, started, without topics."""
    broker = SecureBroker(tmp_path_factory.mktemp("secure-kafka"))
    or_skip(broker if has_jars() else None)
    try:
        broker.start()
        asyncio.run(broker.add_roles())
        yield broker
    finally:
        broker.close()


@pytest.fixture
def topic_prefix() -> str:
    """A unique prefix for topics and consumer groups on the shared broker."""
    return f"t{uuid.uuid4().hex[:10]}-"

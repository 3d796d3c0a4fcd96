"""Logs of both kinds, started. What a test creates under its prefix is deleted afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import Log


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def log(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> AsyncIterator[Log]:
    made: Log
    if request.param == "kafka":
        made = KafkaLog(servers=[request.getfixturevalue("kafka_broker")], timeout=30)
    else:
        made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    try:
        yield made
        await made.delete([name for name in await made.topics() if name.startswith(topic_prefix)])
    finally:
        await made.close()

"""Logs of both kinds, started, whose topics are deleted afterwards, and the folder of a small model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import Log
from tests.support.small_model import minilm_or_skip


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


@pytest.fixture
def minilm_folder() -> str:
    return minilm_or_skip()

"""Producers compress with what their client offers; the broker keeps it so, and every consumer has to read it."""

from __future__ import annotations

import json

import pytest
from aiokafka import AIOKafkaProducer

from memstream.schemas import ids
from memstream.schemas.topics import TURNS
from tests.support.pipeline import Pipeline, turn

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]


@pytest.mark.fault(
    broken="turns compressed with gzip, snappy, lz4 and zstd, one producer each",
    holds="read like any other: by the stages, and by the commands",
)
async def test_turns_in_every_compression_of_kafka_are_read(pipeline: Pipeline) -> None:
    pipeline.spawn("recorder", "observer", "reflector")
    said = ["My name is Jake.", "I work at Google.", "I like green tea.", "I joined Stripe last week."]
    for n, (compression, text) in enumerate(zip(("gzip", "snappy", "lz4", "zstd"), said, strict=True), 1):
        told = turn(text, n, user="u1", tenant_id=pipeline.tenant)
        key = ids.session_key(pipeline.tenant, "u1", "s1").encode()
        async with AIOKafkaProducer(
            bootstrap_servers=pipeline.broker.removeprefix("kafka://"), compression_type=compression
        ) as producer:
            await producer.send_and_wait(TURNS.name, json.dumps(told).encode(), key=key)
    await pipeline.settled("recorder", "observer", "reflector")
    stored = pipeline.shown("turns")[pipeline.tenant]["turns"]
    assert {row["content"] for row in stored} == set(said)
    assert len(await pipeline.consistent()) >= 3
    await pipeline.verified("recorder", "observer", "reflector")

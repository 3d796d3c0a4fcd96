"""What a worker writes while something is away for a minute: cause and remedy, in a few lines."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memstream.cli.output.log_rate import LEFT_OUT
from tests.support.health import watched
from tests.support.kafka import Broker
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, turn
from tests.support.qdrant import QdrantServer
from tests.support.tcp_proxy import Down, HttpProxy, Well

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
STAGES = ("recorder", "observer", "reflector")
USERS = 80
"""More than the 64 that are in flight."""
MINUTE = 60.0
LINES_A_MINUTE = 100
"""Of a worker with three stages. Before lines were held back: 5 988 while the broker was away."""
Line = dict[str, Any]


def lines_of(pipeline: Pipeline) -> list[Line]:
    """Every line is one JSON object, whoever wrote it."""
    paths = sorted(pipeline.folder.glob("worker-*.log"))
    return [json.loads(line) for path in paths for line in path.read_text(errors="replace").splitlines()]


async def lines_of_a_minute(pipeline: Pipeline, before: int) -> list[Line]:
    await asyncio.sleep(MINUTE)  # this is the outage
    found = lines_of(pipeline)[before:]
    kinds = Counter(f"{line.get('logger', '')} {line['event']}"[:100] for line in found)
    assert len(found) <= LINES_A_MINUTE, kinds.most_common()
    return found


async def everybody_says_something(pipeline: Pipeline) -> None:
    for n in range(USERS):
        await pipeline.produce(turn("I like green tea.", 1, user=f"u{n}"))


@pytest.mark.fault(
    broken="Qdrant down for a minute, 64 events in flight in each stage",
    holds="at most 100 lines of log, with the cause and the remedy",
)
async def test_a_minute_without_qdrant_is_a_few_lines(pipeline: Pipeline, shared_qdrant: QdrantServer) -> None:
    with HttpProxy(shared_qdrant.url) as proxy:
        async with watched() as health:
            pipeline.spawn(*STAGES, MEMSTREAM_QDRANT=proxy.url, MEMSTREAM_SESSION_TIMEOUT="10", **health.env)
            await health.becomes(True, deadline=60)
            before = len(lines_of(pipeline))
            proxy.become(Down())
            await everybody_says_something(pipeline)
            during = await lines_of_a_minute(pipeline, before)
            proxy.become(Well())
            await health.becomes(True, deadline=60)
            await pipeline.settled(*STAGES)
    away = [line for line in during if line["event"] == "component_away"]
    assert 1 <= len(away) <= 4
    assert all(line["component"] == "store" and "connect" in line["why"] for line in away)
    assert all("MEMSTREAM_QDRANT" in line["remedy"] for line in away)
    assert {line["stage"] for line in during if line["event"] == "not_ready"} == {"recorder", "observer", "qdrant"}
    after = lines_of(pipeline)[before:]
    assert {line["stage"] for line in after if line["event"] == "ready_again"} == {"recorder", "observer", "qdrant"}
    await pipeline.verified(*STAGES)


@pytest.mark.fault(
    broken="the broker killed and down for a minute under load",
    holds="at most 100 lines of log, with the cause and the remedy; not ready, alive",
)
async def test_a_minute_without_the_broker_is_a_few_lines(
    own_kafka: Broker, tmp_path: Path, shared_qdrant: QdrantServer, model: ModelServer
) -> None:
    pipeline = Pipeline(
        folder=tmp_path,
        broker=f"kafka://{own_kafka.bootstrap}",
        qdrant=shared_qdrant,
        model=model,
        env={"MEMSTREAM_SESSION_TIMEOUT": "10"},
    )
    async with running(pipeline), watched() as health:
        pipeline.spawn(*STAGES, **health.env)
        await health.becomes(True, deadline=60)
        before = len(lines_of(pipeline))
        await everybody_says_something(pipeline)
        await asyncio.to_thread(own_kafka.kill)
        during = await lines_of_a_minute(pipeline, before)
        await asyncio.to_thread(own_kafka.start)
        await pipeline.settled(*STAGES, deadline=90)
        told = [line for line in during if line["event"] == "not_ready"]
        assert {line["stage"] for line in told} == set(STAGES)
        assert all("MEMSTREAM_BROKER" in line["why"] for line in told)
        libraries = [line for line in during if line["event"] == LEFT_OUT and "connect" in line["of"]]
        assert sum(line["lines"] for line in libraries) > LINES_A_MINUTE, "nothing was left out: is the test any good?"
        await pipeline.verified(*STAGES)

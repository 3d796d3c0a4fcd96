"""Health that is true: the broker away, a drain, more workers than partitions, an event loop that is stuck."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.faults import check_all_remembered, said_by
from tests.support.health import watched
from tests.support.kafka import Broker
from tests.support.model_server import Answer, Ask, Gate, ModelServer, held, nothing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.qdrant import QdrantServer, qdrant_server

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
SESSION = 10.0
"""Seconds; the bound within which a worker knows that Kafka is away."""


@pytest.fixture
def own_qdrant() -> AsyncIterator[QdrantServer]:
    """Beside a broker of its own: the facts of others would be missing in memory.facts."""
    with qdrant_server() as server:
        yield server


@pytest.fixture
async def alone(
    own_kafka: Broker, own_qdrant: QdrantServer, tmp_path: Path, model: ModelServer
) -> AsyncIterator[Pipeline]:
    """On a broker that the test may take away, its topics with one partition each."""
    made = Pipeline(
        folder=tmp_path,
        broker=f"kafka://{own_kafka.bootstrap}",
        qdrant=own_qdrant,
        model=model,
        env={"MEMSTREAM_SESSION_TIMEOUT": f"{SESSION:g}", "MEMSTREAM_PARTITIONS": "1"},
    )
    async with running(made) as ready:
        yield ready


@pytest.mark.fault(
    broken="the broker away for longer than a session",
    holds="not ready within the session time-out, and says what to look at; alive; ready again when it is back",
)
async def test_while_the_broker_is_away_a_worker_is_alive_and_not_ready(own_kafka: Broker, alone: Pipeline) -> None:
    async with watched() as health:
        alone.spawn("recorder", "observer", "reflector", **health.env)
        await health.becomes(True, deadline=60)
        await alone.produce(*said_by("u1")[:4])
        await alone.settled("recorder", "observer", "reflector")
        await asyncio.to_thread(own_kafka.kill)
        gone = time.monotonic()
        for stage in ("recorder", "observer", "reflector"):
            look = await health.becomes(False, part=stage, why="MEMSTREAM_BROKER")
            assert look.at - gone < SESSION + 5.0
        looks = [look for look in health.looks if look.at > gone]
        assert all(look.alive for look in looks)
        await asyncio.to_thread(own_kafka.start)
        await health.becomes(True, deadline=90)
        await alone.produce(*said_by("u1")[4:])
        await alone.settled("recorder", "observer", "reflector")
        await check_all_remembered(alone, ["u1"])
        await alone.verified("recorder", "observer", "reflector")


@pytest.mark.fault(
    broken="SIGTERM in the middle of a model call",
    holds="not ready and alive while it drains, exit 0, nothing done twice",
)
async def test_a_worker_that_drains_is_alive_and_not_ready(pipeline: Pipeline, model: ModelServer) -> None:
    gate = Gate()

    def thinking(ask: Ask) -> Answer:
        return held(gate, nothing(ask))

    model.script = thinking
    async with watched() as health:
        worker = pipeline.spawn("observer", MEMSTREAM_SESSION_TIMEOUT="10", **health.env)
        await health.becomes(True, deadline=60)
        await pipeline.produce(turn("I like green tea.", 1))
        await asyncio.to_thread(model.wait_in_hand)
        worker.send_signal(signal.SIGTERM)
        look = await health.becomes(False, part="observer", why="asked to stop")
        assert look.alive
        gate.open()
        assert await asyncio.to_thread(worker.wait, 60) == 0
    assert len(model.asks) == 1
    pipeline.workers.clear()
    pipeline.spawn("observer")
    await pipeline.settled("observer")
    assert len(model.asks) == 1, "it was committed"
    await pipeline.verified("observer")


@pytest.mark.fault(
    broken="more workers than partitions, then the one that has the partition is killed",
    holds="the spare is ready and says that it is one; it takes over",
)
async def test_a_spare_is_ready_and_takes_over(alone: Pipeline) -> None:
    async with watched() as first, watched() as second:
        working = alone.spawn("observer", "recorder", "reflector", **first.env)
        await first.becomes(True, deadline=60)
        alone.spawn("observer", "recorder", "reflector", **second.env)
        await second.becomes(True, deadline=60)
        await alone.produce(*said_by("u1")[:4])
        await alone.settled("recorder", "observer", "reflector")
        notes = [(await each.becomes(True)).notes for each in (first, second)]
        spares = sorted(stage for note in notes for stage, said in note.items() if "spare" in said)
        assert spares == ["observer", "recorder", "reflector"], notes
        working.kill()
        await alone.produce(*said_by("u1")[4:])
        await alone.settled("recorder", "observer", "reflector")
        await second.becomes(True, deadline=60)
    await check_all_remembered(alone, ["u1"])
    await alone.verified("recorder", "observer", "reflector")


@pytest.mark.fault(
    broken="a worker whose event loop is stuck (SIGSTOP within its session)",
    holds="/livez does not answer, which is what an orchestrator sees; it goes on when it is let",
)
async def test_a_worker_that_is_stuck_does_not_answer_livez(pipeline: Pipeline, model: ModelServer) -> None:
    model.script = nothing
    async with watched() as health:
        worker = pipeline.spawn("observer", MEMSTREAM_SESSION_TIMEOUT="30", **health.env)
        await health.becomes(True, deadline=60)
        worker.send_signal(signal.SIGSTOP)
        try:
            look = await health.becomes(False)
        finally:
            worker.send_signal(signal.SIGCONT)
        assert not look.alive
        await health.becomes(True, deadline=60)
        await pipeline.produce(turn("I like green tea.", 1))
        await pipeline.settled("observer")
    await pipeline.verified("observer")

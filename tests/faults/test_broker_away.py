"""The broker goes away under load and comes back on the same data: nothing is lost, memory stays bounded, the lag goes
back to zero, and workers live on or are started again by whoever supervises them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from memstream.schemas.topics import STAGES
from tests.support.faults import check_all_remembered, loaded
from tests.support.kafka import Broker, free_port
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.polling import at_least
from tests.support.qdrant import QdrantServer

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240, func_only=True)]
HELD_MAX = 256
"""Events that a stage holds in hand, by its settings: four times what is in flight."""
GROWTH_MAX = 64 * 1024 * 1024
"""Bytes that a worker's memory may grow by while the broker is away."""
PAIRS = (("recorder", "observer"), ("reflector", "consolidation"))


@pytest.fixture
async def pipeline(
    tmp_path: Path, own_kafka: Broker, shared_qdrant: QdrantServer, model: ModelServer
) -> AsyncIterator[Pipeline]:
    """On a broker of its own."""
    made = Pipeline(
        folder=tmp_path,
        broker=f"kafka://{own_kafka.bootstrap}",
        qdrant=shared_qdrant,
        model=model,
        env={"MEMSTREAM_SESSION_TIMEOUT": "6"},
    )
    async with running(made) as ready:
        yield ready


@pytest.mark.fault(
    broken="the broker restarted (SIGTERM, kill -9) or down for 60 s, under load",
    holds="no loss, memory bounded, lag back to 0, workers live on or are started again; I1 I7 I8",
)
@pytest.mark.parametrize(
    ("how", "seconds"), [("stop", 0), ("kill", 0), ("kill", 60)], ids=["restarted", "killed", "down-60s"]
)
async def test_a_broker_that_goes_away_under_load_loses_nothing(
    pipeline: Pipeline, own_kafka: Broker, model: ModelServer, how: str, seconds: int
) -> None:
    model.latency = 0.05
    ports = [free_port() for _ in PAIRS]
    workers = [pipeline.spawn(*pair, MEMSTREAM_HEALTH_PORT=str(port)) for pair, port in zip(PAIRS, ports, strict=True)]
    async with loaded(pipeline) as load:
        await wait_for(lambda: len(model.asks), "work", until=at_least(13), deadline=60)
        before = [memory_of(worker.pid) for worker in workers]
        pids = [worker.pid for worker in workers]
        await asyncio.to_thread(own_kafka.stop if how == "stop" else own_kafka.kill)
        await away(seconds, pids=pids, before=before, ports=ports)
        await asyncio.to_thread(own_kafka.start)
        begun, back = len(model.asks), time.monotonic()
        await wait_for(lambda: len(model.asks), "the observer to go on", until=at_least(begun + 1), deadline=60)
        resumed = time.monotonic() - back
        load.stop()
    await pipeline.settled(deadline=90)
    print(f"{how}, {seconds} s: resumed after {resumed:.1f} s, starts {[worker.starts for worker in workers]}")
    assert all(worker.poll() is None for worker in workers), pipeline.logs()
    await check_all_remembered(pipeline, load.users)
    await pipeline.verified(*STAGES)


async def away(seconds: float, *, pids: list[int], before: list[int], ports: list[int]) -> None:
    """So long it is away. Meanwhile what workers hold is bounded."""
    end = time.monotonic() + seconds
    async with httpx.AsyncClient(timeout=5) as client:
        while time.monotonic() < end:
            for pid, had, port in zip(pids, before, ports, strict=True):
                for stage, held in (await held_by(client, port)).items():
                    assert held <= HELD_MAX, f"{stage} holds {held} events"
                if psutil.pid_exists(pid):  # else it was started again
                    assert memory_of(pid) - had < GROWTH_MAX
            await asyncio.sleep(1)


async def held_by(client: httpx.AsyncClient, port: int) -> dict[str, float]:
    """By stage how many events a worker holds, from its /metrics; nothing of one that is starting again."""
    try:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
    except httpx.TransportError:
        return {}
    lines = [line for line in answer.text.splitlines() if line.startswith("memstream_held{")]
    return {line.partition("}")[0]: float(line.rpartition(" ")[2]) for line in lines}


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(psutil.Process(pid).memory_info().rss)

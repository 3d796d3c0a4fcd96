"""/livez, /readyz and /metrics, over HTTP."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from prometheus_client import CollectorRegistry

from memstream.api.worker_health import AddressRefused, served
from memstream.schemas.errors import Transient
from memstream.streams.engine.breaker import BreakerPolicy
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.retry import Calls
from memstream.streams.faust.runner import StageRunner
from memstream.streams.log.port import Position, Record
from tests.support.kafka import free_port

RECORD = Record(Position("memory.turns", 0, 0), b"k", b"v")


class Worker:
    """A worker of one stage, whose app is ready or not, and its calls."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lacks = ""
        self.partitions = {("memory.turns", 0)}
        self.calls = Calls(breaker=BreakerPolicy(), clock=lambda: self.now)
        self.registry = CollectorRegistry()
        self.metrics = StageMetrics(Metrics(self.registry), "observer")
        self.runner = StageRunner.__new__(StageRunner)  # only ready() is called
        self.runner.app = cast(Any, self)
        self.runner.calls = self.calls
        self.parked = ""
        self.runner.handler = cast(Any, SimpleNamespace(parked=SimpleNamespace(told=lambda: self.parked)))

    def why_not_ready(self) -> str:
        return self.lacks

    def assigned(self) -> set[tuple[str, int]]:
        return self.partitions

    async def away(self, name: str) -> None:
        async def fail() -> None:
            raise Transient(name, f"{name} said 503", remedy="look at it")

        for _ in range(5):
            with pytest.raises(Transient):
                await self.calls.call(name, fail, give_up_after=0)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
async def health(worker: Worker) -> AsyncIterator[httpx.AsyncClient]:
    port = free_port()
    async with (
        served(port=port, registry=worker.registry, readiness=lambda: {"observer": worker.runner.ready()}),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def test_a_working_worker_is_alive_and_ready(health: httpx.AsyncClient) -> None:
    alive = await health.get("/livez")
    assert (alive.status_code, alive.text) == (200, "ok\n")
    ready = await health.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"ready": True, "parts": {"observer": {"ready": True, "why": ""}}}


async def test_a_worker_that_is_not_ready_says_why_and_stays_alive(worker: Worker, health: httpx.AsyncClient) -> None:
    worker.lacks = "its table"
    assert (await health.get("/livez")).status_code == 200
    ready = await health.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["parts"]["observer"] == {"ready": False, "why": "its table"}


async def test_a_spare_is_ready_and_says_what_it_is(worker: Worker, health: httpx.AsyncClient) -> None:
    worker.partitions = set()
    ready = await health.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["parts"]["observer"] == {
        "ready": True,
        "why": "a spare: there are more workers than partitions",
    }


async def test_a_model_whose_answers_yield_nothing_is_named_and_the_stage_is_ready(
    worker: Worker, health: httpx.AsyncClient
) -> None:
    worker.calls.remark = "answers yield nothing: small: 10 turns in a row (invented 10) (memstream doctor)"
    worker.parked = "parked keys: 1"
    ready = await health.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["parts"]["observer"] == {
        "ready": True,
        "why": "parked keys: 1; answers yield nothing: small: 10 turns in a row (invented 10) (memstream doctor)",
    }
    worker.calls.remark = ""
    assert (await health.get("/readyz")).json()["parts"]["observer"]["why"] == "parked keys: 1"


async def test_with_an_open_breaker_it_is_not_ready_and_says_why(worker: Worker, health: httpx.AsyncClient) -> None:
    await worker.away("store")
    await worker.away("model:acme")
    ready = await health.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["parts"]["observer"]["why"] == (
        "away: model:acme: model:acme said 503 (look at it); away: store: store said 503 (look at it)"
    )
    for n in range(50):
        await worker.away(f"model:tenant-{n}")
    why = (await health.get("/readyz")).json()["parts"]["observer"]["why"]
    assert why.endswith("; and 49 more")

    async def answer() -> None:
        return

    worker.now += 10
    await worker.calls.call("store", answer)
    for name in worker.calls.away():
        await worker.calls.call(name, answer)
    assert (await health.get("/readyz")).status_code == 200


async def test_the_open_breakers_of_one_or_two_tenants_leave_it_ready_and_are_told(
    worker: Worker, health: httpx.AsyncClient
) -> None:
    await worker.away("model:acme")
    await worker.away("model:umbrella")
    ready = await health.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["parts"]["observer"] == {
        "ready": True,
        "why": "away: model:acme: model:acme said 503 (look at it); "
        "away: model:umbrella: model:umbrella said 503 (look at it)",
    }
    await worker.away("model:initech")
    assert (await health.get("/readyz")).status_code == 503, "the model is away for all"


async def test_a_component_that_all_need_makes_it_not_ready(worker: Worker, health: httpx.AsyncClient) -> None:
    await worker.away("store")
    assert (await health.get("/readyz")).status_code == 503


async def test_metrics_are_in_prometheus_form(worker: Worker, health: httpx.AsyncClient) -> None:
    worker.metrics.event_in(RECORD)
    with worker.metrics.in_flight(RECORD):
        worker.metrics.event_out("memory.observations")
        worker.metrics.event_out("memory.turns.dlq")
        worker.metrics.refused("memory.turns", "invalid")
        worker.metrics.retried("store")
        worker.metrics.lag("memory.turns", 3, 17)
        during = (await health.get("/metrics")).text
    answer = await health.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    for line in (
        'memstream_events_in_total{stage="observer",topic="memory.turns"} 1.0',
        'memstream_events_done_total{stage="observer",topic="memory.turns"} 1.0',
        'memstream_events_out_total{stage="observer",topic="memory.observations"} 1.0',
        'memstream_dead_letters_total{stage="observer",topic="memory.turns.dlq"} 1.0',
        'memstream_refused_total{reason="invalid",stage="observer",topic="memory.turns"} 1.0',
        'memstream_retries_total{component="store",stage="observer"} 1.0',
        'memstream_lag{partition="3",stage="observer",topic="memory.turns"} 17.0',
        'memstream_in_flight{stage="observer"} 0.0',
    ):
        assert line in lines
    assert 'memstream_in_flight{stage="observer"} 1.0' in during.splitlines()


async def test_the_lag_of_a_partition_that_was_given_away_is_not_told(
    worker: Worker, health: httpx.AsyncClient
) -> None:
    for partition in range(3):
        worker.metrics.lag("memory.turns", partition, 17)
    worker.metrics.forget_lag(but={("memory.turns", 1), ("memory.turns", 5)})
    worker.metrics.forget_lag(but={("memory.turns", 1)})
    told = [line for line in (await health.get("/metrics")).text.splitlines() if line.startswith("memstream_lag{")]
    assert told == ['memstream_lag{partition="1",stage="observer",topic="memory.turns"} 17.0']


async def test_an_event_that_is_tried_again_came_in_once(worker: Worker, health: httpx.AsyncClient) -> None:
    worker.metrics.event_in(RECORD)
    for _ in range(3):
        with pytest.raises(RuntimeError), worker.metrics.in_flight(RECORD):
            raise RuntimeError
    with worker.metrics.in_flight(RECORD):
        pass
    lines = (await health.get("/metrics")).text.splitlines()
    assert 'memstream_events_in_total{stage="observer",topic="memory.turns"} 1.0' in lines
    assert 'memstream_events_done_total{stage="observer",topic="memory.turns"} 1.0' in lines


async def test_an_event_that_failed_is_not_counted_as_done(worker: Worker, health: httpx.AsyncClient) -> None:
    with pytest.raises(RuntimeError), worker.metrics.in_flight(RECORD):
        raise RuntimeError
    text = (await health.get("/metrics")).text
    assert 'memstream_in_flight{stage="observer"} 0.0' in text
    assert "memstream_events_done_total{" not in text


async def test_a_port_that_is_taken_is_a_clear_error(worker: Worker) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressRefused, match=rf"MEMSTREAM_HEALTH_PORT={port}: .*address already in use"):
            async with served(port=port, registry=worker.registry, readiness=dict):
                raise AssertionError("it must not serve")


async def test_it_is_off_with_port_0_and_leaves_the_port_afterwards(worker: Worker) -> None:
    async with served(port=0, registry=worker.registry, readiness=dict):
        pass
    port = free_port()
    for _ in range(2):
        async with served(port=port, registry=worker.registry, readiness=dict), httpx.AsyncClient() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/livez")).status_code == 200


async def test_parked_keys_are_told_and_the_worker_stays_ready(worker: Worker, health: httpx.AsyncClient) -> None:
    worker.parked = "parked keys: 1: acme/u1/s1: Qdrant answers 400 (memstream doctor)"
    ready = await health.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["parts"]["observer"] == {"ready": True, "why": worker.parked}

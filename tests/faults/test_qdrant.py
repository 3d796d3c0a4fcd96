"""Qdrant away in every way, under load, on Kafka: offsets are held, nothing is lost or done twice, health is true."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.faults import all_is_remembered, said_by
from tests.support.health import Watched, watched
from tests.support.pipeline import Pipeline
from tests.support.qdrant import QdrantServer
from tests.support.tcp_proxy import (
    Answers,
    BlackHole,
    CutRequest,
    CutResponse,
    Down,
    HttpProxy,
    Mode,
    Slow,
    Well,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
USERS = tuple(f"u{n}" for n in range(8))
STAGES = ("recorder", "observer", "reflector")


@pytest.fixture
def proxy(shared_qdrant: QdrantServer) -> Iterator[HttpProxy]:
    with HttpProxy(shared_qdrant.url) as ready:
        yield ready


@pytest.fixture
async def health(pipeline: Pipeline, proxy: HttpProxy) -> AsyncIterator[Watched]:
    """Of a worker with three stages that reaches Qdrant through the proxy and is ready."""
    async with watched() as health:
        pipeline.spawn(*STAGES, MEMSTREAM_QDRANT=proxy.url, **health.env)
        await health.becomes(True, deadline=60)
        yield health


async def say(pipeline: Pipeline, *, first: int, last: int) -> None:
    """Everybody's turns from `first` to `last`, turn by turn."""
    for turns in list(zip(*map(said_by, USERS), strict=True))[first - 1 : last]:
        await pipeline.produce(*turns)


@pytest.mark.fault(
    broken="Qdrant down, 503, black hole, late beyond its time-out, requests or responses cut",
    holds="offsets held, breaker, not ready and alive meanwhile; then everything once",
)
@pytest.mark.parametrize(
    "mode", [Down(), Answers(503), BlackHole(), Slow(12.0), CutRequest(), CutResponse()], ids=lambda m: type(m).__name__
)
async def test_while_qdrant_is_away_offsets_are_held_and_afterwards_everything_is_there_once(
    pipeline: Pipeline, proxy: HttpProxy, health: Watched, mode: Mode
) -> None:
    await say(pipeline, first=1, last=3)
    await pipeline.settled(*STAGES)
    proxy.become(mode)
    await say(pipeline, first=4, last=8)
    held = len(USERS) * 5
    for stage in STAGES[:2]:
        await health.becomes(False, part=stage, why="store")
    await health.becomes(False, part="qdrant")
    lags = await pipeline.lags("recorder", "observer")
    assert (lags["recorder:memory.turns"], lags["observer:memory.turns"]) == (held, held), "committed past what is done"
    proxy.become(Well())
    await health.becomes(True, deadline=60)
    await pipeline.settled(*STAGES)
    await all_is_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)
    health.always_alive()

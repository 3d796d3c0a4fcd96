"""Qdrant away in every way, under load, on Kafka: offsets are held, nothing is lost or done twice, health is true."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.faults import check_all_remembered, said_by
from tests.support.health import Watched, watched
from tests.support.pipeline import Pipeline, wait_for
from tests.support.polling import at_least
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
    writes,
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
        pipeline.spawn(*STAGES, MEMSTREAM_QDRANT=proxy.url, MEMSTREAM_SESSION_TIMEOUT="10", **health.env)
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
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)
    health.always_alive()


@pytest.mark.fault(
    broken="Qdrant slow, below its time-out",
    holds="everything is done once; ready and alive throughout",
)
async def test_a_slow_qdrant_is_waited_for(pipeline: Pipeline, proxy: HttpProxy, health: Watched) -> None:
    proxy.become(Slow(0.3, bytes_per_second=20_000))
    began = time.monotonic()
    await say(pipeline, first=1, last=8)
    await pipeline.settled(*STAGES, deadline=90)
    assert proxy.met(Slow) > len(USERS) * 8
    assert all(look.ready for look in health.looks if look.at > began)
    health.always_alive()
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)


@pytest.mark.fault(
    broken="the answers to Qdrant writes cut: what was asked was done, the worker does not know",
    holds="no effect twice",
)
async def test_a_write_whose_answer_was_cut_is_done_once(pipeline: Pipeline, proxy: HttpProxy, health: Watched) -> None:
    proxy.become(CutResponse(), only=writes)
    await say(pipeline, first=1, last=8)
    await wait_for(lambda: proxy.met(CutResponse), "writes of two stages", until=at_least(2 * len(USERS)), deadline=60)
    proxy.become(Well())
    await pipeline.settled(*STAGES)
    await check_all_remembered(pipeline, USERS)
    messages = [(row["user_id"], row["turn_id"]) for row in pipeline.shown("turns")[pipeline.tenant]["turns"]]
    assert len(messages) == len(set(messages)) == len(USERS) * 8
    await pipeline.verified(*STAGES)


@pytest.mark.fault(
    broken="Qdrant answers 503 to one collection alone",
    holds="the stage that writes it waits; the others go on, and are ready",
)
async def test_other_stages_go_on_while_one_collection_is_away(
    pipeline: Pipeline, proxy: HttpProxy, health: Watched
) -> None:
    proxy.become(Answers(503), only=lambda method, path: path.startswith("/collections/turns"))
    await say(pipeline, first=1, last=8)
    await pipeline.settled("observer", "reflector")
    look = await health.becomes(False, part="recorder", why="503")
    assert set(look.why) == {"recorder"}
    assert (await pipeline.lags("recorder"))["recorder:memory.turns"] == len(USERS) * 8
    await check_all_remembered(pipeline, USERS)
    proxy.become(Well())
    await health.becomes(True)
    await pipeline.settled(*STAGES)
    await pipeline.verified(*STAGES)


@pytest.mark.fault(
    broken="Qdrant answers 503 with 64 events in flight",
    holds="the breaker lets one call in ten seconds try; the first that is answered lets all go on",
)
async def test_an_open_breaker_asks_once_in_ten_seconds(pipeline: Pipeline, proxy: HttpProxy, health: Watched) -> None:
    proxy.become(Answers(503))
    await say(pipeline, first=1, last=8)
    for stage in STAGES[:2]:
        await health.becomes(False, part=stage, why="503")
    opened = time.monotonic() + 1.0  # calls that were on their way

    def probes() -> list[float]:
        return [each.at for each in proxy.requests(since=opened) if "/points" in each.path]

    await wait_for(
        lambda: len(probes()), "two stages' probes, and one of the next ten seconds", until=at_least(3), deadline=40
    )
    first, _, third = probes()[:3]
    assert third - first >= 8.0
    proxy.become(Well())
    await health.becomes(True)
    await pipeline.settled(*STAGES)
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)

"""The store refuses one key's points, always: that key is parked, others go on, and after mending all is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from memstream.schemas.topics import StageName
from memstream.streams.engine.error_boundary import CRASHES_MAX
from memstream.streams.engine.process_exit import BROKEN
from tests.support.faults import check_all_remembered, said_by
from tests.support.health import watched
from tests.support.pipeline import Json, Pipeline, wait_for
from tests.support.polling import has_ended
from tests.support.qdrant import QdrantServer
from tests.support.tcp_proxy import Answers, HttpProxy, Well, writes

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
STAGES: tuple[StageName, ...] = ("recorder", "observer", "reflector")
REFUSED, USERS = "zoe", ("ana", "ben", "zoe")
COLLECTION: dict[StageName, str] = {"recorder": "turns", "observer": "working", "reflector": "facts"}


@pytest.fixture
def proxy(shared_qdrant: QdrantServer) -> Iterator[HttpProxy]:
    with HttpProxy(shared_qdrant.url) as ready:
        yield ready


def parked(pipeline: Pipeline) -> str:
    """What `memstream doctor` says of parked keys: empty, or the keys and the causes."""
    checks = pipeline.json_lines("doctor", expect=None)
    (check,) = (each for each in checks if each["check"] == "parked keys")
    return "" if check["ok"] else str(check["detail"])


@pytest.mark.fault(
    broken="the store refuses the points of one key with 400, always",
    holds="three ends, then the key is parked and told, others go on; after mending and redrive everything once",
)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_key_that_the_store_refuses_is_parked_and_others_go_on(
    pipeline: Pipeline, proxy: HttpProxy, stage: StageName
) -> None:
    def of_collection(method: str, path: str) -> bool:
        # Behind `turns` the name of a quarter follows.
        return writes(method, path) and path.startswith(f"/collections/{COLLECTION[stage]}")

    proxy.become(Answers(400, holding=REFUSED.encode()), only=of_collection)
    pipeline.spawn(*(each for each in STAGES if each != stage))
    for turns in zip(*map(said_by, USERS), strict=True):
        await pipeline.produce(*turns)
    for _ in range(CRASHES_MAX - 1):
        worker = pipeline.spawn(stage, MEMSTREAM_QDRANT=proxy.url)
        await wait_for(worker.poll, "the end of the worker", until=has_ended, deadline=60, detail=pipeline.logs)
        assert worker.returncode == BROKEN
        pipeline.workers.remove(worker)
    async with watched() as health:
        worker = pipeline.spawn(stage, MEMSTREAM_QDRANT=proxy.url, **health.env)
        await pipeline.settled(*STAGES)
        others = {user for fact in pipeline.stored().values() if (user := fact["owner"]["id"]) != REFUSED}
        assert others == set(USERS) - {REFUSED}
        told = await asyncio.to_thread(parked, pipeline)
        reason = "parked"
        if stage == "recorder":  # it has no table: the turn is refused for good
            assert told == ""
            reason = "fatal"
        else:
            assert f"{stage} {pipeline.tenant}/" in told
            assert REFUSED in told
            assert "400" in told
            look = await health.becomes(True, part=stage)
            assert "parked keys: 1" in look.notes[stage]
            # letters that are put back too early become letters again
            assert redrive(pipeline, reason)
            await pipeline.settled(*STAGES)
        proxy.become(Well())
        worker.kill()
        pipeline.workers.remove(worker)
        pipeline.spawn(stage, MEMSTREAM_QDRANT=proxy.url)
        await wait_for(
            lambda: asyncio.to_thread(parked, pipeline), "the key", until=lambda told: told == "", deadline=60
        )
        assert redrive(pipeline, reason)
        await pipeline.settled(*STAGES)
        assert redrive(pipeline, reason) == []
    began = pipeline.began
    await pipeline.begin_dead_letters()  # the letters are put back
    pipeline.began = began
    await check_all_remembered(pipeline, USERS)
    messages = [(row["user_id"], row["turn_id"]) for row in pipeline.shown("turns")[pipeline.tenant]["turns"]]
    assert len(messages) == len(set(messages)) == len(USERS) * 8
    await pipeline.verified(*STAGES)


def redrive(pipeline: Pipeline, reason: str) -> list[Json]:
    """Put the letters back. Return what the command says of each."""
    return pipeline.json_lines("dlq", "redrive", "--tenant", pipeline.tenant, "--reason", reason)

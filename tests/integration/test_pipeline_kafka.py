"""The pipeline on a real broker and the real engine: stages as separate processes, the model scripted on the wire."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.conversation import (
    ACTIONS,
    AGAIN,
    CONVERSATION,
    KNOWN,
    STATES,
    conversation,
    different_each_time,
    states,
)
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, actions, running, turn, wait_for
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model)) as ready:
        yield ready


async def test_a_conversation_becomes_exactly_the_expected_memory(pipeline: Pipeline) -> None:
    for stage in ("recorder", "observer", "reflector"):
        pipeline.spawn(stage)
    await pipeline.produce(*conversation())
    await pipeline.settled("recorder", "observer", "reflector")
    assert actions(await pipeline.updates()) == ACTIONS
    facts = await pipeline.consistent()
    assert states(facts) == STATES
    by_content = {fact["content"]: fact for fact in facts.values()}
    google, stripe = by_content["Works at Google"], by_content["Works at Stripe"]
    assert (google["superseded_by"], stripe["supersedes"]) == (stripe["fact_id"], google["fact_id"])
    assert google["valid_to"] == stripe["valid_from"] == "2026-11-20T10:04:00Z"
    assert by_content["Likes green tea"]["reinforcement_count"] == 1
    assert by_content["Lives in Oslo"]["subject"] == "jennifer"
    working = pipeline.json_lines("show", "working", "--tenant", pipeline.tenant, "--session", "s1", "--user", "u1")
    assert {entry["content"] for entry in working} == {
        "Works at Stripe", "Name is Jack", "Likes green tea", "Is heading to lunch", "Lives in Oslo"
    }  # fmt: skip
    saliences = [entry["salience"] for entry in working]
    assert saliences == sorted(saliences, reverse=True)
    messages = pipeline.json_lines("show", "turns", "--tenant", pipeline.tenant)
    assert [row["content"] for row in sorted(messages, key=lambda row: row["occurred_at"])] == CONVERSATION
    assert len(await pipeline.observed()) == len(CONVERSATION)
    assert await pipeline.dead_letters() == []
    await pipeline.verified("recorder", "observer", "reflector")
    pipeline.stop()


@pytest.mark.fault(
    broken="kill -9 of one of two observers under load", holds="no loss, nothing twice; I1 I7", often=True
)
async def test_two_observers_share_the_partitions_and_a_killed_one_loses_nothing(
    pipeline: Pipeline, model: ModelServer
) -> None:
    model.script = different_each_time
    model.latency = 0.05
    first = pipeline.spawn("observer", MEMSTREAM_DATADIR=str(pipeline.folder / "o1"))
    pipeline.spawn("observer", MEMSTREAM_DATADIR=str(pipeline.folder / "o2"))
    pipeline.spawn("reflector")
    sessions = [f"s{n}" for n in range(24)]

    async def produce() -> None:
        for n, text in enumerate(CONVERSATION, start=1):
            for session in sessions:
                await pipeline.produce(turn(text, n, session=session, user=f"user-{session}"))

    producing = asyncio.create_task(produce())
    await wait_for(lambda: sum(len(ask.turns) for ask in model.asks) > 60, "work in both observers", deadline=60)
    first.kill()
    await producing
    pipeline.spawn("observer", MEMSTREAM_DATADIR=str(pipeline.folder / "o3"))
    await pipeline.settled("observer", "reflector", deadline=90)
    facts = await pipeline.consistent()
    per_owner: dict[str, dict[str, str]] = {}
    for fact in facts.values():
        per_owner.setdefault(fact["owner"]["id"], {})[fact["content"].removesuffix(AGAIN)] = fact["state"]
    assert set(per_owner) == {f"user-{session}" for session in sessions}
    assert all(found == STATES for found in per_owner.values()), per_owner
    assert len(set(await pipeline.observed())) == len(sessions) * len(CONVERSATION)
    await pipeline.verified("observer", "reflector")


@pytest.mark.long
async def test_the_working_set_comes_back_from_the_changelog(pipeline: Pipeline) -> None:
    pipeline.spawn("observer")
    await pipeline.produce(*conversation()[:2])
    await pipeline.settled("observer")
    pipeline.stop()
    shutil.rmtree(pipeline.folder / "data")
    pipeline.spawn("observer")
    await pipeline.produce(conversation()[3])  # replaces what only the working set knows
    await pipeline.settled("observer")
    working = pipeline.json_lines("show", "working", "--tenant", pipeline.tenant)
    assert {entry["content"] for entry in working} == {"Works at Stripe", "Name is Jake"}
    assert {entry["turn_number"] for entry in working} == {3}


@pytest.mark.long
async def test_facts_come_back_by_rebuild(pipeline: Pipeline) -> None:
    reflector = pipeline.spawn("observer", "reflector")
    await pipeline.produce(*conversation())
    await pipeline.settled("observer", "reflector")
    before = await pipeline.consistent()
    pipeline.cli("rebuild", "facts", expect=2)  # while the reflector runs
    reflector.send_signal(signal.SIGTERM)
    assert reflector.wait(60) == 0
    await delete_collection(pipeline)
    pipeline.cli("worker", "reflector", expect=4)
    pipeline.cli("rebuild", "facts")
    assert pipeline.stored() == before


async def delete_collection(pipeline: Pipeline) -> None:
    from qdrant_client import AsyncQdrantClient

    env = pipeline.environment()
    client = AsyncQdrantClient(
        url=env["MEMSTREAM_QDRANT"], api_key=env.get("QDRANT_API_KEY"), check_compatibility=False
    )
    try:
        for collection in (await client.get_collections()).collections:
            if collection.name.startswith("facts"):
                await client.delete_collection(collection.name)
    finally:
        await client.close()

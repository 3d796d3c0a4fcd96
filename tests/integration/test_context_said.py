"""Messages that memory does not state, in a context: the whole pipeline, on Kafka and in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.context import ContextRequest, ContextService, PromptContext
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.schemas.turns import Owner
from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
JOB: dict[str, Any] = {"category": "profession", "slot": "employer", **PERSISTENT}
KNOWN: dict[str, list[dict[str, Any]]] = {
    "I work at Google": [{**JOB, "content": "Works at Google", "value": "Google"}],
    "now I work at Stripe": [{**JOB, "content": "Works at Stripe", "value": "Stripe"}],
}
FORGET = "Please forget that I collect stamps."
KNOWN["forget that I collect stamps"] = [
    {"content": "Collects stamps", "category": "preference", **PERSISTENT, "durability": "transient"}
]
KNOWN["I collect stamps and coins"] = [
    {"content": "Collects stamps", "category": "preference", **PERSISTENT},
    {"content": "Collects coins", "category": "preference", **PERSISTENT},
]
KNOWN["At home I collect stamps"] = [{"content": "Collects stamps", "category": "preference", **PERSISTENT}]
SAID = [
    "I work at Google. We have two kids, Mia and Tom.",
    "Well, now I work at Stripe.",
]
RECIPE = [
    {"role": "user", "content": "How do we cook the saffron rice?"},
    {"role": "assistant", "content": "Saffron rice needs a pinch of saffron and warm milk."},
]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model, env={"MEMSTREAM_EMBEDDER": "hashing"})) as ready:
        ready.spawn("all")
        yield ready


@asynccontextmanager
async def opened(pipeline: Pipeline) -> AsyncIterator[tuple[RecallService, VectorStore]]:
    embedder, env = HashingEmbedder(), pipeline.environment()
    store = await open_store(env["MEMSTREAM_QDRANT"], embedder=embedder.identity, api_key=env.get("QDRANT_API_KEY"))
    try:
        yield RecallService(store=store, embedder=embedder, policy=RecallPolicy(patience=20.0)), store
    finally:
        await store.close()


async def context_of(pipeline: Pipeline, cue: str | None, **asked: Any) -> PromptContext:
    async with opened(pipeline) as (recall, store):
        request = ContextRequest(pipeline.tenant, Owner(scope="user", id="u1"), cue=cue, **asked)
        return await ContextService(recall=recall, store=store).context(request, now=datetime.now(UTC))


async def messages_of(pipeline: Pipeline, cue: str) -> set[str]:
    async with opened(pipeline) as (recall, _):
        request = RecallRequest(pipeline.tenant, Owner(scope="user", id="u1"), cue=cue, tiers=("turns",))
        found = await recall.recall(request, now=datetime.now(UTC))
        assert found.missing == ()
        return {each.item.content for each in found.items}


async def test_what_no_fact_states_reaches_the_prompt(pipeline: Pipeline) -> None:
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)), turn("", 3, messages=RECIPE))
    await pipeline.settled()
    context = await context_of(pipeline, "do we have kids, Mia perhaps?")
    assert context.missing == ()
    lines = context.text.splitlines()
    assert "- 20 November 2026, the user: “We have two kids, Mia and Tom.”" in lines
    assert not any("Google" in line for line in lines), "a message does not bring back what was replaced"
    assert len(context.shown["turns"]) == 1


async def test_the_assistants_word_is_marked(pipeline: Pipeline) -> None:
    context = await context_of(pipeline, "saffron rice with milk")
    assert "the assistant: “Saffron rice needs a pinch of saffron and warm milk.”" in context.text
    assert "How do we cook" not in context.text, "a question is nothing to know"


async def test_without_the_section_or_a_cue_there_are_no_messages(pipeline: Pipeline) -> None:
    for asked in ({"switches": frozenset(("semantic",))}, {"cue": None}):
        context = await context_of(pipeline, **({"cue": "do we have kids, Mia perhaps?"} | asked))
        assert "Said before" not in context.text


async def test_messages_leave_with_what_they_said(pipeline: Pipeline) -> None:
    both, only = "I collect stamps and coins.", "At home I collect stamps."
    await pipeline.produce(turn(both, 11), turn(only, 12))
    await pipeline.settled()
    assert {both, only} <= await messages_of(pipeline, "collect stamps")
    await pipeline.produce(turn(FORGET, 13))
    await pipeline.settled()
    stamps = [each for each in (await pipeline.consistent()).values() if each["content"] == "Collects stamps"]
    assert [each["state"] for each in stamps] == ["forgotten"]
    found = await messages_of(pipeline, "collect stamps")
    assert both in found, "it also says something that is remembered"
    assert not {only, FORGET} & found
    assert "stamps" not in (await context_of(pipeline, "do I collect stamps at home?")).text

"""Messages that memory does not state, in a context: the whole pipeline, on Kafka and in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.context import ContextRequest, ContextService, PromptContext
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


async def context_of(pipeline: Pipeline, cue: str | None, **asked: Any) -> PromptContext:
    embedder = HashingEmbedder()
    store = await open_store(pipeline.environment()["MEMSTREAM_QDRANT"], embedder=embedder.identity)
    try:
        recall = RecallService(store=store, embedder=embedder, policy=RecallPolicy(patience=20.0))
        request = ContextRequest(pipeline.tenant, Owner(scope="user", id="u1"), cue=cue, **asked)
        return await ContextService(recall=recall, store=store).context(request, now=datetime.now(UTC))
    finally:
        await store.close()


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

"""What was recalled is not learnt again: a chat service puts a context into its next turns, in every way it may come
back, and the model takes down whatever it is shown. The whole pipeline, in one process on one folder."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.context import PRESETS, ContextRequest, ContextService, PromptContext
from memstream.recall.request import ReadSession
from memstream.recall.service import RecallService
from memstream.schemas.observations import Observed
from memstream.schemas.topics import TURNS
from memstream.schemas.turns import Owner
from tests.support.model_server import Answer, Ask, ModelServer, nothing
from tests.support.openai_bodies import OBSERVATION
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import Place

pytestmark = pytest.mark.timeout(180)
BEES = "Keeps bees in Bergen"


def takes_down_everything(ask: Ask) -> Answer:
    """Each line of each turn that makes a statement, as a lasting fact."""
    if ask.task != "observations":
        return nothing(ask)
    found: list[Json] = []
    for name, text in ask.turns.items():
        for line in text.splitlines():
            said = line.partition(": ")[2] if line.startswith(("user: ", "assistant: ")) else line
            content = said.removeprefix("- ").removeprefix("[attribute] ").strip()
            if content and not content.endswith("?"):
                item = {"content": content, "evidence": content, "durability": "permanent", "importance": 0.9}
                found.append({**OBSERVATION, "turn": name, **item})
    return {"observations": found}  # type: ignore[dict-item]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(takes_down_everything) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model, env={"MEMSTREAM_EMBEDDER": "hashing"})) as ready:
        yield ready


async def context_of(pipeline: Pipeline) -> PromptContext:
    """Everything that memory has, through the loopback of the worker."""
    embedder = HashingEmbedder()
    store = await open_store(f"embedded://{pipeline.folder / 'store'}", embedder=embedder.identity)
    try:
        recall = RecallService(
            store=store,
            embedder=embedder,
            policy=RecallPolicy(patience=20.0),
        )
        request = ContextRequest(
            pipeline.tenant, Owner(scope="user", id="u1"), ReadSession("u1", "s1"), switches=PRESETS["full"]
        )
        return await ContextService(recall=recall).context(request, now=datetime.now(UTC))
    finally:
        await store.close()


def ways_back(context: str) -> list[Json]:
    """Turns 2, 3 …: how a chat service hands on what it put into its prompt."""

    def user(content: object) -> Json:
        return {"role": "user", "content": content}

    frame_and_question = f"{context}\n\nWhat shall I do today?"
    messages: list[list[Json]] = [
        [{"role": "system", "content": context}, user("And now?")],
        [user(frame_and_question)],
        [user([{"type": "text", "text": context}, {"type": "text", "text": "What about tomorrow?"}])],
        [user(context)],
        [user("What did I say?"), {"role": "assistant", "content": f"You see: {context}\nAnything else?"}],
        [user("Who am I?"), {"role": "tool", "content": context}],
        [user(f"Is this it? {context[: context.index('ends]') - 4]}")],
        [user(f"{context[30:]}\nIs that it?")],
    ]
    return [turn("", n, messages=said) for n, said in enumerate(messages, start=2)]


@pytest.mark.long
async def test_what_was_recalled_is_not_learnt_again(pipeline: Pipeline) -> None:
    pipeline.spawn("all")
    await pipeline.produce(turn(BEES, 1))
    await pipeline.settled()
    context = await context_of(pipeline)
    assert context.missing == ()
    assert f"- [attribute] {BEES}" in context.text
    (before,) = pipeline.shown("facts")[pipeline.tenant]["facts"]

    back = ways_back(context.text)
    await pipeline.produce(*back)
    await pipeline.settled()
    observed = [Observed.read(value) for value in await pipeline.observed()]
    assert [(each.turn_id, each.turn_number) for each in observed] == [(f"t{n}", n) for n in range(1, len(back) + 2)]
    learnt = {(each.turn_id, seen.content) for each in observed for seen in each.observations}
    assert learnt == {("t1", BEES)}, "'You see:' is no evidence of anything"

    facts = pipeline.shown("facts", "turns")[pipeline.tenant]
    assert facts["facts"] == [before], "no version, no evidence"
    assert len(await pipeline.updates()) == 1
    hits = pipeline.json_lines("recall", "--tenant", pipeline.tenant, "--user", "u1", "--cue", "bees in Bergen")
    assert [hit["content"] for hit in hits if "Bergen" in hit["content"]] == [BEES]

    said = {(row["turn_id"], row["message_index"]): row for row in facts["turns"]}
    assert said["t5", 0]["content"] == context.text, "kept verbatim"
    values = {record.value for record in await pipeline.records(TURNS.name)}
    hashes = {hashlib.sha256(value or b"").hexdigest() for value in values}
    assert {row["turn_sha256"] for row in said.values() if row["message_index"] == 0} == hashes
    await pipeline.settled()  # the command `recall` wrote to memory.recalled
    await pipeline.verified()
    pipeline.stop()

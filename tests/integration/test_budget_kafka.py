"""One tenant's budget of observations, shared by two workers on a real broker: never exceeded, nothing dropped, and
what waits goes on when the ceiling is raised."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors.factory import open_store
from memstream.schemas import ids
from memstream.schemas.budgets import StoredBudget
from memstream.schemas.collections import BUDGETS
from memstream.schemas.observations import Observed
from tests.support.faults import has_members
from tests.support.model_server import Answer, Ask, Gate, ModelServer, Reply, held
from tests.support.openai_bodies import OBSERVATION
from tests.support.partitioned_users import on_every_partition
from tests.support.pipeline import Pipeline, running, turn, wait_for
from tests.support.pipeline_places import Place
from tests.support.qdrant import QdrantServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(180)]
A_PARTITION = 4
"""Sessions."""
MOST_OUT = 256
LOW, HIGH = 100_000, 1_000_000
"""A call sets aside some 6 000 tokens: of the low one there is enough for a third of the sessions at once, and both
workers change the account again and again, at the same time."""


def policy(tokens: int) -> str:
    return f"[memory.budget]\nmax_output_tokens = {MOST_OUT}\n[memory.budget.observation]\ntokens = {tokens}\n"


def answer(ask: Ask) -> Reply:
    said = [{**OBSERVATION, "turn": name, "content": "Likes tea", "evidence": "I like tea"} for name in ask.turns]
    return Reply(content=json.dumps({"observations": said}))


def taken(ask: Ask) -> int:
    """What the scripted server says that its answer took."""
    shown = sum(len(content) for _, content in ask.messages)
    return shown // 4 + 1 + len(answer(ask).content or "") // 4 + 1


def set_aside(ask: Ask) -> int:
    """What is taken out of the budget before this call is made: a token for each byte of what is sent, and the longest
    answer. The limit of the answer is written into the request after that."""
    said = {name: value for name, value in ask.body.items() if name != "max_completion_tokens"}
    return len(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()) + MOST_OUT


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(answer) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model, env={"MEMSTREAM_OBSERVE_TOGETHER": "1"}, policy=policy(LOW))) as ready:
        yield ready


async def test_two_workers_share_a_budget_and_what_waits_goes_on_when_it_is_raised(
    pipeline: Pipeline, shared_qdrant: QdrantServer, model: ModelServer
) -> None:
    async def accounts() -> list[StoredBudget]:
        store = await open_store(
            shared_qdrant.url, embedder=EmbedderIdentity(name="hashing", dimension=0), api_key=shared_qdrant.token
        )
        try:
            found = await store.select(BUDGETS, tenant_id=pipeline.tenant)
        finally:
            await store.close()
        return [StoredBudget.from_payload(each.payload) for each in found]

    async def observed() -> list[str]:
        """Users of the turns that were observed."""
        return sorted(Observed.read(value).user_id for value in await pipeline.observed())

    users = sorted(on_every_partition(lambda user: ids.session_key(pipeline.tenant, user, "s1"), each=A_PARTITION))
    gate = Gate()

    def waiting(ask: Ask) -> Answer:
        return held(gate, answer(ask))

    model.script = waiting
    both = [pipeline.spawn("observer"), pipeline.spawn("observer")]
    await has_members(pipeline, "observer", len(both))
    await pipeline.produce(*(turn("I like tea.", 1, user=user) for user in users))
    await wait_for(
        lambda: refused_in_each(pipeline, len(both)), "both to have asked for more than there is", deadline=60
    )
    under_way = await wait_for(lambda: model.asks, "some of it is spent")  # the first call imports the client
    assert sum(map(set_aside, under_way)) <= LOW, "nobody sets aside what the other one has"
    gate.open()
    await pipeline.settled("observer")
    pipeline.stop()
    first = await observed()
    assert 0 < len(first) < len(users)
    assert len(set(first)) == len(first)
    spent = await accounts()
    assert set(Counter((row.day, row.line) for row in spent).values()) == {1}, "one account, whoever asks"
    assert all(row.spent_tokens <= row.taken_tokens <= LOW for row in spent)
    assert sum(row.spent_tokens for row in spent) == sum(map(taken, model.asks))
    assert all(row.taken_tokens == row.spent_tokens for row in spent), "a worker that is stopped gives back its slice"

    model.script = answer
    pipeline.configure(policy(HIGH))
    pipeline.spawn("observer")
    pipeline.spawn("observer")
    async with asyncio.timeout(60):
        while await observed() != users:
            await asyncio.sleep(0.2)
    await pipeline.settled("observer")
    assert len(model.asks) == len(users), "each turn was paid for once"
    assert await pipeline.dead_letters() == []
    await pipeline.verified("observer")
    pipeline.stop()
    assert sum(row.spent_tokens for row in await accounts()) == sum(map(taken, model.asks))


def refused_in_each(pipeline: Pipeline, workers: int) -> bool:
    logs = [path.read_text() for path in pipeline.folder.glob("worker-*-observer.log")]
    return sum("budget_paused" in text for text in logs) == workers

"""One tenant's budget of observations, shared by two workers on a real broker: never exceeded, nothing dropped, and
what waits goes on when the ceiling is raised."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors.factory import open_store
from memstream.schemas.budgets import StoredBudget
from memstream.schemas.collections import BUDGETS
from memstream.schemas.observations import Observed
from tests.support.model_server import OBSERVATION, Ask, ModelServer, Reply
from tests.support.pipeline import Pipeline, running, turn
from tests.support.qdrant import QdrantServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(180)]
SESSIONS = 24
LOW, HIGH = 16_000, 1_000_000
"""A call sets aside some 6 000 tokens and takes some 1 000, so a day of the low one pays for a dozen at most."""


def policy(tokens: int) -> str:
    return f"[memory.budget]\nmax_output_tokens = 256\n[memory.budget.observation]\ntokens = {tokens}\n"


def answer(ask: Ask) -> Reply:
    said = [{**OBSERVATION, "turn": name, "content": "Likes tea", "evidence": "I like tea"} for name in ask.turns]
    return Reply(content=json.dumps({"observations": said}))


def taken(ask: Ask) -> int:
    """What the scripted server says that its answer took."""
    shown = sum(len(content) for _, content in ask.messages)
    return shown // 4 + 1 + len(answer(ask).content or "") // 4 + 1


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(answer) as server:
        yield server


@pytest.fixture
async def pipeline(
    tmp_path: Path, kafka_broker: str, shared_qdrant: QdrantServer, model: ModelServer
) -> AsyncIterator[Pipeline]:
    made = Pipeline(
        folder=tmp_path,
        broker=f"kafka://{kafka_broker}",
        qdrant=shared_qdrant,
        model=model,
        env={"MEMSTREAM_OBSERVE_TOGETHER": "1"},
        policy=policy(LOW),
    )
    async with running(made) as ready:
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

    users = sorted(f"u{n}" for n in range(SESSIONS))
    pipeline.spawn("observer")
    pipeline.spawn("observer")
    await pipeline.produce(*(turn("I like tea.", 1, user=user) for user in users))
    await pipeline.settled("observer")
    pipeline.stop()
    first = await observed()
    assert 0 < len(first) < SESSIONS
    assert len(set(first)) == len(first)
    spent = await accounts()
    assert all(row.spent_tokens <= row.taken_tokens <= LOW for row in spent)
    assert sum(row.spent_tokens for row in spent) == sum(map(taken, model.asks))
    assert all(row.taken_tokens == row.spent_tokens for row in spent), "a worker that is stopped gives back its slice"

    pipeline.configure(policy(HIGH))
    pipeline.spawn("observer")
    pipeline.spawn("observer")
    async with asyncio.timeout(60):
        while await observed() != users:
            await asyncio.sleep(0.2)
    await pipeline.settled("observer")
    assert len(model.asks) == SESSIONS, "each turn was paid for once"
    assert await pipeline.letters() == []
    await pipeline.verified("observer")
    pipeline.stop()
    assert sum(row.spent_tokens for row in await accounts()) == sum(map(taken, model.asks))

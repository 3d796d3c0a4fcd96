"""The whole pipeline over several quarters, on Kafka and a Qdrant server: every read finds what was said in each, and a
drop takes the words alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.context import PRESETS, ContextRequest, ContextService
from memstream.recall.request import ReadSession
from memstream.recall.service import RecallService
from memstream.schemas.periods import Period
from memstream.schemas.turns import Owner
from tests.support.conversation import ACTIONS, CONVERSATION, KNOWN, STATES, conversation, states
from tests.support.kafka import Broker
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, actions, running, turn, wait_for
from tests.support.qdrant import QdrantServer, qdrant_server

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
USER = ("--user", "u1")
PATIENCE = 90


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[QdrantServer]:
    with qdrant_server(tmp_path / "qdrant") as own:
        yield own


@pytest.fixture
async def pipeline(tmp_path: Path, own_kafka: Broker, qdrant: QdrantServer) -> AsyncIterator[Pipeline]:
    with ModelServer(observing(KNOWN)) as model:
        made = Pipeline(
            folder=tmp_path,
            broker=f"kafka://{own_kafka.bootstrap}",
            qdrant=qdrant,
            model=model,
            env={"MEMSTREAM_EMBEDDER": "hashing"},
            policy="[memory.session_log]\nretention_days = 0\n",
        )
        async with running(made) as ready:
            yield ready


async def context_for(pipeline: Pipeline, qdrant: QdrantServer, question: str) -> str:
    embedder = HashingEmbedder()
    store = await open_store(qdrant.url, embedder=embedder.identity, api_key=qdrant.token)
    try:
        recall = RecallService(store=store, embedder=embedder, policy=RecallPolicy(patience=20.0))
        request = ContextRequest(
            pipeline.tenant,
            Owner(scope="user", id="u1"),
            ReadSession("u1", "s2"),
            cue=question,
            switches=PRESETS["full"],
        )
        context = await ContextService(recall=recall).context(request, now=datetime.now(UTC))
        assert context.missing == ()
        return context.text
    finally:
        await store.close()


def recalled(pipeline: Pipeline, cue: str) -> set[str]:
    found = pipeline.json_lines("recall", "--tenant", pipeline.tenant, *USER, "--cue", cue, "--limit", "50")
    return {each["content"] for each in found if each["tier"] == "turns"}


def traced(pipeline: Pipeline, content: str) -> Json:
    [fact] = [each for each in pipeline.stored().values() if each["content"] == content]
    [found] = pipeline.json_lines("trace", fact["fact_id"], "--tenant", pipeline.tenant)
    return found


@pytest.mark.long
async def test_reads_go_over_several_quarters_and_a_drop_takes_words_alone(
    pipeline: Pipeline, qdrant: QdrantServer
) -> None:
    said, now = conversation(), datetime.now(UTC)
    oldest, old = Period(now.year - 2, 2), Period(now.year - 1, 1)
    pipeline.spawn("all")
    # The first turn after the start comes in the newest quarter, which takes over the collection that `ensure` made.
    await pipeline.produce(turn("Nothing to keep.", 0, session="s0", user="u2"))
    await pipeline.settled()
    for turns, quarter in ((said[:3], oldest), (said[3:6], old)):
        await pipeline.produce(*turns, at=quarter.begins)
        await pipeline.settled()
    await pipeline.produce(*said[6:])
    await pipeline.settled()

    assert actions(await pipeline.updates()) == ACTIONS
    assert states(await pipeline.consistent()) == STATES
    assert recalled(pipeline, "Jake Stripe green tea Jennifer engineer lunch Jack") == set(CONVERSATION)
    assert "Works at Stripe" in await context_for(pipeline, qdrant, "Where do I work?")
    said_of_google = [each["content"] for each in traced(pipeline, "Works at Google")["turns"]]
    assert said_of_google == [CONVERSATION[0], CONVERSATION[3]], "of two quarters"
    await pipeline.settled()  # `recall` wrote to memory.recalled
    await pipeline.verified()
    pipeline.stop()

    pipeline.configure("[memory.session_log]\nretention_days = 1\n")
    pipeline.spawn("all")
    await pipeline.produce(turn("And another thing.", 9))
    await pipeline.settled()
    kept = [*CONVERSATION[6:], "And another thing."]

    def shown() -> list[str]:
        return sorted(
            row["content"] for row in pipeline.shown("turns")[pipeline.tenant]["turns"] if row["user_id"] == "u1"
        )

    await wait_for(
        shown, "the drop of two quarters", until=lambda rows: rows == sorted(kept), deadline=PATIENCE, pause=1
    )
    assert recalled(pipeline, "Jake Stripe green tea Jennifer engineer lunch Jack another thing") == set(kept)
    assert "Works at Stripe" in await context_for(pipeline, qdrant, "Where do I work?")
    assert states(await pipeline.consistent()) == STATES, "facts have ends of their own"
    assert traced(pipeline, "Works at Google")["turns"] == []
    await pipeline.settled()
    await pipeline.verified()
    pipeline.stop()

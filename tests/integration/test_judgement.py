"""A turn that makes a pending fact is followed by a verdict and its events, in the tier free, without a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from memstream.schemas.commands import Command
from memstream.schemas.topics import COMMANDS
from tests.support.conversation import states
from tests.support.model_server import ModelServer
from tests.support.pending_conversation import (
    FIRST,
    KNOWN_FACT,
    PENDING_FACT,
    SECOND,
    judging,
    verdict,
)
from tests.support.pipeline import Pipeline, actions, running
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(judging(lambda _: "supersede")) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model, env={"MEMSTREAM_TIER": "free"})) as ready:
        ready.spawn("all")
        yield ready


async def test_a_pending_fact_is_judged_within_seconds_of_its_turn(pipeline: Pipeline, model: ModelServer) -> None:
    asked = len(model.asks)
    await pipeline.produce(FIRST | {}, SECOND | {})
    approved = await verdict(pipeline)
    (pending,) = (each for each in await pipeline.updates() if each.fact.state == "pending")
    assert (approved.at - pending.at).total_seconds() < 30
    assert (pending.fact.content, approved.fact.content, approved.fact.state) == (PENDING_FACT, PENDING_FACT, "active")
    assert (approved.reason, approved.cause.issued_by) == ("so", "/memstream/consolidation")
    assert approved.cause.prompt is not None
    assert approved.cause.prompt.startswith("judge/")
    await pipeline.settled()
    assert states(await pipeline.consistent()) == {KNOWN_FACT: "superseded", PENDING_FACT: "active"}
    assert actions(await pipeline.updates())[-2:] == [("superseded", KNOWN_FACT), ("approved", PENDING_FACT)]
    asks = model.asks[asked:]
    assert [ask.task for ask in asks].count("judge") == 1
    assert "consolidation" not in {ask.task for ask in asks}
    shown = next(ask.last_user_message for ask in asks if ask.task == "judge")
    assert shown == (
        "Pairs:\n## user\n[p1]\n"
        f"known: {KNOWN_FACT}\n  said 2026-11-20 10:01: I cannot swim\n"
        f"new: {PENDING_FACT}\n  said 2026-11-20 10:02: I learned to swim"
    )
    values = [record.value or b"" for record in await pipeline.records(COMMANDS.name)]
    sent = {each.command_id: each.kind for each in map(Command.read, values) if each.tenant_id == pipeline.tenant}
    assert sorted(sent.values()) == ["facts.apply", "judge"]
    await pipeline.verified("all")

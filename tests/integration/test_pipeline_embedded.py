"""The whole pipeline in one process on one folder: every crash point of every stage, killed and restarted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from memstream.schemas.topics import STAGES
from memstream.streams.engine.crash_points import STEPS
from tests.support.conversation import (
    AGAIN,
    CONSOLIDATED,
    CONVERSATION,
    STATES,
    conversation,
    different_each_time,
    expected_actions,
    states,
)
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, actions, running
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


def points_of(stage: str) -> list[str]:
    """All crash points of a stage, with the time at which it is hit."""
    steps = [step for step in STEPS if (stage, step) != ("recorder", "table")]
    once = stage == "consolidation"  # it runs once a conversation
    return [f"{stage}:{step}:{1 if once else 1 + n % 3}" for n, step in enumerate(steps)]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(different_each_time) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model)) as ready:
        yield ready


def of_user(user: str) -> list[dict[str, object]]:
    return [{**turn, "user_id": user} for turn in conversation()]


@pytest.mark.parametrize("stage", STAGES)
async def test_every_crash_point_of_every_stage_is_made_good(pipeline: Pipeline, stage: str) -> None:
    """One worker after the other crashes at the next point, with a conversation of another user in hand each time;
    what it leaves is the next one's. At the end every user has exactly the expected memory."""
    points = points_of(stage)
    for n, point in enumerate(points):
        await pipeline.produce(*of_user(f"u{n}"))
        await pipeline.crashes("all", at=point)
    pipeline.spawn("all")
    await pipeline.settled(deadline=120)
    facts = await pipeline.consistent()
    updates = await pipeline.updates()
    consolidated = (CONSOLIDATED, CONSOLIDATED + AGAIN)
    for n, point in enumerate(points):
        mine = {key: fact for key, fact in facts.items() if fact["owner"]["id"] == f"u{n}"}
        learnt = {content: state for content, state in states(mine).items() if content not in consolidated}
        assert {content.removesuffix(AGAIN): state for content, state in learnt.items()} == STATES, point
        assert [fact["state"] for fact in mine.values() if fact["content"] in consolidated] == ["active"], point
        told = actions([event for event in updates if event.owner.id == f"u{n}"])
        direct = [(action, content.removesuffix(AGAIN)) for action, content in told if content not in consolidated]
        assert direct == expected_actions(told), point
    observed = await pipeline.observed()
    assert len(set(observed)) == len(points) * len(CONVERSATION)
    messages = pipeline.json_lines("show", "turns", "--tenant", pipeline.tenant)
    assert len(messages) == len(points) * len(CONVERSATION)
    assert await pipeline.dead_letters() == []
    await pipeline.verified()
    pipeline.stop()

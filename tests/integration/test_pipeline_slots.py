"""Slots from a turn to the profile: the model's words are unknown to every locale pack, so the slots alone decide."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]


def said(content: str, slot: str, value: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"content": content, "slot": slot, "value": value, "category": "attribute", **PERSISTENT, **fields}]


KNOWN = {
    "Siemens pays me": said("Draws a salary from Siemens", "employer", "Siemens"),
    "weekends are mine": said("Has weekends off", "work_hours", "weekends", denied=True),
    "Bosch pays me": said("Draws a salary from Bosch", "employer", "Bosch"),
    "fond of sorbet": said("Has a soft spot for sorbet", "likes", "sorbet"),
    "fond of fjords": said("Has a soft spot for fjords", "likes", "fjords"),
    "go off sorbet": said("Has gone off sorbet", "likes", "sorbet", denied=True),
    "espresso at work": said("Sips espresso at work", "habit", "espresso", qualifier="at work"),
    "espresso, never at night": said(
        "Is off espresso at night", "habit", "espresso", denied=True, qualifier="at night"
    ),
}
SAID = [
    "Siemens pays me well.",
    "At last, weekends are mine.",
    "I am fond of sorbet.",
    "I am fond of fjords.",
    "I sip espresso at work.",
    "I take espresso, never at night.",
    "Now Bosch pays me.",
    "I go off sorbet.",
]
CLOSED = {"Draws a salary from Siemens", "Has a soft spot for sorbet"}
"""The facts whose value was replaced or denied."""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model)) as ready:
        ready.spawn("all")
        yield ready


async def test_slots_decide_conflicts_and_make_the_profile(pipeline: Pipeline) -> None:
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    await pipeline.settled()
    facts = await pipeline.consistent()
    states = {fact["content"]: fact["state"] for fact in facts.values()}
    every = {items[0]["content"] for items in KNOWN.values()}
    assert states == {content: "superseded" if content in CLOSED else "active" for content in every}
    shown = pipeline.json_lines("profile", "--tenant", pipeline.tenant, "--user", "u1")
    profile = {slot["slot"]: [each["value"] for each in slot["values"]] for slot in shown}
    denied = {slot["slot"]: [each["value"] for each in slot["denied"]] for slot in shown if slot["denied"]}
    assert profile == {"employer": ["Bosch"], "work_hours": [], "likes": ["fjords"], "habit": ["espresso"]}
    assert denied == {"work_hours": ["weekends"], "likes": ["sorbet"], "habit": ["espresso"]}
    await pipeline.verified("all")

"""A chat of several people through the whole pipeline, on a broker and in a folder: whose facts are whose, on which
day, and what `trace --turn` says of statements beyond the caps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.model_server import Answer, Ask, ModelServer, nothing
from tests.support.openai_bodies import OBSERVATION
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import Place

CITIES = {"I live in Porto": "Lives in Porto", "I live in Lyon": "Lives in Lyon"}
HOBBIES = [f"I like hobby {n}" for n in range(5)]
LOCAL = "2026-06-01T21:00:00-05:00"


def careless(ask: Ask) -> Answer:
    """Takes every speaker for the user: a city replaces what the prompt shows first."""
    if ask.task != "observations":
        return nothing(ask)
    found: list[Any] = []
    shown = next(iter(ask.prompt.working), None)
    for name, text in ask.turns.items():
        said = {**CITIES, **{each: each.replace("I like", "Likes") for each in HOBBIES}}
        found += [
            {
                **OBSERVATION,
                "turn": name,
                "content": content,
                "evidence": quote,
                "importance": 0.9,
                "replaces": shown if quote in CITIES else None,
            }
            for quote, content in said.items()
            if quote in text
        ]
    return {"observations": found}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(careless) as server:
        yield server


@pytest.fixture(params=[pytest.param("on_kafka", marks=pytest.mark.kafka), "in_folder"])
async def pipeline(request: pytest.FixtureRequest, model: ModelServer) -> AsyncIterator[Pipeline]:
    place: Place = request.getfixturevalue(request.param)
    policy = "[memory.capture]\nmax_per_message = 3\n"
    async with running(place.pipeline(model, policy=policy, env={"MEMSTREAM_EMBEDDER": "hashing"})) as ready:
        yield ready


def says(text: str, n: int, name: str | None = None, **fields: Any) -> Json:
    return turn("", n, messages=[{"role": "user", "name": name, "content": text}], **fields)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_speakers_keep_their_facts_and_their_day(pipeline: Pipeline, model: ModelServer) -> None:
    pipeline.spawn("all")
    many = says(", ".join(HOBBIES), 3, "alice")
    await pipeline.produce(
        says("I live in Porto.", 1, "alice", occurred_at=LOCAL), says("I live in Lyon.", 2, "bruno"), many
    )
    await pipeline.settled()
    facts = pipeline.json_lines("show", "facts", "--tenant", pipeline.tenant, "--state", "all")
    lives = {(each["subject"], each["content"]): each for each in facts if each["content"].startswith("Lives")}
    assert {name: each["state"] for name, each in lives.items()} == {
        ("alice", "Lives in Porto"): "active",
        ("bruno", "Lives in Lyon"): "active",
    }
    assert lives["alice", "Lives in Porto"]["valid_from"] == "2026-06-02T02:00:00Z"
    prompts = [f"{ask.messages}" for ask in model.asks]
    assert any(f"t1 {LOCAL}" in each and "user (alice): I live in Porto." in each for each in prompts)

    [traced] = pipeline.json_lines("trace", "--turn", many["turn_id"], "--tenant", pipeline.tenant)
    assert traced["messages"][0]["name"] == "alice"
    assert len(traced["observations"]) == 3
    assert traced["cause"]["over_cap"] == {"observations": 2, "statements": ["Likes hobby 3", "Likes hobby 4"]}
    await pipeline.verified("recorder", "observer", "reflector")
    pipeline.stop()

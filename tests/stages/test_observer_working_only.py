"""The working set alone (`[memory.tiers]`): what the model is asked, what becomes of its answer, and that nothing goes
further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from memstream.memory.policies import CapturePolicy, MemoryPolicy, ObservePolicy, TiersPolicy
from memstream.schemas import ids
from memstream.schemas.topics import RESULTS
from tests.support.model_server import Answer, Ask, Script
from tests.support.observer_world import SESSION, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import kills

POLICY = MemoryPolicy(
    tiers=TiersPolicy(episodic=False, semantic=False, digest=False), observe=ObservePolicy(patience=0.02)
)


def essentials(content: str, **fields: JsonValue) -> dict[str, JsonValue]:
    return {"content": content, "importance": 0.7, "pinned": False, "replaces": None, **fields}


def answering(*answers: Sequence[dict[str, JsonValue]]) -> Script:
    """One after the other."""

    def script(ask: Ask) -> Answer:
        return {"observations": list[JsonValue](answers[ask.number - 1])}

    return script


def asked(ask: Ask) -> list[str]:
    """The names that the schema of the answer requires."""
    schema: Any = ask.body
    for name in ("response_format", "json_schema", "schema", "properties", "observations", "items"):
        schema = schema[name]
    assert schema["required"] == list(schema["properties"])
    return sorted(schema["required"])


async def test_only_the_essentials_are_asked_for_and_nothing_goes_downstream() -> None:
    world = ObserverWorld(
        answering(
            [essentials("Works at Google", pinned=True), essentials("Jennifer lives in Oslo", importance=0.3)],
            [essentials("Works at Stripe", replaces="w1", importance=0.9)],
        ),
        policy=POLICY,
    )
    await world.deliver(world.turn("I work at Google. Jennifer lives in Oslo."))
    first = world.row()
    assert first.working.entries[0].pinned
    await world.deliver(world.turn("I joined Stripe.", "t2", sensitivity="secret"))
    assert [asked(ask) for ask in world.model.asks] == [["content", "importance", "pinned", "replaces"]] * 2
    assert [view.content for view in world.model.asks[1].prompt.working.values()] == [
        "Works at Google",
        "Jennifer lives in Oslo",
    ]
    rules = world.model.asks[0].messages[0][1]
    assert "evidence" not in rules
    assert "Memories that were shown to the assistant" in rules
    assert world.working() == ["Works at Stripe", "Jennifer lives in Oslo"]
    assert world.projected() == sorted(world.working())
    assert world.harness.sent == [], "nothing goes downstream"
    row = world.row()
    assert (row.turns, row.working.turn) == (2, 2)
    entry = row.working.entries[0]
    assert entry.entry_id == ids.observation_id(ids.session_key(*SESSION), "t2", "user", "Works at Stripe")
    assert (entry.subject, entry.durability, entry.category, entry.sensitivity) == (
        "user",
        "session",
        "knowledge",
        "secret",
    )


async def test_several_turns_in_one_call_are_told_apart() -> None:
    policy = replace(POLICY, observe=replace(POLICY.observe, unobserved_tokens=1_000))
    world = ObserverWorld(
        answering([essentials("Likes tea", turn="t2"), essentials("Likes rye", turn="t9"), essentials("No turn")]),
        policy=policy,
    )
    await world.deliver(world.turn("Hm."), world.turn("I like tea.", "t2", ends_session=True))
    (ask,) = world.model.asks
    assert asked(ask) == ["content", "importance", "pinned", "replaces", "turn"]
    assert world.working() == ["Likes tea"]
    assert world.counted()["unknown_turn"] == 2


async def test_what_a_model_says_beyond_is_read_as_ever() -> None:
    """A server without schemas may say more; a quote that is given must stand in the turn."""
    invented = {**OBSERVATION, "content": "Likes snails", "evidence": "I love snails"}
    told = {**OBSERVATION, "content": "Lives in Oslo", "evidence": "lives in Oslo", "subject": "jennifer"}
    world = ObserverWorld(answering([invented, told]), policy=POLICY)
    await world.deliver(world.turn("Jennifer lives in Oslo."))
    (entry,) = world.row().working.entries
    assert (entry.content, entry.subject, entry.durability) == ("Lives in Oslo", "jennifer", "persistent")
    assert world.counted()["invented"] == 1


@pytest.mark.parametrize("text", ["   ", [{"role": "tool", "content": "42"}]])
async def test_a_turn_that_shows_nothing_asks_nobody(text: Any) -> None:
    world = ObserverWorld(answering(), policy=POLICY)
    await world.deliver(world.turn(text))
    assert (world.model.asks, world.harness.sent, world.row().turns) == ([], [], 1)


async def test_the_cap_per_message_holds() -> None:
    world = ObserverWorld(
        answering([essentials("One"), essentials("Two"), essentials("One")]),
        policy=replace(POLICY, capture=CapturePolicy(max_per_message=1)),
    )
    await world.deliver(world.turn("One and two."))
    assert world.working() == ["One"]
    assert (world.counted()["over_the_cap"], world.counted()["repeated_observation"]) == (1, 1)


async def test_commands_are_answered_and_refusals_told() -> None:
    """What is answered to whoever asked, and dead letters, are no memory."""
    world = ObserverWorld(answering([]), policy=POLICY)
    await world.deliver(world.turn("Hello."), world.command())
    assert {record.topic for record in world.harness.sent} == {RESULTS.name}


async def test_killed_at_every_step_it_ends_as_if_nothing_had_died() -> None:
    def script(ask: Ask) -> Answer:
        """The same to the same turn: it may be asked again, for nothing durable follows from the first answer."""
        [text] = ask.turns.values()
        replaces = next(iter(ask.prompt.working), None) if "Stripe" in text else None
        return {"observations": [essentials(f"Said {text[-7:]}", replaces=replaces)]}

    def world() -> ObserverWorld:
        return ObserverWorld(script, policy=POLICY)

    def talk(world: ObserverWorld) -> list[Any]:
        return [
            world.turn("I work at Google"),
            world.turn("I joined Stripe", "t2"),
            world.turn("I work at Google"),
            world.turn("I like oolong", "t3"),
        ]

    whole = world()
    await whole.run(talk(whole))
    assert whole.row().turns == 3
    for kill in kills(len(whole.harness.steps)):
        killed = world()
        await killed.run(talk(killed), kill=kill)
        where = f"{kill}: {killed.harness.step}"
        assert killed.row().working == whole.row().working, where
        assert killed.projected() == whole.projected(), where
        assert killed.harness.sent == [], where

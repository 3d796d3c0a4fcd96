"""What was recalled for a prompt and comes back in a turn: the observer neither shows it to a model nor takes its word
for a quote."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.memory.policies import CapturePolicy, MemoryPolicy
from memstream.memory.recall.prompt_framing import frame
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import ObserverWorld
from tests.support.openai_bodies import OBSERVATION

FRAME = frame("Known facts:\n- [preference] Keeps bees in Bergen", mark="0123456789abcdef")


def believing(ask: Ask) -> Answer:
    """A model that takes down whatever it is shown, and what it was not shown as well."""
    return {"observations": [{**OBSERVATION, "content": "Keeps bees in Bergen", "evidence": "Keeps bees in Bergen"}]}


def said(content: Any) -> dict[str, Any]:
    return {"text": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    "turn",
    [
        {"text": FRAME},
        said([{"type": "text", "text": FRAME}]),
        said([{"type": "text", "text": FRAME[:40]}, {"type": "text", "text": FRAME[40:]}]),
        {"text": [{"role": "user", "content": FRAME}, {"role": "assistant", "content": f" {FRAME} \n"}]},
        {"text": FRAME[:-5]},
        {"text": FRAME[5:]},
    ],
)
async def test_a_turn_of_nothing_else_is_observed_without_a_model(turn: dict[str, Any]) -> None:
    world = ObserverWorld(believing)
    await world.deliver(world.turn(**turn), world.turn("Keeps bees in Bergen, they say.", "t2"))
    assert [ask.task for ask in world.model.asks] == ["observations"]
    assert [(r.turn_id, r.turn_number, len(r.observations)) for r in world.observed()] == [("t1", 1, 0), ("t2", 2, 1)]


@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_only_what_was_said_beside_it_is_shown(role: str) -> None:
    world = ObserverWorld(believing, policy=MemoryPolicy(capture=CapturePolicy(max_assistant_chars=30)))
    await world.deliver(
        world.turn([{"role": role, "content": f"{FRAME}\nHow is the weather in Oslo?"}]), world.turn("And now?", "t2")
    )
    for ask in world.model.asks:
        assert "Keeps bees in Bergen" not in str(ask.messages)
        assert "weather in Oslo" in str(ask.messages), "in the turn itself, then as an earlier message"
    assert [len(record.observations) for record in world.observed()] == [0, 0], "no quote of it counts"


async def test_a_turn_that_is_too_long_is_cut_and_its_record_says_so() -> None:
    world = ObserverWorld(believing)
    await world.deliver(world.turn("Keeps bees in Bergen, they say. " + "la " * 80_000), world.turn("And now?", "t2"))
    long, short = world.observed()
    assert long.cause.cut is not None
    assert (long.cause.cut.messages, short.cause.cut) == (1, None)
    assert long.cause.cut.tokens > 50_000
    assert len(long.observations) == 1, "its beginning is shown"
    assert world.counted()["turn_cut"] == 1
    assert all(len(str(ask.messages)) < 50_000 for ask in world.model.asks), "it had cost 60 000 tokens"

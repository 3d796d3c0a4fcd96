"""A model whose answers yield nothing for many turns is named, with the reasons."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from memstream.agents.observer.useless_answers import RUN_MIN
from tests.support.model_server import Answer, Ask, nothing, observing
from tests.support.observer_world import ObserverWorld

SAID = "I work at Stripe."
FACT: dict[str, Any] = {"content": "Works at Stripe"}
TRANSIENT = {**FACT, "durability": "transient", "importance": 0.9}
UNIMPORTANT = {**FACT, "importance": 0.0}
INVENTED = {**FACT, "evidence": "I own the company"}


def world_of(*items: dict[str, Any]) -> tuple[ObserverWorld, list[dict[str, Any]]]:
    """Return a world whose model answers with the items of the list that is returned; the list may change."""
    said = list(items)

    def answer(ask: Ask) -> Answer:
        return observing({SAID: said})(ask) if said else nothing(ask)

    return ObserverWorld(answer), said


async def turns(world: ObserverWorld, count: int) -> str:
    """Deliver turns. Return what /readyz says."""
    for _ in range(count):
        await world.deliver(world.turn(SAID, f"t{len(world.observed())}"))
    return world.harness.calls.remark


@pytest.mark.parametrize(
    ("item", "reason"), [(TRANSIENT, "transient"), (UNIMPORTANT, "unimportant"), (INVENTED, "invented")]
)
async def test_ten_turns_without_a_usable_statement_are_reported(item: dict[str, Any], reason: str) -> None:
    world, _ = world_of(item)
    with capture_logs() as logs:
        assert await turns(world, RUN_MIN - 1) == ""
        told = await turns(world, 1)
    assert told == f"answers yield nothing: scripted: 10 turns in a row ({reason} 10) (memstream doctor)"
    (line,) = [each for each in logs if each["event"] == "answers_yield_nothing"]
    assert (line["log_level"], line["turns"], line["reasons"]) == ("warning", 10, {reason: 10})


async def test_one_usable_statement_ends_the_run() -> None:
    world, said = world_of(TRANSIENT)
    assert await turns(world, RUN_MIN)
    said[:] = [FACT]
    assert await turns(world, 1) == ""
    said[:] = [TRANSIENT]
    assert await turns(world, RUN_MIN - 1) == ""


async def test_an_empty_answer_neither_lengthens_nor_ends_a_run() -> None:
    world, said = world_of()
    assert await turns(world, 2 * RUN_MIN) == ""
    said[:] = [TRANSIENT]
    assert await turns(world, RUN_MIN - 1) == ""
    said[:] = []
    assert await turns(world, 1) == ""
    said[:] = [TRANSIENT]
    assert "10 turns" in await turns(world, 1)

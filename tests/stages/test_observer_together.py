"""Turns of a session that are queued behind each other: one call, one outcome, and each of them once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.schemas.errors import Poison
from memstream.schemas.topics import OBSERVATIONS
from memstream.streams.log.port import Record
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import SESSION, AwayModel, ObserverWorld, deferred, policy
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import Kill, kills

OTHER = ("acme", "u2", "s1")


def said(world: ObserverWorld, *numbers: int, **fields: Any) -> list[Record]:
    return [world.turn(f"{n} word", f"t{n}", **fields) for n in numbers]


def numbers(world: ObserverWorld) -> list[tuple[str, int]]:
    return [(record.turn_id, record.turn_number) for record in world.observed()]


def shown(model: AwayModel) -> list[list[str]]:
    """Return the words of each call, without their roles."""
    return [[text.removeprefix("user: ") for text in texts] for texts in model.shown]


def sizes(model: AwayModel) -> list[int]:
    return [len(texts) for texts in model.shown]


def telling(ask: Ask) -> Answer:
    """Observe one statement a turn, the same ones whether turns come alone or together."""
    if any("poison" in text for text in ask.turns.values()):
        raise Poison("refused_by_model", "unusable")
    return {
        "observations": [
            {**OBSERVATION, "turn": name, "content": f"Said {text}", "evidence": text, "importance": 0.5}
            for name, text in ask.turns.items()
        ]
    }


async def test_turns_that_are_queued_behind_each_other_are_one_call_and_one_row() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy())
    await world.run(said(world, 1, 2, 3, 4, 5), together=True)
    assert sizes(model) == [5]
    assert numbers(world) == [(f"t{n}", n) for n in range(1, 6)]
    assert [record.position.offset for record in world.harness.covered] == [1, 2, 3, 4]
    assert world.harness.steps.count("table") == 1
    assert (world.waiting(), world.counted()["deferred"], world.counted()["duplicate"]) == ([], 0, 0)


async def test_a_round_takes_as_many_turns_as_the_setting_says() -> None:
    for together, expected in ((3, [3, 3, 1]), (1, [1] * 7)):
        model = AwayModel()
        world = ObserverWorld(model, policy=policy(together=together))
        await world.run(said(world, *range(1, 8)), together=True)
        assert sizes(model) == expected
        assert numbers(world) == [(f"t{n}", n) for n in range(1, 8)]


async def test_a_prompt_has_no_more_tokens_than_the_policy_says() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(round_tokens=200))
    await world.run([world.turn(f"word {'x' * 395}", f"t{n}") for n in range(5)], together=True)
    assert sizes(model) == [2, 2, 1]


async def test_turns_that_wait_in_rows_come_before_those_that_are_queued() -> None:
    model = AwayModel()
    world = await deferred(model, "a word", "b word", policy=policy(together=3))
    await world.run([world.turn(f"{name} word", f"t{n}") for n, name in ((3, "c"), (4, "d"), (5, "e"))], together=True)
    assert shown(model) == [["a word", "b word", "c word"], ["d word", "e word"]]
    assert [turn for turn, _ in numbers(world)] == ["t1", "t2", "t3", "t4", "t5"]


async def test_sessions_commands_and_duplicates_keep_their_places() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy())
    first, second = said(world, 1, 2)
    stranger = world.turn("x word", "t1", session=OTHER)
    again = world.turn("1 word", "t1")
    (third,) = said(world, 3)
    command = world.command()
    (fourth,) = said(world, 4)
    await world.run([first, stranger, second, again, third, command, fourth], together=True)
    assert shown(model) == [["1 word", "2 word"], ["x word"], ["3 word"], ["4 word"]]
    assert world.counted()["duplicate"] == 1


async def test_turns_of_two_policies_are_not_shown_together() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(), tenants={"acme": {"personas": {"blunt": {"openness": 0.7}}}})
    turns = [*said(world, 1, 2), *said(world, 3, 4, agent_id="blunt"), *said(world, 5)]
    await world.run(turns, together=True)
    assert sizes(model) == [2, 2, 1]


async def test_a_turn_that_is_refused_costs_its_neighbours_nothing() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(together=4))
    turns = [world.turn(text, f"t{n}") for n, text in enumerate(("a word", "poison", "c word", "d word", "e word"))]
    await world.run(turns, together=True)
    assert [letter["memstream-reason"] for letter in world.dead_letters()] == ["refused_by_model"]
    assert numbers(world) == [("t0", 1), ("t2", 2), ("t3", 3), ("t4", 4)]
    assert shown(model)[1:] == [["a word"], ["refused", "poison"], ["c word"], ["d word"], ["e word"]]


async def test_while_the_model_is_away_each_turn_waits_in_its_row() -> None:
    model = AwayModel()
    model.away = {"word"}
    world = ObserverWorld(model, policy=policy())
    await world.run(said(world, 1, 2, 3), together=True)
    assert (world.row().waiting, world.harness.covered) == (3, [])
    model.away = set()
    world.clock.seconds += 60
    await world.reminders()
    await world.deliver_rest()
    assert (sizes(model), numbers(world)) == ([3], [("t1", 1), ("t2", 2), ("t3", 3)])


# ------------------------------------------------------------------------------------------------ as one by one
TEXTS = st.lists(st.sampled_from(["tea", "rye", "poison", "again", "command", "other"]), min_size=1, max_size=8)


def conversation(world: ObserverWorld, texts: list[str]) -> list[Record]:
    records: list[Record] = []
    for n, text in enumerate(texts):
        if text == "command":
            records.append(world.command(f"c{n}", kind="dance"))
        elif text == "again":
            records.append(world.turn("first word", "t0"))
        else:
            records.append(world.turn(f"{text} {n} word", f"t{n}", session=OTHER if text == "other" else SESSION))
    return records


async def play(texts: list[str], *, together: bool, kill: Kill | None = None) -> ObserverWorld:
    world = ObserverWorld(telling, policy=policy(together=3))
    await world.run(conversation(world, texts), together=together, kill=kill)
    world.harness.check_equal_bytes()
    return world


def left(world: ObserverWorld) -> Any:
    """Return what a reader sees: observations and letters, each once, and the working sets."""
    observed = {
        ce: (record.turn_number, [each.content for each in record.observations])
        for ce, record in zip(world.harness.once(OBSERVATIONS.name), _once(world), strict=True)
    }
    letters = sorted(letter["kafka_dlt-original-offset"] for letter in _letters(world))
    sets = [[(entry.content, entry.salience) for entry in world.row(who).working.entries] for who in (SESSION, OTHER)]
    return observed, letters, sets


def _once(world: ObserverWorld) -> list[Any]:
    seen = {}
    for record in world.observed():
        seen.setdefault((record.user_id, record.session_id, record.turn_id), record)
    return list(seen.values())


def _letters(world: ObserverWorld) -> list[dict[str, str]]:
    seen = {}
    for letter in world.dead_letters():
        seen.setdefault(letter["kafka_dlt-original-offset"], letter)
    return list(seen.values())


@given(TEXTS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.slow
def test_together_leaves_what_one_by_one_leaves(texts: list[str]) -> None:
    async def both() -> tuple[Any, Any]:
        return left(await play(texts, together=True)), left(await play(texts, together=False))

    one, other = asyncio.run(both())
    assert one == other


@pytest.mark.parametrize("texts", [["tea", "rye", "tea", "rye"], ["tea", "poison", "rye", "again", "tea"]], ids=str)
async def test_after_a_death_at_any_step_each_turn_counts_once(texts: list[str]) -> None:
    whole = await play(texts, together=True)
    expected = left(whole)
    for kill in kills(len(whole.harness.steps)):
        world = await play(texts, together=True, kill=kill)
        assert left(world) == expected, f"killed at {world.harness.step}"
        assert world.waiting() == []

"""An event makes a bounded number of calls. What is left is asked for by a command, so that others get the lane."""

from __future__ import annotations

from typing import Final

import pytest

from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION
from memstream.streams.log.port import Record
from tests.support.observer_world import AwayModel, ObserverWorld, deferred, item, policy
from tests.support.record_builders import NOW
from tests.support.stage_harness import Kill, kills
from tests.support.table_rows import take_over

TEXT = "{} very plain word"
QUICK: Final = 0.0005
"""Seconds of patience: a deferral waits for so long."""


async def waiting(turns: int, **fields: int) -> tuple[AwayModel, ObserverWorld]:
    """A session with so many turns that wait, and a model that answers again."""
    model = AwayModel()
    return model, await deferred(
        model, *(TEXT.format(n) for n in range(turns)), policy=policy(patience=QUICK, **fields)
    )


def numbers(world: ObserverWorld) -> list[int]:
    return [record.turn_number for record in world.observed()]


async def test_an_event_makes_four_calls_and_its_command_goes_on() -> None:
    model, world = await waiting(300)
    await world.deliver(world.command("c1"))
    assert (len(model.shown), world.row().waiting, world.results()) == (4, 300 - 4 * 8, [])
    assert await world.reminders() == []  # the command itself comes again
    before = 0
    while before < len(world.harness.on(COMMANDS_SESSION.name)):
        again = world.harness.on(COMMANDS_SESSION.name)[before]
        before, calls = before + 1, len(model.shown)
        await world.deliver(world.again(again))
        assert 1 <= len(model.shown) - calls <= 4
    assert numbers(world) == list(range(1, 301))
    assert [(each.command_id, each.status, each.result) for each in world.results()] == [
        ("c1", "applied", {"waiting": 0})
    ]
    assert world.waiting() == []


async def test_what_a_turn_leaves_is_asked_for_at_once_by_a_reminder() -> None:
    model, world = await waiting(50, rounds=2)
    await world.deliver(world.turn(TEXT.format(50), "t51"))
    assert (len(model.shown), world.row().waiting) == (2, 51 - 2 * 8)
    while reminders := await world.reminders():
        assert len(reminders) == 1
        await world.deliver_rest()
        assert len(model.shown) <= 2 * (1 + len(world.results()))
    assert numbers(world) == list(range(1, 52))
    assert [(each.result or {})["waiting"] for each in world.results()] == [19, 3, 0]


async def test_a_queued_event_of_the_session_takes_the_rest() -> None:
    _, world = await waiting(20, rounds=1)
    first, second = (world.turn(TEXT.format(n), f"t{n + 1}") for n in (20, 21))
    await world.deliver(first, ahead=[second])
    assert (world.row().waiting, await world.reminders()) == (13, [])
    await world.deliver(second)
    await world.reminders()
    await world.deliver_rest()
    assert numbers(world) == list(range(1, 23))


async def test_a_batch_that_is_asked_one_by_one_is_finished_first() -> None:
    model = AwayModel()
    world = await deferred(
        model, *(TEXT.format("poison" if n == 2 else n) for n in range(8)), policy=policy(patience=QUICK, rounds=1)
    )
    await world.deliver(world.command())
    assert len(model.shown) == 1 + 8
    assert (len(world.observed()), len(world.dead_letters()), world.row().waiting) == (7, 1, 0)
    assert len(world.results()) == 1


async def test_a_flush_is_answered_when_all_is_observed() -> None:
    answers = [[item("t1", f"Statement {n}", importance=0.9)] for n in range(3)]
    model = AwayModel(*answers)
    texts = [TEXT.format(n) for n in range(3)]
    world = await deferred(model, *texts, policy=policy(patience=QUICK, rounds=1, together=1))
    await world.deliver(world.command("f1", kind="flush_important"))
    assert (world.harness.on(COMMANDS.name), world.results()) == ([], [])
    await world.deliver_rest()
    (result,) = world.results()
    assert result.result is not None
    assert (result.result["waiting"], result.result["entries"]) == (0, 3)


async def test_a_command_that_has_expired_meanwhile_says_so() -> None:
    _, world = await waiting(4, rounds=1, together=1)
    await world.deliver(world.command("c1", expires_at=NOW.replace(year=NOW.year + 1)))
    world.clock.seconds += 400 * 86_400
    await world.deliver_rest()
    assert [(each.command_id, each.status) for each in world.results()] == [("c1", "expired")]
    assert world.row().waiting == 2
    while await world.reminders():  # the rest waits for nothing
        await world.deliver_rest()
    assert numbers(world) == [1, 2, 3, 4]


async def played(kill: Kill | None, *, command: bool) -> tuple[ObserverWorld, int]:
    """Six waiting turns, two calls of two turns an event; the process dies at a step of the next event.

    Returns the world when nothing waits any more, and the steps of that event.
    """
    model = AwayModel()
    fields = MemoryPolicy(observe=ObservePolicy(patience=QUICK, together=2, rounds=2))
    world = await deferred(model, *(TEXT.format(n) for n in range(6)), policy=fields)
    world.harness.steps.clear()
    last: Record = world.command("c1") if command else world.turn(TEXT.format(6), "t7")
    await world.run([last], kill=kill)
    steps = len(world.harness.steps)
    await take_over(world.observer, world.harness.rows)
    for _ in range(3):
        await world.deliver_rest()
        world.clock.seconds += 1.0
        await world.reminders()
    return world, steps


@pytest.mark.parametrize("command", [True, False])
@pytest.mark.slow
async def test_a_death_between_two_rounds_loses_and_doubles_nothing(command: bool) -> None:
    expected, steps = await played(None, command=command)
    turns = 6 if command else 7
    assert numbers(expected) == list(range(1, turns + 1))
    for kill in kills(steps):
        world, _ = await played(kill, command=command)
        world.harness.check_equal_bytes()
        assert numbers(world) == list(range(1, turns + 1)), kill
        assert world.row().waiting == 0
        answered = [each.command_id for each in world.results()]
        assert len(answered) == len(set(answered))
        assert not command or "c1" in answered

"""Turns that wait for company from a backlog, and that each of them is observed when none comes."""

from __future__ import annotations

import pytest

from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.streams.engine.breaker import BreakerPolicy
from tests.support.observer_world import SESSION, AwayModel, ObserverWorld, deferred, policy
from tests.support.stage_harness import Killed
from tests.support.table_rows import take_over

KEY = ids.session_key(*SESSION)
OTHER = ("acme", "u2", "s1")


async def said(world: ObserverWorld, *numbers: int) -> None:
    """Turns t<n>, each when the one before it is done."""
    for n in numbers:
        await world.deliver(world.turn(f"{n} word", f"t{n}"))


def numbers(world: ObserverWorld) -> list[tuple[str, int]]:
    return [(record.turn_id, record.turn_number) for record in world.observed()]


# ------------------------------------------------------------------------------------------------ a backlog
async def test_under_a_backlog_a_session_waits_until_a_round_is_full() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(together=4))
    world.unread = 10_000
    await said(world, *range(1, 8))
    assert [len(texts) for texts in model.shown] == [4]
    assert world.row().waiting == 3


async def test_when_the_backlog_is_read_those_that_wait_are_asked_at_once() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(patience=60.0))
    world.unread = 10_000
    for session in (SESSION, OTHER):
        for n in (1, 2):
            await world.deliver(world.turn(f"{n} word", f"t{n}", session=session))
    world.clock.seconds += 0.2
    assert await world.reminders() == []
    world.unread = 0
    reminders = await world.reminders()
    assert [Command.read(each.value or b"").command_id for each in reminders] == [
        ids.observe_command_id(ids.session_key(*session), "t2", 0) for session in (SESSION, OTHER)
    ]
    await world.deliver(*(world.again(reminder) for reminder in reminders))
    assert [len(texts) for texts in model.shown] == [2, 2]
    world.clock.seconds += 1_000
    assert await world.reminders() == []


async def test_near_the_end_of_a_backlog_a_sessions_last_event_observes_what_waits() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy())
    world.unread = 1_033
    await said(world, 1, 2)
    world.unread = 1  # no more events to come than sessions wait
    await said(world, 3)
    assert [len(texts) for texts in model.shown] == [3]


async def test_however_long_the_backlog_a_turn_waits_for_company_no_longer_than_the_policy_says() -> None:
    world = ObserverWorld(AwayModel(), policy=policy(company=600.0))
    world.unread = 100_000
    await said(world, 1)
    world.clock.seconds += 599
    await said(world, 2)
    assert await world.reminders() == []
    world.clock.seconds += 1
    (reminder,) = await world.reminders()
    await world.deliver(world.again(reminder))
    assert numbers(world) == [("t1", 1), ("t2", 2)]


async def test_the_end_of_a_session_and_a_command_wait_for_nobody() -> None:
    world = ObserverWorld(AwayModel(), policy=policy())
    world.unread = 10_000
    await said(world, 1)
    await world.deliver(world.turn(None, "t2", ends_session=True))
    assert len(world.observed()) == 2
    await said(world, 3)
    await world.deliver(world.command())
    assert len(world.observed()) == 3


async def test_a_new_owner_asks_for_full_rounds_and_ends_at_once_and_for_others_when_it_knows_the_log() -> None:
    world = ObserverWorld(AwayModel(), policy=policy(together=3))
    world.model.script = away = AwayModel()
    away.away = {"word"}
    for session, turns in ((SESSION, 3), (OTHER, 1), (("acme", "u3", "s1"), 1)):
        for n in range(turns):
            ends = session[1] == "u3"
            await world.deliver(world.turn(f"{n} word", f"t{n}", session=session, ends_session=ends))
    away.away = set()
    world.harness.start()
    world.unread = None
    await take_over(world.observer, world.harness.rows)
    asked = [Command.read(each.value or b"").key for each in await world.reminders()]
    assert asked == [KEY, "acme/u3/s1"]
    world.unread = 2_000
    assert await world.reminders() == []
    world.unread = 0
    assert [Command.read(each.value or b"").key for each in await world.reminders()] == ["acme/u2/s1"]


async def test_a_model_that_is_back_wakes_nobody_who_waits_for_company() -> None:
    world = ObserverWorld(AwayModel(), policy=policy(patience=60.0), breaker=BreakerPolicy(failures=1, probe_after=0.0))
    world.unread = 10_000
    await said(world, 1)
    world.observer._wake_sessions("model:acme")
    assert await world.reminders() == []


async def test_an_unusable_answer_for_several_turns_is_asked_for_one_by_one_in_a_backlog_too() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(together=3))
    world.unread = 10_000
    for n, text in enumerate(("a word", "poison", "c word"), 1):
        await world.deliver(world.turn(text, f"t{n}"))
    assert numbers(world) == [("t1", 1), ("t3", 2)]
    assert [letter["memstream-reason"] for letter in world.dead_letters()] == ["refused_by_model"]
    assert [len(texts) for texts in model.shown if texts[0] != "refused"] == [1, 1]


# ------------------------------------------------------------------------------------------------ tokens
async def test_a_prompt_has_no_more_tokens_than_the_policy_says() -> None:
    model = AwayModel()
    world = await deferred(
        model, *(f"word {'x' * 395}" for _ in range(5)), "y word" * 1_000, "a word", policy=policy(round_tokens=200)
    )
    assert world.row().waiting_tokens == 5 * 100 + 1_500 + 2
    await world.deliver(world.command())
    await world.deliver_rest()
    assert [len(texts) for texts in model.shown] == [2, 2, 1, 1, 1]
    assert world.row().waiting_tokens == 0


async def test_a_session_with_words_enough_for_a_prompt_needs_no_company() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(round_tokens=200))
    world.unread = 10_000
    for n in range(3):
        await world.deliver(world.turn(f"word {'x' * 395}", f"t{n}"))
    assert [len(texts) for texts in model.shown] == [2]
    assert world.row().waiting_tokens == 100


async def test_a_token_trigger_counts_what_waits() -> None:
    world = ObserverWorld(AwayModel(), policy=policy(unobserved_tokens=5))
    await said(world, 1, 2)
    assert world.observed() == []
    await said(world, 3)
    assert len(world.observed()) == 3


# ------------------------------------------------------------------------------------------------ deaths
@pytest.mark.parametrize("empty_folder", [False, True])
async def test_a_death_at_any_step_of_a_backlog_loses_nothing_and_repeats_nothing(empty_folder: bool) -> None:
    async def play(dies: int | None) -> tuple[ObserverWorld, int]:
        world = ObserverWorld(AwayModel(), policy=policy(together=3))
        world.unread = 10_000
        world.harness._kill_at = dies
        log = [world.turn(f"{n} word", f"t{n}") for n in range(5)]
        at = 0
        while at < len(log):
            try:
                await world.deliver(log[at])
                at += 1
            except Killed:
                if empty_folder:
                    world.harness.rows.local = dict(world.harness.rows.changelog)
                world.harness.start()
                await take_over(world.observer, world.harness.rows)
                at = 0
        steps = len(world.harness.steps)
        world.harness._kill_at = None
        world.unread = 0
        for reminder in await world.reminders():
            await world.deliver(world.again(reminder))
        return world, steps

    _, steps = await play(None)
    for dies in range(1, steps + 1):
        world, _ = await play(dies)
        assert numbers(world) == [(f"t{n}", n + 1) for n in range(5)], f"killed at {world.harness.step}"
        assert world.waiting() == []
        world.harness.check_equal_bytes()

"""A tenant's waiting turns have a ceiling. Beyond it nothing is lost: a turn is a dead letter that can be put back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memstream.memory.policies import MemoryPolicy
from memstream.memory.working_set.observe_trigger import ObserveNow, UnobservedTurns, Wait, time_to_observe
from memstream.streams.engine.redrive import redrive_of
from memstream.streams.log.port import Record
from tests.support.observer_world import LETTERS, AwayModel, ObserverWorld, policy
from tests.support.stage_harness import kills
from tests.support.table_rows import take_over

OTHER = ("globex", "u1", "s1")
SECOND = ("acme", "u1", "s2")
TEXT = "{} very plain word"


def world(model: AwayModel, *, waiting_turns: int, **fields: Any) -> ObserverWorld:
    return ObserverWorld(model, policy=policy(patience=0.0005, waiting_turns=waiting_turns, **fields))


async def away(it: ObserverWorld, model: AwayModel, turns: int, *, first: int = 0) -> None:
    """Turns of acme and of globex while the model is away for acme alone."""
    model.away = {"word"}
    for n in range(first, first + turns):
        session = SECOND if n % 2 else ("acme", "u1", "s1")
        await it.deliver(it.turn(TEXT.format(n), f"t{n}", session=session))
    await it.deliver(it.turn("fine", f"t{first}", session=OTHER))
    model.away = set()


def put_back(it: ObserverWorld) -> list[Record]:
    """The records that `memstream dlq redrive` appends for all letters."""
    records = []
    for out in it.harness.on(LETTERS):
        letter = it.topics.record(out.topic, out.key, out.value, partition=0, headers=out.headers, timestamp=1)
        put = redrive_of(letter)
        records.append(it.topics.record(put.topic, put.key, put.value, partition=0, headers=put.headers, timestamp=1))
    return records


async def test_beyond_the_ceiling_turns_are_letters_and_come_back() -> None:
    model = AwayModel()
    it = world(model, waiting_turns=5)
    await away(it, model, 30)  # 25 letters in a row stop nobody
    assert len(it.waiting()) == 5
    assert [each["memstream-reason"] for each in it.dead_letters()] == ["over_ceiling"] * 25
    assert "observe.waiting_turns" in it.dead_letters()[0]["kafka_dlt-exception-message"]
    assert [record.tenant_id for record in it.observed()] == ["globex"]
    for session in (("acme", "u1", "s1"), SECOND):
        await it.deliver(it.command(f"c-{session[2]}", session=session))
    await it.deliver_rest()
    assert it.waiting() == []
    for record in put_back(it):
        await it.deliver(record)
    mine = [record for record in it.observed() if record.tenant_id == "acme"]
    assert sorted(int(record.turn_id[1:]) for record in mine) == list(range(30))
    for name in ("s1", "s2"):
        assert [each.turn_number for each in mine if each.session_id == name] == list(range(1, 16))


async def test_one_tenant_takes_no_room_of_another() -> None:
    model = AwayModel()
    it = world(model, waiting_turns=2)
    await away(it, model, 4)
    model.away = {"fine"}
    for n in range(3):
        await it.deliver(it.turn("fine", f"g{n}", session=OTHER))
    assert it.row(OTHER).waiting == 2
    assert len(it.dead_letters()) == 2 + 1


async def test_at_the_ceiling_nobody_waits_for_company() -> None:
    model = AwayModel()
    it = world(model, waiting_turns=3)
    it.unread = 10_000
    for n in range(3):
        await it.deliver(it.turn(TEXT.format(n), f"t{n}"))
    assert (it.row().waiting, model.shown) == (3, [])
    await it.deliver(it.turn("a very plain word", "t0", session=SECOND))
    assert (it.row(SECOND).waiting, len(it.observed()), it.dead_letters()) == (0, 1, [])


def test_a_tenant_without_room_is_observed_at_once_unless_that_cannot_be() -> None:
    few = UnobservedTurns(turns=1, tokens=5, behind=True, room=False)
    observe = replace(policy().observe, unobserved_tokens=1_000)
    assert time_to_observe(few, observe) == ObserveNow(1)
    assert time_to_observe(replace(few, room=True), observe) == Wait("few_tokens")
    assert time_to_observe(replace(few, model_away=True), observe) == Wait("model_away")
    assert time_to_observe(replace(few, budget_left=False), observe) == Wait("budget")


async def test_the_next_owner_counts_what_it_finds() -> None:
    model = AwayModel()
    it = world(model, waiting_turns=4)
    await away(it, model, 4)
    it.harness.start()
    await take_over(it.observer, it.harness.rows)
    await away(it, model, 2, first=4)
    assert (len(it.waiting()), len(it.dead_letters())) == (4, 2)
    await take_over(it.observer, it.harness.rows, partitions=())
    assert it.observer._waiting.of(0, "acme") == 0


async def test_without_a_ceiling_every_turn_waits() -> None:
    model = AwayModel()
    it = world(model, waiting_turns=0)
    await away(it, model, 8)
    assert (len(it.waiting()), it.dead_letters()) == (8, [])


@pytest.mark.parametrize("turns", [3])
async def test_a_death_at_any_step_loses_and_doubles_nothing(turns: int) -> None:
    async def played(kill: Any = None) -> tuple[ObserverWorld, int]:
        model = AwayModel()
        it = ObserverWorld(model, policy=MemoryPolicy(observe=policy(patience=0.0005, waiting_turns=1).observe))
        model.away = {"word"}
        await it.run([it.turn(TEXT.format(n), f"t{n}") for n in range(turns)], kill=kill)
        return it, len(it.harness.steps)

    _, steps = await played()
    for kill in kills(steps):
        it, _ = await played(kill)
        it.harness.check_equal_bytes()
        letters = [each["kafka_dlt-original-offset"] for each in it.dead_letters()]
        waiting = [str(each.offset) for each in it.waiting_turns()][: it.row().waiting]
        assert sorted(letters + waiting) == [str(n) for n in range(turns)], kill

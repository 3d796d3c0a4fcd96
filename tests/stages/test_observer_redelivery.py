"""Killed at every step, with a model that never answers the same twice: nothing lost, double or altered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memstream.memory.policies import MemoryPolicy, ObservePolicy, WorkingSetPolicy
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, RESULTS, TURNS
from memstream.streams.log.port import Record
from tests.support.model_server import Answer, Ask, Script
from tests.support.observer_world import SESSION, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import Kill, kills

OTHER = ("acme", "u2", "s1")
POLICY = MemoryPolicy(
    observe=ObservePolicy(patience=0.001, together=2), working=WorkingSetPolicy(capacity=2, max_pinned=1)
)


class Moody:
    """Says something about every turn, never the same twice. Turns with `poison` in them make the whole answer
    unusable; while `away` is set it is away."""

    def __init__(self) -> None:
        self.away = False

    def __call__(self, ask: Ask) -> Answer:
        if self.away:
            raise Transient("model", "away")
        if any("poison" in text for text in ask.turns.values()):
            raise Poison("refused_by_model", "poison")
        return {
            "observations": [
                {
                    **OBSERVATION,
                    "turn": name,
                    "subject": "word",
                    "content": f"Answer {ask.number} about {name}",
                    "evidence": "very plain word",
                    "replaces": "w1" if ask.number % 2 else None,
                }
                for name in ask.turns
            ]
        }


Conversation = Callable[[ObserverWorld], Sequence[Record]]


def talk(world: ObserverWorld) -> Sequence[Record]:
    return [
        world.turn("a very plain word"),
        world.turn("a very plain word", session=OTHER),
        world.turn("second very plain word", "t2"),
        world.turn("a very plain word"),  # a duplicate
        world.turn("a poison very plain word", "t3"),
        world.turn("last very plain word", "t4"),
    ]


def check_consistent(world: ObserverWorld) -> None:
    """What holds whatever the model said: one record a turn, numbers without a gap, three pictures of one memory."""
    world.harness.check_equal_bytes()
    assert world.harness.rows.local == world.harness.rows.changelog
    for session in (SESSION, OTHER):
        numbers = [
            (r.turn_number, r.turn_id) for r in world.observed() if (r.tenant_id, r.user_id, r.session_id) == session
        ]
        assert [n for n, _ in numbers] == list(range(1, len(numbers) + 1))
        assert len({turn for _, turn in numbers}) == len(numbers)
        assert world.row(session).turns == len(numbers)
        assert world.projected(session) == sorted(world.working(session))
        said = {each.content for record in world.observed() for each in record.observations}
        assert set(world.working(session)) <= said  # what is remembered was told downstream


def picture(world: ObserverWorld) -> dict[str, Any]:
    """What must be the same however often it died."""
    return {
        "observed": sorted((r.user_id, r.turn_number, r.turn_id, len(r.observations)) for r in world.observed()),
        "letters": sorted(
            (each["kafka_dlt-original-offset"], each["memstream-reason"]) for each in world.dead_letters()
        ),
        "waiting": world.waiting(),
    }


@pytest.mark.slow
@pytest.mark.long
async def test_killed_at_every_step_nothing_is_lost_or_double() -> None:
    calm = ObserverWorld(Moody(), policy=POLICY)
    await calm.run(talk(calm))
    expected, steps = picture(calm), len(calm.harness.steps)
    assert expected["observed"] == [("u1", 1, "t1", 1), ("u1", 2, "t2", 1), ("u1", 3, "t4", 1), ("u2", 1, "t1", 1)]
    assert [reason for _, reason in expected["letters"]] == ["refused_by_model"]
    assert steps > 25
    for kill in kills(steps):
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.run(talk(world), kill=kill)
        assert world.harness.step is not None, kill
        check_consistent(world)
        assert picture(world) == expected, (kill, world.harness.step)


async def run_deferred(world: ObserverWorld, model: Moody, *, kill: Kill | None) -> None:
    """Three turns while the model is away, one of them poison; then `observe` takes them in rounds of two."""
    model.away = True
    turns = [
        world.turn("a very plain word"),
        world.turn("a poison very plain word", "t2"),
        world.turn("c very plain word", "t3", ends_session=True),
    ]
    turns.append(world.turn("a very plain word", session=OTHER))
    await world.run(turns, kill=kill)
    assert world.harness.rows.local == world.harness.rows.changelog  # waiting rows are on the broker too
    model.away = False
    left = None
    if kill is not None and world.harness.step is None:
        left = Kill(kill.at, empty_folder=kill.empty_folder, from_start=kill.from_start)
    commands = [world.command(), world.command("c2", session=OTHER), world.command("c3")]
    uncommitted = turns if kill is not None and kill.from_start else []
    await world.run([*uncommitted, *commands], kill=left)


@pytest.mark.long
async def test_killed_while_deferred_turns_are_taken_in_rounds() -> None:
    model = Moody()
    calm = ObserverWorld(model, policy=POLICY)
    await run_deferred(calm, model, kill=None)
    expected, steps = picture(calm), len(calm.harness.steps)
    assert expected["observed"] == [("u1", 1, "t1", 1), ("u1", 2, "t3", 1), ("u2", 1, "t1", 1)]
    assert expected["letters"] == [("1", "refused_by_model")]
    assert expected["waiting"] == []
    assert steps > 40
    for kill in kills(steps):
        model = Moody()
        world = ObserverWorld(model, policy=POLICY)
        await run_deferred(world, model, kill=kill)
        assert world.harness.step is not None, kill
        check_consistent(world)
        assert picture(world) == expected, (kill, world.harness.step)
        assert sorted(result.command_id for result in world.results()) == ["c1", "c2", "c3"]


@pytest.mark.parametrize("step", ["table", "store", f"sent {OBSERVATIONS.name}"])
async def test_a_command_that_comes_before_the_turn_comes_again_loses_nothing(step: str) -> None:
    """The turn's outcome is in the table, the worker dies, and the other topic is read first."""
    probe = ObserverWorld(Moody(), policy=POLICY)
    await probe.deliver(probe.turn("a very plain word"))
    world = ObserverWorld(Moody(), policy=POLICY)
    turn = world.turn("a very plain word")
    await world.run([], kill=Kill(probe.harness.steps.index(step) + 1))
    with pytest.raises(BaseException, match=step):
        await world.deliver(turn)
    world.harness.start()
    await world.deliver(world.command(), turn)
    check_consistent(world)
    assert [record.turn_id for record in world.observed()] == ["t1"]


async def test_an_older_turn_that_comes_again_leads_on_without_overwriting(monkeypatch: pytest.MonkeyPatch) -> None:
    """t1 comes again (its commit waited); the newer t3 died before its record was sent, and others still wait."""
    model = Moody()
    world = ObserverWorld(model, policy=POLICY)
    model.away = True
    first = world.turn("a very plain word")
    rest = [world.turn("a very plain word", f"t{n}") for n in range(2, 6)]
    await world.deliver(first, *rest)
    model.away = False
    last = world.turn("a very plain word", "t6")
    world.harness.steps.clear()
    world.harness._kill_at = None
    await world.run([], kill=Kill(4))
    with pytest.raises(BaseException, match=r"changelog|table|local|store"):
        await world.deliver(last)
    world.harness.start()
    await world.deliver(first, *rest, last)
    check_consistent(world)
    assert [record.turn_id for record in world.observed()] == ["t1", "t2", "t3", "t4", "t5", "t6"]
    assert world.waiting() == []


async def test_an_event_that_was_applied_and_is_not_the_last_is_passed_over() -> None:
    world = ObserverWorld(Moody(), policy=POLICY)
    turns = [world.turn("a very plain word", f"t{n}") for n in range(3)]
    await world.deliver(*turns)
    sent, rows = list(world.harness.sent), dict(world.harness.rows.local)
    await world.deliver(turns[0], turns[1])
    assert (world.harness.sent, world.harness.rows.local) == (sent, rows)
    assert world.counted()["duplicate"] == 2


async def test_a_duplicate_does_nothing_whatever_it_says_and_another_session_is_no_duplicate() -> None:
    world = ObserverWorld(Moody(), policy=POLICY)
    await world.deliver(
        world.turn("a very plain word"),
        world.turn("another very plain word"),
        world.turn("a very plain word", session=OTHER),
    )
    assert [(r.user_id, r.turn_number) for r in world.observed()] == [("u1", 1), ("u2", 1)]
    assert world.counted()["duplicate"] == 1


async def test_ids_are_remembered_for_a_thousand_turns() -> None:
    script: Script = lambda ask: {"observations": []}  # noqa: E731
    world = ObserverWorld(script)
    for n in range(1_001):
        await world.deliver(world.turn(None, f"t{n}", ends_session=True))
    await world.deliver(world.turn("x", "t1"))
    assert world.row().turns == 1_001
    await world.deliver(world.turn("x", "t0"))  # older than the last thousand: nobody knows it any more
    assert world.row().turns == 1_002


async def test_a_model_is_asked_once_when_the_outcome_is_in_the_table() -> None:
    world = ObserverWorld(Moody(), policy=POLICY)
    turn = world.turn("a very plain word")
    await world.deliver(turn)
    for _ in range(3):
        world.harness.start()
        await world.deliver(turn)
    assert len(world.model.asks) == 1
    assert len({out.value for out in world.harness.on(OBSERVATIONS.name)}) == 1
    assert world.harness.on(TURNS.name) == world.harness.on(COMMANDS_SESSION.name) == []


@pytest.mark.long
async def test_a_log_that_comes_again_from_its_beginning_does_nothing_though_ids_are_forgotten() -> None:
    """A session of more turns and edits than ids are kept; a worker of the version before wrote its row meanwhile."""
    script: Script = lambda ask: {"observations": []}  # noqa: E731
    world = ObserverWorld(script)
    records: list[Record] = []
    for n in range(2_200):
        records.append(world.turn(None, f"t{n}", ends_session=True))
        records.append(world.command(f"c{n}", "working.add", args={"content": f"Entry {n}", "importance": 0.9}))
        await world.deliver(*records[-2:])
        if n == 1_050:
            (key,) = (each for each in world.harness.rows.local if each.count("/") == 2 and "\x01" not in each)
            row = json.loads(world.harness.rows.local[key])
            assert row.pop("turns_until")
            assert row.pop("commands_until")
            world.harness.rows.local[key] = json.dumps(row).encode()
    world.harness.start()
    asked, working = len(world.model.asks), world.working()
    assert "Entry 2199" in working
    answered = {record.value for record in world.harness.on(RESULTS.name)}
    assert world.row().turns == 2_200
    for record in records:
        await world.deliver(record)
    again = {record.value for record in world.harness.on(RESULTS.name)} - answered
    assert (len(world.model.asks), world.row().turns, world.working()) == (asked, 2_200, working)
    assert all(b'"repeated"' in (value or b"") for value in again)

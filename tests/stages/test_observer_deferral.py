"""Deferred observation: a model that is away, commands and reminders, moves to another worker."""

from __future__ import annotations

import asyncio

import pytest

from memstream.agents.common import reminders
from memstream.agents.observer.rows import SessionRow
from memstream.memory.policies import CapturePolicy, MemoryPolicy, ObservePolicy
from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.schemas.errors import Transient
from memstream.schemas.topics import COMMANDS_SESSION, RESULTS
from memstream.streams.engine.breaker import BreakerPolicy
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.engine.retry import Interrupted
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import SESSION, AwayModel, ObserverWorld, deferred, item, policy
from tests.support.polling import wait_for
from tests.support.stage_harness import StageHarness
from tests.support.table_rows import take_over

KEY = ids.session_key(*SESSION)
OTHER = ("globex", "u1", "s1")


# ------------------------------------------------------------------------------------------------ deferring
async def test_past_its_patience_a_turn_becomes_a_row_and_is_done() -> None:
    model = AwayModel()
    model.away = {"very plain word"}
    world = ObserverWorld(model, policy=policy())
    turn = world.turn("a very plain word", headers=(("h", b"\xff"),))
    await world.deliver(turn)
    assert len(world.model.asks) > 1  # tried again, then given up
    (waiting,) = world.waiting_turns()
    assert waiting.record() == turn
    assert world.waiting() == [f"{KEY}/0"]
    assert world.row().waiting == 1
    assert world.row().turns == 0
    assert (world.observed(), world.dead_letters(), world.points.calls) == ([], [], 0)
    assert world.counted()["deferred"] == 1


async def test_when_the_breaker_is_open_a_turn_is_deferred_at_once_and_other_tenants_go_on() -> None:
    world = ObserverWorld(policy=policy(patience=60.0), breaker=BreakerPolicy(failures=1, probe_after=10.0))

    async def away() -> None:
        raise Transient("model", "away")

    with pytest.raises(Transient):
        await world.harness.calls.call("model:acme", away, give_up_after=0.0)
    async with asyncio.timeout(5):
        for n in range(1, 4):
            await world.deliver(world.turn("a very plain word", f"t{n}"), world.turn("fine", f"t{n}", session=OTHER))
    assert [(r.tenant_id, r.turn_number) for r in world.observed()] == [("globex", 1), ("globex", 2), ("globex", 3)]
    assert world.row().waiting == len(world.model.asks) == 3


async def test_the_next_turn_takes_those_that_wait_and_numbers_follow_the_order() -> None:
    model = AwayModel(
        [
            item("t2", "B", "b very plain word"),
            item("t1", "A", "a very plain word"),
            item("t3", "C", "c very plain word"),
        ]
    )
    world = await deferred(model, "a very plain word", "b very plain word")
    await world.deliver(world.turn("c very plain word", "t3"))
    assert [(r.turn_id, r.turn_number) for r in world.observed()] == [("t1", 1), ("t2", 2), ("t3", 3)]
    assert world.contents() == [["A"], ["B"], ["C"]]
    assert world.waiting() == []
    assert world.row().waiting == 0
    assert (world.row().working.turn, model.shown) == (
        3,
        [["user: a very plain word", "user: b very plain word", "user: c very plain word"]],
    )


async def test_one_tick_for_each_turn_of_a_round() -> None:
    model = AwayModel([item("t1", "A"), item("t3", "C")])
    world = await deferred(model, "a very plain word", "b very plain word", "c very plain word")
    await world.deliver(world.command())
    entries = {entry.content: entry.salience for entry in world.row().working.entries}
    assert entries == {"A": pytest.approx(0.7 * 4**-0.5), "C": pytest.approx(0.7 * 2**-0.5)}


async def test_usage_stands_on_the_first_turn_of_a_call() -> None:
    world = await deferred(
        AwayModel(), "a very plain word", "b very plain word", "c very plain word", policy=policy(together=2)
    )
    await world.deliver(world.command())
    assert [record.cause.usage is not None for record in world.observed()] == [True, False, True]
    assert {record.cause.model for record in world.observed()} == {"scripted"}


async def test_rounds_are_as_small_as_the_setting_says() -> None:
    model = AwayModel()
    world = await deferred(model, *(f"{n} very plain word" for n in range(7)), policy=policy(together=3))
    await world.deliver(world.command())
    assert [len(texts) for texts in model.shown] == [3, 3, 1]
    assert [r.turn_number for r in world.observed()] == [1, 2, 3, 4, 5, 6, 7]


async def test_every_turn_is_context_for_the_next_round() -> None:
    model = AwayModel()
    world = await deferred(
        model, "a very plain word", "b very plain word", "c very plain word", policy=policy(together=2)
    )
    await world.deliver(world.command())
    assert [shown.content for shown in world.model.asks[-1].prompt.context.values()] == [
        "a very plain word",
        "b very plain word",
    ]


# ------------------------------------------------------------------------------------------------ ends and duplicates
async def test_a_duplicate_of_a_waiting_turn_is_no_second_one_and_asks_the_question() -> None:
    model = AwayModel()
    world = await deferred(model, "a very plain word")
    model.away = {"very plain word"}
    await world.deliver(world.turn("a very plain word"))
    assert world.row().waiting == 1
    model.away = set()
    await world.deliver(world.turn("other very plain word"))
    assert model.shown == [["user: a very plain word"]]
    assert [r.turn_number for r in world.observed()] == [1]
    assert world.counted()["duplicate"] == 2


async def test_the_end_of_a_session_waits_too_and_is_observed_after_it() -> None:
    world = await deferred(AwayModel(), "a very plain word")
    world.model.script = lambda ask: (_ for _ in ()).throw(Transient("model", "away"))
    await world.deliver(world.turn(None, "t2", ends_session=True))
    assert world.row().waiting_ends
    world.model.script = AwayModel()
    await world.deliver(world.turn("c very plain word", "t3"))
    assert [r.turn_id for r in world.observed()] == ["t1", "t2", "t3"]
    assert not world.row().waiting_ends


async def test_a_token_trigger_holds_turns_until_the_session_ends_or_someone_asks() -> None:
    """The mechanism is one: only the question differs."""
    held = MemoryPolicy(observe=ObservePolicy(patience=0.02, unobserved_tokens=1_000))
    world = ObserverWorld(AwayModel(), policy=held)
    await world.deliver(world.turn("a very plain word"), world.turn("b very plain word", "t2"))
    assert world.model.asks == []
    expired = world.command("c0", expires_at="2026-01-01T00:00:00Z")
    await world.deliver(expired, world.command("c1", kind="dance"))
    assert world.model.asks == []
    await world.deliver(world.command("c2"))
    assert len(world.observed()) == 2
    await world.deliver(world.turn("c very plain word", "t3"), world.turn(None, "t4", ends_session=True))
    assert [r.turn_id for r in world.observed()] == ["t1", "t2", "t3", "t4"]
    assert [(r.command_id, r.status) for r in world.results()] == [
        ("c0", "expired"),
        ("c1", "refused"),
        ("c2", "applied"),
    ]


# ------------------------------------------------------------------------------------------------ commands
async def test_a_commands_result_says_what_still_waits_and_comes_once() -> None:
    model = AwayModel()
    world = await deferred(model, "a very plain word", "b very plain word")
    model.away = {"very plain word"}
    await world.deliver(world.command())
    model.away = set()
    await world.deliver(world.command("c2"), world.command("c2"))
    assert [(r.command_id, r.result) for r in world.results()] == [("c1", {"waiting": 2}), ("c2", {"waiting": 0})]
    assert len(world.harness.on(RESULTS.name)) == 2
    assert {out.key for out in world.harness.on(RESULTS.name)} == {b"c1", b"c2"}


async def test_an_unknown_kind_is_refused_by_name() -> None:
    world = ObserverWorld()
    await world.deliver(world.command("c1", kind="facts.apply"))
    (result,) = world.results()
    assert result.error is not None
    assert result.error.code == "unknown_kind"
    assert "facts.apply" in result.error.message


@pytest.mark.parametrize("value", [None, b"{}", b"{", b'{"command_id": "c"}'])
async def test_what_is_no_command_is_a_dead_letter(value: bytes | None) -> None:
    world = ObserverWorld()
    await world.deliver(world.record(COMMANDS_SESSION.name, SESSION, value), world.command())
    assert len(world.harness.on(COMMANDS_SESSION.name + ".dlq")) == 1
    assert [r.status for r in world.results()] == ["applied"]


async def test_a_command_for_an_owner_is_no_command_of_a_session() -> None:
    world = ObserverWorld()
    command = Command.model_validate(
        {"command_id": "c", "kind": "observe", "tenant_id": "acme", "owner": {"scope": "user", "id": "u1"},
         "issued_at": "2026-11-20T10:00:00Z"}
    )  # fmt: skip
    await world.deliver(world.record(COMMANDS_SESSION.name, SESSION, command.to_bytes()))
    assert len(world.harness.on(COMMANDS_SESSION.name + ".dlq")) == 1


# ------------------------------------------------------------------------------------------------ reminders
async def test_a_deferral_is_asked_again_after_the_pause_with_the_contracts_ids() -> None:
    world = await deferred(AwayModel(), "a very plain word", "b very plain word", policy=policy(patience=0.02))
    assert await world.reminders() == []
    world.clock.seconds += 1
    (reminder,) = await world.reminders()
    command = Command.read(reminder.value or b"")
    assert command.command_id == ids.observe_command_id(KEY, "t2", 0)
    assert (command.kind, command.key, command.issued_by) == ("observe", KEY, "/memstream/observer")
    assert (reminder.topic, reminder.key) == (COMMANDS_SESSION.name, KEY.encode())
    assert dict(reminder.headers)["ce_id"].decode() == command.command_id
    await world.deliver(world.again(reminder))
    assert len(world.observed()) == 2
    world.clock.seconds += 1
    assert await world.reminders() == []


async def test_a_server_that_asked_for_more_time_than_the_patience_is_not_asked_before() -> None:
    """Neither by the reminder nor by the session's next turn; another session of the tenant asks for itself."""

    def busy(ask: Ask) -> Answer:
        if any("very plain word" in text for text in ask.turns.values()) and world.clock.seconds < 300:
            raise Transient("model", "429", retry_after=300.0)
        return {"observations": []}

    world = ObserverWorld(busy, policy=policy(patience=60.0))
    await world.deliver(world.turn("a very plain word", "t1"))
    world.clock.seconds += 100
    assert await world.reminders() == []
    await world.deliver(world.turn("b very plain word", "t2"))
    assert (len(world.model.asks), world.row().waiting) == (1, 2)
    await world.deliver(world.turn("fine", session=("acme", "u2", "s1")))
    assert len(world.model.asks) == 2
    world.clock.seconds += 199
    assert await world.reminders() == []
    world.clock.seconds += 1
    (reminder,) = await world.reminders()
    await world.deliver(world.again(reminder))
    assert [r.turn_id for r in world.observed()] == ["t1", "t1", "t2"]


async def test_while_the_model_stays_away_each_reminder_is_another_command() -> None:
    model = AwayModel()
    world = await deferred(model, "a very plain word")
    model.away = {"very plain word"}
    given = []
    for _ in range(3):
        world.clock.seconds += 1
        (reminder,) = await world.reminders()
        given.append(Command.read(reminder.value or b"").command_id)
        await world.deliver(world.again(reminder))
    assert given == [ids.observe_command_id(KEY, "t1", attempt) for attempt in range(3)]
    assert len(world.results()) == 3


async def test_when_the_breaker_closes_the_tenants_sessions_are_asked_at_once() -> None:
    model = AwayModel()
    model.away = {"very plain word"}
    world = ObserverWorld(model, policy=policy(patience=0.02), breaker=BreakerPolicy(failures=2, probe_after=0.05))
    await world.deliver(world.turn("a very plain word"), world.turn("a very plain word", session=(*SESSION[:2], "s2")))
    assert world.row().waiting == 1
    model.away = set()
    assert await world.reminders() == []
    async with asyncio.timeout(5):
        while world.harness.calls.breaker_open("model:acme"):
            await asyncio.sleep(0.005)
    await world.deliver(world.turn("fine", session=(*SESSION[:2], "s3")))
    reminders = await world.reminders()
    assert len(reminders) == 2
    await world.deliver(*(world.again(reminder) for reminder in reminders))
    assert sorted(r.session_id for r in world.observed()) == ["s1", "s2", "s3"]


async def test_at_assignment_waiting_turns_are_found_in_the_table() -> None:
    world = await deferred(AwayModel(), *(f"{n} very plain word" for n in range(12)))
    world.harness.rows.local = dict(world.harness.rows.changelog)  # another worker, with nothing but the changelog
    world.harness.start()
    await take_over(world.observer, world.harness.rows)
    (reminder,) = await world.reminders()
    assert Command.read(reminder.value or b"").command_id == ids.observe_command_id(KEY, "t12", 0)
    await world.deliver(world.again(reminder))
    assert [r.turn_number for r in world.observed()] == list(range(1, 13))
    assert world.harness.rows.local == world.harness.rows.changelog
    assert world.waiting() == []


async def test_a_waiting_row_that_no_session_counts_reminds_nobody() -> None:
    world = ObserverWorld(AwayModel())
    await world.deliver(world.turn("a very plain word"))
    world.harness.rows.local[f"{KEY}/7"] = b"left behind"
    world.harness.rows.local["acme/u2/s1/0"] = b"its session never came"
    await take_over(world.observer, world.harness.rows)
    assert await world.reminders() == []


async def test_a_look_asks_two_sessions_for_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """More would only wait in the log."""
    monkeypatch.setattr(reminders, "TICK", 60.0)
    world = ObserverWorld(AwayModel(), policy=policy())
    row = SessionRow(waiting_next=1, waiting_last="t1").to_bytes()
    for n in range(200):
        world.harness.rows.local |= {f"acme/u1/s{n}": row, f"acme/u1/s{n}/0": b"x"}
    await take_over(world.observer, world.harness.rows)
    task = asyncio.create_task(world.observer.background())
    try:
        await wait_for(lambda: len(world.harness.on(COMMANDS_SESSION.name)) >= 128, "the first look")
        assert len(world.harness.on(COMMANDS_SESSION.name)) == 128, "64 places"
    finally:
        task.cancel()


async def test_a_broker_that_is_away_does_not_end_the_reminders(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [LeaseLost("no answer from the group coordinator"), Transient("broker", "away")]

    async def send(self: StageHarness, record: object) -> None:
        if failures:
            raise failures.pop()
        self.sent.append(record)  # type: ignore[arg-type]

    monkeypatch.setattr(StageHarness, "send_durably", send)
    world = await deferred(AwayModel(), "a very plain word")
    world.clock.seconds += 1
    task = asyncio.create_task(world.observer.background())
    try:
        async with asyncio.timeout(5):
            while failures:
                world.clock.seconds += 1
                await asyncio.sleep(0.005)
            world.clock.seconds += 1
            while not world.harness.on(COMMANDS_SESSION.name):
                await asyncio.sleep(0.005)
    finally:
        task.cancel()


# ------------------------------------------------------------------------------------------------ moves
async def test_nothing_is_deferred_when_the_wait_is_cut_short_by_a_revocation() -> None:
    model = AwayModel()
    model.away = {"very plain word"}
    world = ObserverWorld(model, policy=policy(patience=60.0), breaker=BreakerPolicy(failures=1, probe_after=30.0))
    turn = world.turn("a very plain word")
    task = asyncio.create_task(world.deliver(turn))
    async with asyncio.timeout(5):
        while not world.model.asks:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        world.harness.calls.interrupt()
        with pytest.raises(Interrupted):
            await task
    assert (world.harness.rows.local, world.harness.sent) == ({}, [])
    model.away = set()
    world.harness.start()
    await world.deliver(turn)
    assert [r.turn_id for r in world.observed()] == ["t1"]


async def test_rounds_go_on_at_another_worker_that_has_only_the_changelog() -> None:
    model = AwayModel(*([item("t1", f"Says {n}")] for n in range(9)))
    world = await deferred(model, *(f"{n} very plain word" for n in range(5)), policy=policy(together=1))
    command = world.command()
    answered = model.__call__

    def dies_in_the_third_round(ask: Ask) -> Answer:
        if len(model.shown) == 2:
            raise asyncio.CancelledError
        return answered(ask)

    world.model.script = dies_in_the_third_round
    with pytest.raises(asyncio.CancelledError):
        await world.deliver(command)
    world.model.script = model
    world.harness.rows.local = dict(world.harness.rows.changelog)
    world.harness.start()
    await world.deliver(command)
    assert [(r.turn_id, r.turn_number) for r in world.observed()] == [(f"t{n}", n) for n in range(1, 6)]
    assert model.shown == [[f"user: {n} very plain word"] for n in range(5)]
    world.harness.check_equal_bytes()


async def test_switched_off_capture_takes_what_waits_without_a_model() -> None:
    world = await deferred(AwayModel(), "a very plain word")
    world.policy = MemoryPolicy(observe=policy().observe, capture=CapturePolicy(enabled=False))
    world.harness.start()
    asked = len(world.model.asks)
    await world.deliver(world.command())
    assert len(world.model.asks) == asked
    assert [r.turn_number for r in world.observed()] == [1]


async def test_a_dead_model_does_not_fill_the_worker_with_turns_that_wait() -> None:
    """Many sessions at once: the breaker opens, one of them waits to try again, the others are deferred."""
    model = AwayModel()
    model.away = {"very plain word"}
    world = ObserverWorld(model, policy=policy(patience=60.0), breaker=BreakerPolicy(failures=5, probe_after=30.0))
    turns = [world.turn("a very plain word", session=(*SESSION[:2], f"s{n}")) for n in range(20)]
    tasks = [asyncio.create_task(world.deliver(turn)) for turn in turns]
    async with asyncio.timeout(5):
        while sum(task.done() for task in tasks) < 19:
            await asyncio.sleep(0.005)
    assert len(world.waiting()) == 19
    world.harness.calls.interrupt()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results if result is not None] == [Interrupted]

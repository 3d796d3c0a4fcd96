"""A turn is taken back: in any order of recorder, observer and reflector, and however often one of them dies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.conditions import equals
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas.collections import LABELS, TURNS, WORKING
from memstream.schemas.command_kinds import RETRACT_EPISODES, RETRACT_FACTS
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.topics import COMMANDS, RESULTS
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.stages.test_turn_labels import World
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.observer_world import AwayModel, ObserverWorld, item, policy
from tests.support.reflector_world import Talk, command, reflector

SESSION = pytest.mark.asyncio(loop_scope="module")
STEPS: tuple[Step, ...] = ("decide", "table", "store", "publish")
TURN = {"user_id": "u1", "session_id": "s1", "turn_id": "t1"}


# ------------------------------------------------------------------------------------------------ the session
@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PeriodStore]:
    folder: Path = tmp_path_factory.mktemp("retraction")
    store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
    await store.ensure(TURNS, LABELS, WORKING)
    yield store
    await store.close()


def retraction(world: World) -> Record:
    return world.observer.command("r1", "turn.retract", session=world.session, args={"turn_id": "t2"})


async def check(world: World) -> None:
    """The turn is gone, its neighbours are found by their own words only, and its owner was told once."""
    of_user = models.Filter(must=[equals("user_id", world.session[1])])
    found = await world.store.select(TURNS, tenant_id="acme", where=of_user)
    assert {each.payload["turn_id"] for each in found} == {"t1", "t3"}
    lexical = await world.store.lexical(TURNS, tenant_id="acme", text="sarcoidosis sorry", where=of_user, limit=9)
    assert lexical == []
    sent = [Command.read(each.value or b"") for each in world.observer.harness.on(COMMANDS.name)]
    assert {(each.kind, each.key, each.args["turn_id"]) for each in sent} == {
        (RETRACT_FACTS, f"acme/user/{world.session[1]}", "t2")
    }
    assert len({each.command_id for each in sent}) == 1


@SESSION
@pytest.mark.parametrize("order", ["recorded first", "retracted first", "observed first"])
async def test_a_turn_leaves_the_session_whoever_is_first(store: PeriodStore, order: str) -> None:
    world = World(store, order.replace(" ", "-"))
    if order == "recorded first":
        await world.record("t1", "t2", "t3")
        await world.observe("t1", "t2", "t3")
    elif order == "observed first":
        await world.observe("t1", "t2", "t3")
    await world.observer.deliver(retraction(world))
    await world.record("t1", "t2", "t3")
    await world.observe("t1", "t2", "t3")  # late, and redriven: nothing of t2
    await check(world)
    told = [each for each in world.observer.observed() if each.turn_id == "t2"]
    assert len(told) == (order != "retracted first")


@SESSION
async def test_the_observer_dies_at_any_call_of_the_retraction(store: PeriodStore) -> None:
    for at in range(1, 20):
        world = World(store, f"retraction-dies-{at}")
        await world.record("t1", "t2", "t3")
        await world.observe("t1", "t2", "t3")
        taken = retraction(world)
        died = await world.again(
            world.of_observer,
            lambda world=world, taken=taken: world.observer.deliver(taken),
            at=at,  # type: ignore[misc]
        )
        world.restart()
        await world.observer.deliver(taken)
        await check(world)
        if not died:
            assert at > 3
            return
    raise AssertionError("it never ended")


@SESSION
async def test_working_entries_of_the_turn_end_and_a_second_request_changes_nothing(store: PeriodStore) -> None:
    model = AwayModel([item("t1", "Likes plain words")], [item("t2", "Likes tea", "a very plain word, too")])
    world = ObserverWorld(model, policy=policy(together=1), store=store)
    await world.deliver(world.turn("a very plain word"), world.turn("a very plain word, too", "t2"))
    assert sorted(world.working()) == ["Likes plain words", "Likes tea"]
    for number in (1, 2):
        await world.deliver(world.command(f"r{number}", "turn.retract", args={"turn_id": "t1"}))
        assert world.working() == ["Likes tea"]
        assert world.row().recent == ()
    answers = [CommandResult.read(each.value or b"").result or {} for each in world.harness.on(RESULTS.name)]
    assert [(each["retracted"], each["entries"]) for each in answers] == [(True, 1), (False, 0)]


@SESSION
async def test_a_waiting_turn_that_is_taken_back_is_not_shown_to_the_model(store: PeriodStore) -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(), store=store)
    model.away = {"word"}
    await world.deliver(world.turn("a very secret word"), world.turn("a plain word", "t2"))
    await world.deliver(world.command("r1", "turn.retract", args={"turn_id": "t1"}))
    assert not any(b"secret" in each.value for each in world.waiting_turns())
    model.away = set()
    world.clock.seconds += 3_600
    await world.deliver(world.command("c1", "observe"))
    assert not any("secret" in text for texts in model.shown for text in texts)
    assert [each.turn_id for each in world.observed()] == ["t1", "t2"]
    assert world.waiting() == []


# ------------------------------------------------------------------------------------------------ facts
@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


@pytest.mark.parametrize("step", STEPS)
async def test_a_fact_without_other_evidence_is_invalidated_however_often_the_reflector_dies(
    bench: Bench, step: Step
) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Stripe")  # t1
    await Talk(bench, session_id="s2").tell("Works at Stripe")  # another turn says it, too
    await bench.run(talk.turn(talk.says("Likes tea"), turn="t1", number=2))

    await bench.killed(command(bench, command_id="r1", kind=RETRACT_FACTS, args=TURN), step)

    facts = await bench.facts()
    assert {content: fact.state for content, fact in facts.items()} == {
        "Works at Stripe": "active",
        "Likes tea": "invalidated",
    }
    assert {each.session_id for each in facts["Works at Stripe"].evidence} == {"s2"}
    events = {event.event_id: event.action for event in bench.events()}
    assert sorted(events.values()).count("invalidated") == 1
    sent = {each.value for each in bench.sent if each.topic == COMMANDS.name}
    assert {json.loads(each or b"")["kind"] for each in sent} == {RETRACT_EPISODES}
    assert len({json.loads(each or b"")["command_id"] for each in sent}) == 1


async def test_a_record_of_a_turn_that_comes_after_its_retraction_has_no_effect(bench: Bench) -> None:
    talk = Talk(bench)
    result: Any = await OwnerEditor(bench).done(RETRACT_FACTS, **TURN)
    assert (result["changed"], result["invalidated"]) == (0, 0)
    await talk.tell("Works at Stripe")
    assert await bench.facts() == {}
    assert await bench.store.select("episodes", tenant_id="acme") == []
    await talk.tell("Likes tea")  # t2 is another turn
    assert set(await bench.facts()) == {"Likes tea"}

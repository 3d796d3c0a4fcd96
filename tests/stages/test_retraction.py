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
from memstream.schemas import ids
from memstream.schemas.cloudevents import RESTORED_HEADER
from memstream.schemas.collections import DIGESTS, LABELS, TASKS, TURNS, WORKING
from memstream.schemas.command_kinds import RETRACT_EPISODES, RETRACT_FACTS
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.restore import TurnToRestore
from memstream.schemas.topics import COMMANDS, RESULTS
from memstream.schemas.topics import TURNS as TURNS_TOPIC
from memstream.schemas.turns import Owner
from memstream.schemas.working_set import StoredMessage
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.stages.test_sessions_end import DAY, after, due, index_rows, numbers, told
from tests.stages.test_summaries_recorded import record as summarised
from tests.stages.test_summaries_recorded import summaries, summary, verdicts
from tests.stages.test_turn_labels import World
from tests.support.consolidation_world import Consolidating, proposal
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.observer_world import TIMESTAMP, AwayModel, ObserverWorld, item, policy
from tests.support.record_builders import NOW, OWNER, episode
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
@pytest.mark.parametrize("order", ["recorded first", "secret neighbours", "retracted first", "observed first"])
async def test_a_turn_leaves_the_session_whoever_is_first(store: PeriodStore, order: str) -> None:
    world = World(store, order.replace(" ", "-"))
    if order in ("recorded first", "secret neighbours"):
        await world.record("t1", "t2", "t3")
        await world.observe("t1", "t2", "t3")
    if order == "secret neighbours":
        secret = models.Filter(must=[equals("user_id", world.session[1])], must_not=[equals("turn_id", "t2")])
        for each in await store.select(TURNS, tenant_id="acme", where=secret):
            await store.set_payload(
                each.collection or TURNS, tenant_id="acme", ids=[each.id], fields={"sensitivity": "secret"}
            )
    if order == "observed first":
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


@SESSION
async def test_an_export_from_before_the_retraction_does_not_bring_the_turn_back(store: PeriodStore) -> None:
    world = World(store, "exported-before")
    await world.record("t1", "t2", "t3")
    of_turn = models.Filter(must=[equals("user_id", world.session[1]), equals("turn_id", "t2")])
    found = await store.select(TURNS, tenant_id="acme", where=of_turn)
    exported = sorted((StoredMessage.from_payload(each.payload) for each in found), key=lambda it: it.message_index)
    await world.observer.deliver(retraction(world))
    _, user_id, session_id = world.session
    turn = TurnToRestore(
        tenant_id="acme", user_id=user_id, session_id=session_id, turn_id="t2", exported_at=NOW, messages=exported
    )
    sent = world.observer.record(TURNS_TOPIC.name, world.session, turn.to_bytes(), headers=((RESTORED_HEADER, b"1"),))
    await world.deliver_to_recorder(sent)
    await check(world)


async def test_a_retracted_turn_has_no_effect_after_the_end_of_its_session() -> None:
    world = await told()
    await world.deliver(world.command("r1", "turn.retract", args={"turn_id": "late"}))
    world.clock.seconds = 0.4 * DAY
    await world.deliver(world.turn("a very plain word", "t2b", timestamp=TIMESTAMP + round(0.4 * DAY * 1000)))
    await world.deliver(after(world, 1.2, "o1"))
    assert await due(world) == [], "the scan moves the index row to the later time"
    await world.deliver(after(world, 1.6, "o2"))
    [command] = await due(world)
    await world.deliver(command)
    assert (world.projected(), world.row().working.entries, world.row().seen.packed) == ([], (), "")
    assert await due(world) == []
    assert index_rows(world, "ends") == []
    await world.deliver(world.turn("a very plain word", "late"), world.turn("a very plain word three", "t3"))
    assert numbers(world) == [(0, 1), (0, 2), (0, 3), (1, 1)]
    assert [each.turn_id for each in world.observed() if each.user_id == "u1"] == ["t1", "t2", "t2b", "t3"]


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


async def test_a_member_of_a_group_takes_back_only_their_own_turn(bench: Bench) -> None:
    team = Owner(scope="group", id="team")
    for user in ("ana", "bob"):  # with the same ids of session and turn
        talk = Talk(bench, owner=team, user_id=user)
        await talk.tell("The release is on Friday", subject="release", evidence=f"{user} says Friday")
        await talk.tell(f"{user} is away", subject=user)
    result = await OwnerEditor(bench, owner=team).done(RETRACT_FACTS, **TURN | {"user_id": "ana"})
    assert (result["changed"], result["invalidated"]) == (1, 0)
    facts = await bench.facts()
    assert {fact.state for fact in facts.values()} == {"active"}
    assert [each.user_id for each in facts["The release is on Friday"].evidence] == ["bob"]


async def test_another_user_with_the_same_ids_loses_nothing(bench: Bench) -> None:
    await Talk(bench).tell("Likes tea")
    result = await OwnerEditor(bench).done(RETRACT_FACTS, **TURN | {"user_id": "u2"})
    assert (result["changed"], result["invalidated"]) == (0, 0)
    assert {fact.state for fact in (await bench.facts()).values()} == {"active"}


async def test_tasks_of_the_turn_are_cancelled_and_its_superseded_facts_are_not_believed(bench: Bench) -> None:
    talk = Talk(bench)
    at = {"category": "task", "due_at": "2026-12-24T09:00:00Z"}
    await bench.run(talk.turn(talk.says("Call the plumber", **at), talk.says("Works at Google")))
    await bench.run(talk.turn(talk.says("Call the baker", **at), talk.says("Works at Stripe")))
    assert {each.state for each in (await bench.facts()).values() if each.category != "task"} == {
        "active", "superseded"
    }  # fmt: skip
    result = await OwnerEditor(bench).done(RETRACT_FACTS, **TURN)
    assert result["cancelled"] == 1
    tasks = [each.payload for each in await bench.store.select(TASKS, tenant_id="acme")]
    assert {each["content"]: each["state"] for each in tasks} == {
        "Call the plumber": "cancelled",
        "Call the baker": "open",
    }
    timers = json.loads(bench.rows.rows[f"{OWNER.key('acme')}/tasks"])["timers"]
    assert [each["task_id"] for each in timers] == [each["task_id"] for each in tasks if each["state"] == "open"]
    assert await states(bench) == {"Works at Google": "invalidated", "Works at Stripe": "active"}


async def states(bench: Bench) -> dict[str, str]:
    return {content: fact.state for content, fact in (await bench.facts()).items() if fact.category != "task"}


@pytest.mark.parametrize(
    ("taken_back", "google"),
    [pytest.param("t1", "invalidated", id="the closed fact's"), pytest.param("t2", "active", id="the closing fact's")],
)
async def test_a_fact_is_believed_again_unless_its_own_turn_was_taken_back(
    bench: Bench, taken_back: str, google: str
) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Google")
    await talk.tell("Works at Stripe")
    edits = OwnerEditor(bench)
    await edits.done(RETRACT_FACTS, **TURN | {"turn_id": taken_back})
    stripe = (await bench.facts())["Works at Stripe"].fact_id
    await edits.done("facts.forget", fact_id=stripe, because="wrong")
    assert (await states(bench))["Works at Google"] == google


async def test_a_proposal_from_before_the_retraction_does_not_use_the_turn(bench: Bench) -> None:
    talk = Talk(bench)
    said = [await talk.tell("Likes tea"), await talk.tell("Likes hiking")]
    await OwnerEditor(bench).done(RETRACT_FACTS, **TURN)
    mine, other = (ids.episode_id(each.observation_id) for each in said)
    for n, sources in enumerate(([mine], [mine, other])):
        change = proposal(content=f"Likes thing {n}", source_episode_ids=sources)
        await bench.run(command(bench, change, command_id=f"c{n}"))
    facts = await bench.facts()
    assert set(facts) == {"Likes tea", "Likes hiking", "Likes thing 1"}
    assert [each.turn_id for each in facts["Likes thing 1"].evidence] == ["t2"]
    await bench.run(summarised(bench, summary("t1", "t2"), summary("t3"), command_id="c9"))
    assert (verdicts(bench), [each.turn_ids for each in await summaries(bench)]) == (["refused", "applied"], [("t3",)])


# ------------------------------------------------------------------------------------------------ episodes
@pytest.mark.parametrize("step", STEPS)
async def test_the_turns_episodes_and_what_contains_them_go(tmp_path: Path, step: Step) -> None:
    bench = await open_bench(tmp_path, "consolidation")
    it = Consolidating(bench)
    made = await it.store_episodes(
        episode("Likes tea"),
        episode("Likes hiking", turn="t2"),
        episode("Spoke of tea", turn="t3", tags=("summary",), turn_ids=("t1", "t3")),
        episode("Spoke of hills", turn="t4", tags=("summary",), turn_ids=("t2", "t4")),
        episode("Has tea", session_id="s2"),
        episode("Has a cat", command_id="e1"),
    )
    await it.store_digest("Likes tea and hiking.")
    await bench.killed(it.command(RETRACT_EPISODES, args=TURN), step)
    stored = {each.id: each.payload for each in await bench.store.select("episodes", tenant_id="acme")}
    gone = [each.content for each in made if stored[each.episode_id]["deleted_at"] is not None]
    assert gone == ["Likes tea", "Spoke of tea"]
    assert await bench.store.select(DIGESTS, tenant_id="acme") == []
    assert {str(each.result) for each in bench.results()} == {str({"episodes": 2, "digest": True})}
    await it.store_digest("Likes hiking.")
    await bench.run(it.command(RETRACT_EPISODES, "c2", args=TURN))
    assert await it.digest() is not None, "nothing of the turn was left"
    await bench.run(it.command(RETRACT_EPISODES, "c3", args=TURN | {"facts": 1}))
    assert await it.digest() is None
    await bench.store.close()

"""A session is taken back: in any order of recorder, observer and reflector, and however often one of them dies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import Point
from memstream.adapters.vectors.conditions import equals
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.agents.consolidation.rows import ProgressRow, Summary
from memstream.agents.reflector.edits import session_erasure
from memstream.memory.upkeep.summaries import SummaryBacklog
from memstream.schemas import ids
from memstream.schemas.archive import ArchivedText
from memstream.schemas.cloudevents import RESTORED_HEADER
from memstream.schemas.collections import ARCHIVE, EPISODES, HOLDINGS, LABELS, PROCEDURES, TASKS, TURNS, WORKING
from memstream.schemas.command_kinds import ERASE_EPISODES, ERASE_FACTS
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.procedures import ProcedureVersion, StoredProcedure
from memstream.schemas.restore import TurnToRestore
from memstream.schemas.topics import COMMANDS, FACTS, FACTS_UPDATED, RESULTS
from memstream.schemas.topics import TURNS as TURNS_TOPIC
from memstream.schemas.turns import Owner
from memstream.schemas.working_set import StoredMessage
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from memstream.tools.erasure.session_records import count_session_records
from tests.stages.test_sessions_end import POLICY, Answers, after, due, numbers
from tests.stages.test_summaries_recorded import record as summarised
from tests.stages.test_summaries_recorded import summary, verdicts
from tests.stages.test_turn_labels import World
from tests.support.consolidation_world import KEY, Consolidating, proposal
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.observer_world import AwayModel, ObserverWorld, item, policy
from tests.support.record_builders import NOW, OWNER, episode
from tests.support.reflector_world import Talk, command, reflector
from tests.support.stage_harness import Kill

STORE = pytest.mark.asyncio(loop_scope="module")
STEPS: tuple[Step, ...] = ("decide", "table", "store", "publish")
OF_SESSION = {"user_id": "u1", "session_id": "s1"}
TEXTS = (b"sarcoidosis", b"a trip")


# ------------------------------------------------------------------------------------------------ the session
@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PeriodStore]:
    folder: Path = tmp_path_factory.mktemp("session-erasure")
    store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
    await store.ensure(TURNS, LABELS, WORKING, HOLDINGS)
    yield store
    await store.close()


def erasing(world: World, number: int = 1) -> Record:
    return world.observer.command(f"e{number}", "session.erase", session=world.session, args={})


async def told_of(world: World) -> dict[str, int]:
    """Return the number of the user's records, by collection."""
    where = models.Filter(must=[equals("user_id", world.session[1])])
    return {
        name: len(await world.store.select(name, tenant_id="acme", where=where))
        for name in (TURNS, LABELS, WORKING, HOLDINGS)
    }


ONLY_MARKER = {TURNS: 0, LABELS: 1, WORKING: 0, HOLDINGS: 0}


async def check(world: World) -> None:
    """Only the marker is left, no row has a text, and the owner was told once."""
    assert await told_of(world) == ONLY_MARKER
    rows = world.observer.harness.rows
    for row in (*rows.local.values(), *rows.changelog.values()):
        assert not any(text in row.lower() for text in TEXTS)
    assert world.observer.row(world.session).erased
    sent = [Command.read(each.value or b"") for each in world.observer.harness.on(COMMANDS.name)]
    assert {(each.kind, each.key, each.args["session_id"]) for each in sent} == {
        (ERASE_FACTS, f"acme/user/{world.session[1]}", "s1")
    }
    assert len({each.command_id for each in sent}) == 1


async def fill(world: World) -> None:
    await world.record("t1", "t2", "t3")
    await world.observe("t1", "t2", "t3")
    await world.observer.deliver(
        world.observer.command("b1", "blocks.define", session=world.session, args={"name": "Task", "value": "A trip"})
    )


@STORE
@pytest.mark.parametrize("order", ["recorded first", "erased first", "observed first"])
async def test_a_session_leaves_the_store_whoever_is_first(store: PeriodStore, order: str) -> None:
    world, other = World(store, order.replace(" ", "-")), World(store, f"{order} of another".replace(" ", "-"))
    await fill(other)
    before = await told_of(other)
    if order == "recorded first":
        await fill(world)
    if order == "observed first":
        await world.observe("t1", "t2", "t3")
    await world.observer.deliver(erasing(world))
    await world.record("t1", "t2", "t3")
    await world.observe("t1", "t2", "t3")  # late, and redriven
    await check(world)
    assert len(world.observer.observed()) == (0 if order == "erased first" else 3)
    assert await told_of(other) == before, "another user with the same id of the session loses nothing"


@STORE
async def test_the_observer_dies_at_any_step(store: PeriodStore) -> None:
    for at in range(1, 30):
        world = World(store, f"dies-{at}")
        await fill(world)
        passed = len(world.observer.harness.steps)
        await world.observer.run([erasing(world)], kill=Kill(passed + at, empty_folder=bool(at % 2)))
        await check(world)
        world.observer.harness.check_equal_bytes()
        if world.observer.harness.step is None:
            assert at > 8
            return
    raise AssertionError("it never ended")


@STORE
async def test_the_observer_dies_at_any_call_of_the_store(store: PeriodStore) -> None:
    for at in range(1, 40):
        world = World(store, f"store-dies-{at}")
        await fill(world)
        record = erasing(world)
        died = await world.again(
            world.of_observer,
            lambda world=world, record=record: world.observer.deliver(record),  # type: ignore[misc]
            at=at,
        )
        world.restart()
        await world.observer.deliver(record)
        await check(world)
        if not died:
            assert at > 8
            return
    raise AssertionError("it never ended")


@STORE
async def test_a_turn_that_waits_is_not_shown_to_the_model(store: PeriodStore) -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy(), store=store)
    await world.deliver(world.turn("a very poison secret", "letter"))
    assert len(world.dead_letters()) == 1
    model.away = {"word"}
    await world.deliver(world.turn("a very secret word"), world.turn("a plain word", "t2"))
    assert len(world.waiting()) == 2
    await world.deliver(world.command("e1", "session.erase", args={}))
    [answer] = world.results()
    assert (answer.result or {})["waiting"] == 2
    model.away, model.shown = set(), []
    world.clock.seconds += 3_600
    redriven = world.turn("a very secret plain", "letter")
    await world.deliver(world.command("c1", "observe"), world.turn("a very secret word", "t3"), redriven)
    assert (world.waiting(), model.shown, world.observed()) == ([], [], [])
    assert not any(b"secret" in row for row in world.harness.rows.local.values())


@STORE
async def test_later_edits_are_refused_and_a_second_request_finds_nothing(store: PeriodStore) -> None:
    world = ObserverWorld(AwayModel([item("t1", "Likes plain words")]), policy=policy(together=1), store=store)
    session = ("acme", "edits", "s1")
    await world.deliver(world.turn("a very plain word", session=session))
    for number, kind, args in (
        ("e1", "session.erase", {}),
        ("e1", "session.erase", {}),
        ("e2", "session.erase", {}),
        ("w1", "working.add", {"content": "Likes tea"}),
        ("r1", "turn.retract", {"turn_id": "t1"}),
    ):
        await world.deliver(world.command(number, kind, session=session, args=args))
    first, again, second, *later = [CommandResult.read(each.value or b"") for each in world.harness.on(RESULTS.name)]
    assert first == again, "the same command gets its result"
    found = [each.result or {} for each in (first, second)]
    assert [(each["erased"], each["entries"]) for each in found] == [(True, 1), (False, 0)]
    assert [each.error and each.error.code for each in later] == ["erased", "erased"]
    assert world.row(session).working.entries == ()


@STORE
async def test_an_export_from_before_the_erasure_does_not_bring_the_messages_back(store: PeriodStore) -> None:
    world = World(store, "exported-before")
    await world.record("t1", "t2", "t3")
    where = models.Filter(must=[equals("user_id", world.session[1]), equals("turn_id", "t2")])
    found = await store.select(TURNS, tenant_id="acme", where=where)
    exported = sorted((StoredMessage.from_payload(each.payload) for each in found), key=lambda it: it.message_index)
    await world.observer.deliver(erasing(world))
    _, user_id, session_id = world.session
    turn = TurnToRestore(
        tenant_id="acme", user_id=user_id, session_id=session_id, turn_id="t2", exported_at=NOW, messages=exported
    )
    sent = world.observer.record(TURNS_TOPIC.name, world.session, turn.to_bytes(), headers=((RESTORED_HEADER, b"1"),))
    await world.deliver_to_recorder(sent)
    await check(world)


@STORE
async def test_an_erased_session_has_no_effect_after_its_row_ended(store: PeriodStore) -> None:
    world = ObserverWorld(Answers(), policy=POLICY, store=store)
    await world.deliver(world.turn("a very plain word one"), world.command("e1", "session.erase", args={}))
    await world.deliver(after(world, 1.6, "o1"))
    [command] = await due(world)
    await world.deliver(command)
    row = world.row()
    assert (row.erased, row.has_ended, row.results.kept) == (True, True, ())
    await world.deliver(world.turn("a very plain word", "t9"))
    assert numbers(world) == [(0, 1)]


# ------------------------------------------------------------------------------------------------ facts
@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


TASK = {"category": "task", "due_at": "2026-12-24T09:00:00Z"}


async def fill_facts(bench: Bench) -> None:
    talk, other = Talk(bench), Talk(bench, session_id="s2")
    await talk.tell("Works at Stripe")
    await other.tell("Works at Stripe")  # another session says it, too
    await bench.run(talk.turn(talk.says("Likes tea"), talk.says("Call the plumber", **TASK)))
    await bench.run(other.turn(other.says("Call the baker", **TASK)))


async def erase(bench: Bench, *, step: Step | None = None, **args: Any) -> list[Command]:
    """Run facts.erase and the commands that follow, up to episodes.erase. Return the commands that it sent. `step`: the
    reflector dies once after it, in each command."""
    made = Command.read(command(bench, command_id="x1", kind=ERASE_FACTS, args=OF_SESSION | args).value or b"")
    while made.kind == ERASE_FACTS:
        record = bench.record(COMMANDS.name, made.key, made)
        await (bench.run(record) if step is None else bench.killed(record, step))
        made = sent_commands(bench)[-1]
    return sent_commands(bench)


def sent_commands(bench: Bench) -> list[Command]:
    made = [Command.read(each) for each in bench.values(COMMANDS.name)]
    return list({each.command_id: each for each in made}.values())


@pytest.mark.parametrize("step", STEPS)
async def test_facts_of_the_session_alone_are_erased_however_often_the_reflector_dies(bench: Bench, step: Step) -> None:
    await fill_facts(bench)
    before = len(bench.events())

    *_, following = await erase(bench, step=step)

    facts = {content: fact for content, fact in (await bench.facts()).items() if fact.category != "task"}
    assert list(facts) == ["Works at Stripe"]
    assert {each.session_id for each in facts["Works at Stripe"].evidence} == {"s2"}
    told = {event.event_id: event for event in bench.events()[before:]}
    assert sorted(event.action for event in told.values()) == ["erased", "updated"]
    assert {event.before for event in told.values()} == {None}, "the earlier version has the quotes"
    for value in bench.values(FACTS_UPDATED.name)[before:]:
        assert b"Likes tea" not in value
        assert b"plumber" not in value
    gone = [each.key for each in bench.sent if each.topic == FACTS.name and each.value is None]
    assert len(set(gone)) == 1
    tasks = [each.payload["content"] for each in await bench.store.select(TASKS, tenant_id="acme")]
    assert tasks == ["Call the baker"]
    timers = json.loads(bench.rows.rows[f"{OWNER.key('acme')}/tasks"])["timers"]
    assert len(timers) == 1
    assert (following.kind, following.args["facts"]) == (ERASE_EPISODES, 2)
    counts = {each.command_id: each.result or {} for each in bench.results()}
    assert [(each["changed"], each["erased"], each["tasks"]) for each in counts.values()] == [(1, 1, 1), (0, 0, 0)]


async def test_many_facts_are_erased_by_several_commands(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_erasure, "BATCH", 2)
    talk = Talk(bench)
    for thing in ("tea", "hiking", "chess", "opera", "rowing"):
        await talk.tell(f"Likes {thing}", category="preference")
    sent = await erase(bench)
    assert [(each.kind, each.args["facts"]) for each in sent] == [
        (ERASE_FACTS, 2), (ERASE_FACTS, 4), (ERASE_FACTS, 5), (ERASE_EPISODES, 5)
    ]  # fmt: skip
    assert await bench.facts() == {}


async def test_records_of_the_session_that_come_later_have_no_effect(bench: Bench) -> None:
    talk = Talk(bench)
    said = await talk.tell("Likes hiking")
    edits = OwnerEditor(bench)
    await erase(bench)
    await talk.tell("Works at Stripe")
    assert await bench.facts() == {}
    entry = {"turn_id": "t7", "occurred_at": NOW.isoformat(), "observation": talk.says("Likes chess").to_payload()}
    kept = OF_SESSION | {"observations": [entry]}
    await bench.run(command(bench, command_id="k1", kind="episodes.keep", args=kept))
    assert verdicts(bench) == ["refused"]
    await bench.run(summarised(bench, summary("t8", "t9"), command_id="c9"))
    assert verdicts(bench) == ["refused"]
    mine = ids.episode_id(said.observation_id)
    await bench.run(command(bench, proposal(source_episode_ids=[mine]), command_id="c1"))
    assert await bench.facts() == {}
    assert await edits.refused("facts.remember", content="Likes tea", session_id="s1") == "erased"
    assert await edits.refused("episodes.add", content="Moved to Rome", session_id="s1") == "erased"
    await edits.done("facts.remember", content="Likes tea", session_id="s2")
    await Talk(bench, session_id="s2").tell("Works at Google")
    assert set(await bench.facts()) == {"Likes tea", "Works at Google"}


async def counted(bench: Bench, user: str) -> dict[str, int]:
    """Return what `memstream erase --dry-run` counts of the user's session s1."""
    session = SessionRef(user_id=user, session_id="s1")
    counts = await count_session_records(bench.store, tenant_id="acme", session=session)
    return {name: records for name, records in counts.items() if records}


async def test_only_the_session_of_this_user_is_erased(bench: Bench) -> None:
    team = Owner(scope="group", id="team")
    for user in ("ana", "bob"):  # with the same id of the session
        talk = Talk(bench, owner=team, user_id=user)
        await talk.tell("The release is on Friday", subject="release", evidence=f"{user} says Friday")
        await talk.tell(f"{user} is away", subject=user)
    assert [await counted(bench, user) for user in ("ana", "bob")] == [{"facts": 2, "episodes": 2}] * 2
    result = await OwnerEditor(bench, owner=team).done(ERASE_FACTS, **OF_SESSION | {"user_id": "ana"})
    assert (result["changed"], result["erased"]) == (1, 1)
    assert [(await counted(bench, user)).get("facts") for user in ("ana", "bob")] == [None, 2]
    facts = {content: fact for content, fact in (await bench.facts()).items() if fact.state == "active"}
    assert set(facts) == {"The release is on Friday", "bob is away"}
    assert {each.user_id for fact in facts.values() for each in fact.evidence} == {"bob"}


async def test_a_task_is_found_without_a_record_of_its_turn(bench: Bench) -> None:
    await Talk(bench).tell("Call the plumber", **TASK)
    for name in ("facts", EPISODES):  # they ended before
        stored = await bench.store.select(name, tenant_id="acme")
        await bench.store.delete(name, tenant_id="acme", ids=[each.id for each in stored])
    assert (await OwnerEditor(bench).done(ERASE_FACTS, **OF_SESSION))["tasks"] == 1


async def test_a_task_of_an_earlier_version_is_found_by_the_turns(bench: Bench) -> None:
    await fill_facts(bench)
    found = await bench.store.select(TASKS, tenant_id="acme")
    of_before = [each.payload | {"session_id": None, "user_id": None} for each in found]
    await bench.store.put(TASKS, [Point(str(each["task_id"]), each) for each in of_before])
    assert (await OwnerEditor(bench).done(ERASE_FACTS, **OF_SESSION))["tasks"] == 1
    tasks = [each.payload["content"] for each in await bench.store.select(TASKS, tenant_id="acme")]
    assert tasks == ["Call the baker"]


async def test_an_export_from_before_the_erasure_does_not_bring_facts_and_episodes_back(bench: Bench) -> None:
    await fill_facts(bench)
    lines: list[dict[str, Any]] = [
        {"line": n, "kind": kind, "record": each.payload}
        for kind, collection in (("fact", "facts"), ("episode", EPISODES))
        for n, each in enumerate(await bench.store.select(collection, tenant_id="acme"), start=1)
    ]
    await OwnerEditor(bench).done(ERASE_FACTS, **OF_SESSION)
    for name in ("facts", EPISODES):
        stored = await bench.store.select(name, tenant_id="acme")
        await bench.store.delete(name, tenant_id="acme", ids=[each.id for each in stored])
    args = {"source": "0" * 16, "exported_at": NOW.isoformat(), "records": lines}
    await bench.run(command(bench, command_id="restore/1", kind="restore.owner", args=args))
    sessions = {content: [each.session_id for each in fact.evidence] for content, fact in (await bench.facts()).items()}
    assert sessions == {"Works at Stripe": ["s2"]}
    episodes = await bench.store.select(EPISODES, tenant_id="acme")
    assert {each.payload["session_id"] for each in episodes} == {"s2"}


# ------------------------------------------------------------------------------------------------ episodes
def procedure(name: str, *sources: str, **fields: Any) -> StoredProcedure:
    defaults: dict[str, Any] = {
        "procedure_id": ids.procedure_id(KEY, name),
        "tenant_id": "acme",
        "owner": OWNER,
        "owner_key": KEY,
        "trigger": "now",
        "steps": ("Run",),
        "at": NOW,
    }
    return StoredProcedure(**defaults | fields, name=name, source_episode_ids=sources)


def archived(each: StoredEpisode) -> ArchivedText:
    kept = [
        "episode_id",
        "observation_id",
        "tenant_id",
        "owner",
        "owner_key",
        "user_id",
        "session_id",
        "turn_id",
        "content",
    ]
    fields: dict[str, Any] = {name: getattr(each, name) for name in [*kept, "content"]}
    archive_id = ids.archive_id(each.episode_id)
    return ArchivedText(archive_id=archive_id, sha256="0" * 64, archived_at=NOW, accessed_at=NOW, **fields)


@pytest.mark.parametrize("step", STEPS)
async def test_episodes_procedures_and_what_contains_them_go(tmp_path: Path, step: Step) -> None:
    bench = await open_bench(tmp_path, "consolidation")
    it = Consolidating(bench)
    mine, old, by_hand, other = await it.store_episodes(
        episode("Likes tea"),
        episode("Likes hiking", turn="t2", deleted_at=NOW),
        episode("Has a cat", turn="t3", command_id="c0"),
        episode("Has a dog", turn="t4", session_id="s2"),
    )
    await it.store_episodes(episode("Is another user's", turn="t5", user_id="u2"))
    first = ProcedureVersion(version=1, trigger="now", steps=("Go",), at=NOW, source_episode_ids=(mine.episode_id,))
    await bench.store.ensure(PROCEDURES, ARCHIVE)
    stored = (
        procedure("alone", mine.episode_id, old.episode_id),
        procedure("both", mine.episode_id, other.episode_id, version=2, earlier=(first,)),
        procedure("by hand"),
    )
    await bench.store.put(PROCEDURES, [Point(each.procedure_id, each.to_payload()) for each in stored])
    original = archived(mine)
    await bench.store.put(ARCHIVE, [Point(original.archive_id, original.to_payload())])
    await it.store_digest("Likes tea and hiking.")
    bench.rows.rows[KEY] = ProgressRow(
        unsummarised=tuple(SummaryBacklog(user_id="u1", session_id=each, turn_ids=("t1",)) for each in ("s1", "s2")),
        summaries=(
            Summary(
                user_id="u1", session_id="s1", turn_ids=("t1",), content="Spoke of tea", began_at=NOW, occurred_at=NOW,
                sensitivity="internal", trust="user", model="m", prompt="p",
            ),
        ),
    ).to_bytes()  # fmt: skip

    await bench.killed(it.command(ERASE_EPISODES, args=OF_SESSION), step)

    left = [each.payload["content"] for each in await bench.store.select(EPISODES, tenant_id="acme")]
    assert sorted(map(str, left)) == ["Has a dog", "Is another user's"]
    assert by_hand.content not in left
    assert await bench.store.select(ARCHIVE, tenant_id="acme") == []
    assert await it.digest() is None
    procedures = {
        str(each.payload["name"]): StoredProcedure.from_payload(each.payload)
        for each in await bench.store.select(PROCEDURES, tenant_id="acme")
    }
    assert set(procedures) == {"both", "by hand"}
    assert procedures["both"].source_episode_ids == (other.episode_id,)
    assert procedures["both"].earlier == ()
    assert [each.session_id for each in it.row().unsummarised] == ["s2"]
    assert it.row().summaries == ()
    assert {str(each.result) for each in bench.results()} == {str({"episodes": 3, "procedures": 1, "digest": True})}
    await it.store_digest("Has a dog.")
    await bench.run(it.command(ERASE_EPISODES, "c2", args=OF_SESSION))
    assert await it.digest() is not None, "nothing of the session was left"
    await bench.store.close()

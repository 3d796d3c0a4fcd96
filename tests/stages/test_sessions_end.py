"""A session's row ends when its last turn is old, and comes back in a new epoch: nothing is lost, nothing double."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memstream.agents.common.session_ends import TRIMS
from memstream.agents.reflector.rows import session_row_key
from memstream.memory.policies import MemoryPolicy, ObservePolicy, RowsPolicy
from memstream.schemas import ids
from memstream.schemas.command_kinds import END_SESSION, TRIM_SESSION
from memstream.schemas.errors import Transient
from memstream.schemas.row_keys import INDEX, SESSION_EPOCHS
from memstream.schemas.session_epochs import SessionEpochs
from memstream.schemas.topics import COMMANDS_SESSION, DEAD_LETTER_SUFFIX, EPISODES_RECORDED, OBSERVATIONS
from memstream.streams.log.port import Record
from tests.support.embedded_stage import Bench, open_bench
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import SESSION, TIMESTAMP, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.record_builders import OWNER
from tests.support.reflector_world import Talk, reflector
from tests.support.stage_harness import Kill, kills

DAY = 86_400
QUOTE = "very plain word"
KEY = ids.session_key(*SESSION)
OTHER = ("acme", "u2", "s1")
POLICY = MemoryPolicy(observe=ObservePolicy(patience=0.02), rows=RowsPolicy(session_days=1))
TRIMMING = MemoryPolicy(observe=ObservePolicy(patience=0.02), rows=RowsPolicy(session_days=90, trim_days=1))


class Answers:
    """Says something about every turn; away while `away` is set."""

    def __init__(self) -> None:
        self.away = False

    def __call__(self, ask: Ask) -> Answer:
        if self.away:
            raise Transient("model", "away")
        return {
            "observations": [
                {**OBSERVATION, "turn": name, "subject": "word", "content": f"Says {text}", "evidence": QUOTE}
                for name, text in ask.turns.items()
            ]
        }


def after(world: ObserverWorld, days: float, turn: str) -> Record:
    """Return a turn of another session so many days later, and let the clock show that time."""
    world.clock.seconds = days * DAY
    return world.turn("a very plain word", turn, session=OTHER, timestamp=TIMESTAMP + round(days * DAY * 1000))


async def due(world: ObserverWorld, kind: str = END_SESSION) -> list[Record]:
    """Return the commands of this kind that the stage sends itself now, as input."""
    world.committed = 1_000
    world.clock.seconds += 60
    sent = len(world.harness.on(COMMANDS_SESSION.name))
    await world.observer.end_rows(0, world.harness.rows)
    commands = world.harness.on(COMMANDS_SESSION.name)[sent:]
    return [world.again(out) for out in commands if kind.encode() in (out.value or b"")]


def index_rows(world: ObserverWorld, index: str) -> list[str]:
    """Return the session's rows in an index by time."""
    return [key for key in world.harness.rows.local if key.startswith(INDEX + index) and key.endswith(KEY)]


async def told(model: Answers | None = None, policy: MemoryPolicy = POLICY) -> ObserverWorld:
    world = ObserverWorld(model or Answers(), policy=policy)
    await world.deliver(world.turn("a very plain word one"), world.turn("a very plain word two", "t2"))
    return world


def numbers(world: ObserverWorld) -> list[tuple[int, int]]:
    return [(each.epoch, each.turn_number) for each in world.observed() if each.user_id == "u1"]


async def test_an_old_row_goes_with_its_working_set_and_comes_back_in_a_new_epoch() -> None:
    world = await told()
    assert world.projected()
    await world.deliver(after(world, 1.5, "o1"))
    [command] = await due(world)
    await world.deliver(command)
    assert KEY not in world.harness.rows.local
    assert world.projected() == []
    assert world.points.of("holdings") == {}
    assert await due(world) == []
    assert [key for key in world.harness.rows.local if key.endswith(KEY)] == [], "its index row goes, too"
    await world.deliver(world.turn("a very plain word three", "t3"))
    assert numbers(world) == [(0, 1), (0, 2), (1, 1)]
    assert world.row().row_version == 3
    assert world.row(OTHER).epoch == 0, "a session that stays keeps its numbers"
    await world.deliver(world.turn("a very plain word", "o2", session=OTHER))
    assert [(each.epoch, each.turn_number) for each in world.observed() if each.user_id == "u2"] == [(0, 1), (0, 2)]


async def test_a_session_with_a_younger_turn_stays() -> None:
    world = await told()
    await world.deliver(after(world, 1.5, "o1"))
    [command] = await due(world)
    await world.deliver(world.turn("a very plain word three", "t3"))
    await world.deliver(command)
    assert world.row().turns == 3
    assert await due(world) == []


async def test_a_session_with_a_waiting_turn_never_ends() -> None:
    model = Answers()
    world = await told(model)
    model.away = True
    await world.deliver(world.turn("a very plain word three", "t3"))
    assert world.row().waiting == 1
    await world.deliver(after(world, 30, "o1"))
    assert await due(world) == []
    await world.deliver(world.command("e", "sessions.end", args={"last_at": 0}))
    assert world.row().waiting == 1


async def test_a_command_of_anybody_ends_nothing_that_is_not_old() -> None:
    world = await told()
    await world.deliver(after(world, 0.5, "o1"))
    world.committed = 1_000
    await world.deliver(world.command("e", "sessions.end", args={"last_at": 0}))
    assert world.row().turns == 2
    await world.deliver(world.command("f", "sessions.end", args={"last_at": "x"}))
    assert len(world.harness.on(COMMANDS_SESSION.name + DEAD_LETTER_SUFFIX)) == 1


async def test_a_row_of_an_earlier_version_ends_by_its_index_row() -> None:
    world = await told()
    raw = json.loads(world.harness.rows.local[KEY])
    old = {name: value for name, value in raw.items() if name not in ("last_at", "indexed_at", "indexed")}
    world.harness.rows.local = {KEY: json.dumps(old).encode()}
    await world.observer.rediscover(0, world.harness.rows)
    assert len(index_rows(world, TRIMS)) == 1
    await world.deliver(after(world, 0.5, "o1"))
    assert await due(world) == []
    await world.deliver(after(world, 1.5, "o2"))
    [command] = await due(world)
    await world.deliver(command)
    assert KEY not in world.harness.rows.local


async def test_rows_that_may_be_older_than_what_was_sent_go_on_in_a_new_epoch() -> None:
    world = await told()
    world.harness.rows.local[SESSION_EPOCHS] = SessionEpochs(next=7, renumber_before=7).to_bytes()
    await world.deliver(world.turn("a very plain word three", "t3"), world.turn("a very plain word four", "t4"))
    assert numbers(world) == [(0, 1), (0, 2), (7, 1), (7, 2)]
    assert len(world.working()) == 4, "the working set stays"


async def ending(kill: Kill | None = None) -> ObserverWorld:
    world = await told()
    await world.deliver(after(world, 1.5, "o1"))
    [command] = await due(world)
    before = len(world.harness.steps)
    at = None if kill is None else Kill(before + kill.at, empty_folder=kill.empty_folder, from_start=kill.from_start)
    # a worker that starts anew hears the time from its next record
    records = [after(world, 1.6, "o2"), command, world.turn("a very plain word three", "t3")]
    await world.run(records, kill=at)
    return world


async def test_killed_at_every_step_of_the_end() -> None:
    """A worker that starts anew ends nothing before it has heard the time, so the session may go on in its epoch."""
    expected = await ending()
    ended, stayed = [(0, 1), (0, 2), (1, 1)], [(0, 1), (0, 2), (0, 3)]
    assert numbers(expected) == ended
    seen = []
    steps = len(expected.harness.steps) - len((await told()).harness.steps)
    for kill in kills(steps):
        world = await ending(kill)
        if world.harness.step is None:
            break
        world.harness.check_equal_bytes()
        assert numbers(world) in (ended, stayed), world.harness.step
        assert sorted(world.contents()) == sorted(expected.contents()), world.harness.step
        assert world.projected() == sorted(world.working()), world.harness.step
        await world.deliver(after(world, 4, "o3"), *await due(world))
        await world.deliver(*await due(world))
        assert (world.row().turns, world.projected()) == (0, []), world.harness.step
        seen.append((world.harness.step, numbers(world)[2]))
    assert {number for _, number in seen} == {(1, 1), (0, 3)}
    assert {"local " + SESSION_EPOCHS, "local " + KEY, "before store"} <= {step for step, _ in seen}


async def trimmed(model: Answers | None = None) -> ObserverWorld:
    world = await told(model, TRIMMING)
    await world.deliver(after(world, 1.5, "o1"))
    await world.deliver(*await due(world, TRIM_SESSION))
    return world


async def test_an_old_row_loses_its_outcome_and_nothing_else() -> None:
    world = await told(policy=TRIMMING)
    before = world.row()
    assert before.last is not None
    await world.deliver(after(world, 1.5, "o1"))
    [command] = await due(world, TRIM_SESSION)
    await world.deliver(command)
    after_it = world.row()
    own = {"last": None, "trims_at": 0, "indexed": after_it.indexed}
    assert after_it == before.model_copy(update=own)
    assert set(before.indexed) - set(after_it.indexed) == {f"trims{before.trims_at:012d}"}
    assert len(index_rows(world, TRIMS)) == 1
    assert await due(world, TRIM_SESSION) == []
    assert index_rows(world, TRIMS) == [], "the next look deletes the index row"
    assert await due(world, TRIM_SESSION) == []
    assert world.projected() == sorted(world.working())


async def test_a_trimmed_session_knows_its_turns_and_goes_on() -> None:
    world = await trimmed()
    await due(world, TRIM_SESSION)
    await world.deliver(world.turn("a very plain word one"), world.turn("a very plain word two", "t2"))
    assert numbers(world) == [(0, 1), (0, 2)]
    await world.deliver(world.turn("a very plain word three", "t3"))
    assert numbers(world) == [(0, 1), (0, 2), (0, 3)]
    assert world.row().last is not None
    assert len(index_rows(world, TRIMS)) == 1, "the row may be trimmed again"
    await world.deliver(after(world, 3.1, "o2"))
    [command] = await due(world, TRIM_SESSION)
    await world.deliver(command)
    assert world.row().last is None


async def test_a_session_whose_turns_wait_is_trimmed_and_its_turns_are_observed() -> None:
    model = Answers()
    world = await told(model, TRIMMING)
    model.away = True
    await world.deliver(world.turn("a very plain word three", "t3"))
    await world.deliver(after(world, 1.5, "o1"))
    await world.deliver(*await due(world, TRIM_SESSION))
    assert (world.row().last, world.row().waiting) == (None, 1)
    model.away = False
    await world.deliver(world.command("ask"))
    assert numbers(world) == [(0, 1), (0, 2), (0, 3)]


async def test_a_row_that_is_written_again_and_again_is_trimmed_when_it_rests() -> None:
    world = await told(policy=TRIMMING)
    for day in range(1, 5):
        world.clock.seconds = day * DAY
        at = TIMESTAMP + day * DAY * 1000
        await world.deliver(world.turn("a very plain word", f"d{day}", timestamp=at))
        assert await due(world, TRIM_SESSION) == []
        assert len(index_rows(world, TRIMS)) == 1
    await world.deliver(after(world, 5.5, "o1"))
    assert len(await due(world, TRIM_SESSION)) == 1


class NewWords(Answers):
    """Says it in other words at every call: a turn that is observed twice shows."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __call__(self, ask: Ask) -> Answer:
        self.calls += 1
        return {
            "observations": [
                {
                    **OBSERVATION,
                    "turn": name,
                    "subject": "word",
                    "content": f"Says {text}, {self.calls}",
                    "evidence": QUOTE,
                }
                for name, text in ask.turns.items()
            ]
        }


async def trimming(kill: Kill | None = None) -> ObserverWorld:
    """Where all records come again, the first command finds the row of a later turn, with effects still to come."""
    world = ObserverWorld(NewWords(), policy=TRIMMING)
    texts = ("one", "two", "three")
    one, two, three = (world.turn(f"a very plain word {text}", text) for text in texts)
    first, second = (world.command(name, TRIM_SESSION) for name in ("a", "b"))
    await world.run([one, two, first, three, second], kill=kill)
    return world


async def test_killed_at_every_step_of_the_trimming() -> None:
    expected = await trimming()
    assert len(expected.projected()) == 3
    seen = set()
    for kill in kills(len(expected.harness.steps)):
        world = await trimming(kill)
        rows = world.harness.rows
        world.harness.check_equal_bytes()
        assert (world.row().last, world.row().turns) == (None, 3), world.harness.step
        assert numbers(world) == [(0, 1), (0, 2), (0, 3)], world.harness.step
        assert world.projected() == sorted(world.working()), world.harness.step
        assert rows.changelog[KEY] == rows.local[KEY], world.harness.step
        observed = len(world.observed())
        await world.deliver(*(world.turn("a very plain word", name) for name in ("one", "two", "three")))
        assert len(world.observed()) == observed, world.harness.step
        seen.add(world.harness.step)
    assert {"local " + KEY, "changelog " + KEY, "before store", "commit"} <= seen


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench, POLICY)
    yield bench
    await bench.store.close()


async def test_the_reflector_takes_a_new_epoch_whether_or_not_its_row_ended(bench: Bench) -> None:
    talk, row = Talk(bench), session_row_key(OWNER.key("acme"), KEY)
    await talk.tell("Works at Google")
    later = Talk(bench, epoch=1)
    later.number = 10
    first, again = (later.turn(later.says("Likes tea"), number=1) for _ in range(2))
    await bench.run(first)
    await bench.run(again)
    assert set(await bench.facts()) >= {"Works at Google"}
    recorded = [json.loads(value) for value in bench.values(EPISODES_RECORDED.name)]
    assert {(each.get("epoch", 0), each["turn_number"]) for each in recorded} == {(0, 1), (1, 1)}
    assert row in bench.rows.rows


async def test_the_reflectors_row_ends_by_itself(bench: Bench) -> None:
    row = session_row_key(OWNER.key("acme"), KEY)
    at = round(bench.now.moment.timestamp() * 1000)
    talk, other = Talk(bench), Talk(bench, session_id="s2")
    await bench.run(replace(talk.turn(talk.says("Works at Google")), timestamp=at))
    assert row in bench.rows.rows
    bench.now.moment += timedelta(days=2)
    record = other.turn(other.says("Likes tea"))
    await bench.run(replace(record, timestamp=at + 2 * DAY * 1000))
    await bench.stage.end_rows(record.position.partition, bench.rows)
    assert row not in bench.rows.rows
    assert [key for key in bench.rows.rows if key.endswith(KEY)] == []
    assert any(key.endswith("acme/u1/s2") for key in bench.rows.rows)
    assert record.position.topic == OBSERVATIONS.name

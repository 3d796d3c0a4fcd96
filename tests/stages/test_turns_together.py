"""Turns of an owner that wait together are counted by one outcome, with the rows, runs and commands of one by one."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.agents.common.handled_sessions import SESSION_SLASHES
from memstream.agents.common.seen_ids import SeenIds
from memstream.agents.common.session_ends import ENDS
from memstream.agents.consolidation.rows import COUNTS, CountedTurns, ProgressRow, turns_of
from memstream.agents.consolidation.turn_group import QUEUED_MAX, RECENT_MAX
from memstream.memory.policies import ConsolidationPolicy
from memstream.schemas import ids
from memstream.schemas.errors import Poison
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.recall import RecalledRef, RecallReport
from memstream.schemas.row_keys import INDEX, INDEX_BUILT, index_key
from memstream.schemas.topics import COMMANDS, EPISODES_RECORDED, RECALLED
from memstream.streams.log.port import Record
from tests.support.consolidation_world import KEY, Consolidating, proposal
from tests.support.embedded_stage import PARTITIONS, Bench, open_bench
from tests.support.record_builders import NOW, OWNER, episode
from tests.support.stage_harness import Kill, StageHarness, kills
from tests.support.table_rows import take_over

DRANK = episode("Drank tea", turn="x1")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "links", "procedures")
    bench.now = lambda: NOW  # type: ignore[assignment]
    yield bench
    await bench.store.close()


class Waiting:
    """Consolidation in the harness. Its store has one episode, and its clock stands."""

    def __init__(self, bench: Bench, **policy: Any) -> None:
        self.it = Consolidating(bench)
        self.it.model.answer = lambda shown: {"facts": [proposal()]}
        self.harness = StageHarness(name="consolidation", make=lambda harness: self.it.build(**policy))

    async def run(self, records: list[Record], *, kill: Kill | None = None, together: bool = True) -> None:
        """Handle records that wait together. No run has looked at the episode."""
        [vector] = await self.it.bench.embedder.embed([DRANK.content], tenant_id="acme")
        point = Point(DRANK.episode_id, DRANK.to_payload(), vector, DRANK.content)
        await self.it.bench.store.put("episodes", [point])
        await self.harness.run(records, kill=kill, together=together)

    def row(self) -> ProgressRow:
        return ProgressRow.read(self.harness.rows.changelog[KEY])

    def rows(self) -> dict[str, object]:
        """Return what the durable rows say.

        The owner's last outcome is left out: it names the event that it was decided for. The turns of a session count,
        and not in which row they are. A session's row has its index row, and the owner's those that it says; `counts`
        may stand though no turn is counted."""
        rows = dict(self.harness.rows.changelog)
        sessions = {key for key in rows if key.count("/") == SESSION_SLASHES and INDEX not in key}
        assert {key.rpartition(INDEX)[2] for key in rows if key.startswith(INDEX + ENDS)} == sessions
        recent = ProgressRow.read(rows[KEY]).recent
        told: dict[str, object] = {
            key: turns_of(self.harness.rows, KEY, key)
            for key in {each.session for each in recent} | {key.removeprefix(KEY + "/") for key in sessions}
        }
        owner = ProgressRow.read(rows[KEY])
        assert {key for key in rows if key.startswith(INDEX) and key.endswith(INDEX + KEY)} == {
            index_key(kind, KEY) for kind in owner.indexed
        }
        stands = set() if owner.counters.turns else {index_key(COUNTS, KEY)}
        for key in rows.keys() - sessions - stands:
            if not key.startswith(INDEX + ENDS):
                left_out = dict.fromkeys(("last", "recent", "row_version", "indexed"))
                told[key] = {**json.loads(rows[key]), **left_out}
        return told

    def session_rows(self) -> list[str]:
        """Return the keys of sessions' rows, in the order in which they were written."""
        steps = [step.removeprefix("changelog ") for step in self.harness.steps if step.startswith("changelog ")]
        return [key for key in steps if key.count("/") == SESSION_SLASHES and not key.startswith(INDEX)]

    def sent(self) -> dict[str, bytes | None]:
        return self.harness.once(COMMANDS.name, by_command)

    def counts_of(self, session: str = "acme/u1/s1") -> list[str]:
        """Return the turns t1 … t99 that were counted of a session."""
        counted = turns_of(self.harness.rows, KEY, session).counted
        return [f"t{n}" for n in range(1, 100) if f"t{n}" in counted]


def by_command(record: OutRecord) -> str:
    return str(json.loads(record.value or b"{}")["command_id"])


def recalled(it: Consolidating, name: str) -> Record:
    report = RecallReport(
        recall_id=name,
        tenant_id="acme",
        owner=OWNER,
        at=NOW,
        items=(RecalledRef(tier="episodic", id=DRANK.episode_id, rank=0),),
    )
    return it.bench.record(RECALLED.name, KEY, report)


async def test_turns_that_wait_are_counted_by_one_outcome(bench: Bench) -> None:
    waiting = Waiting(bench)
    turns = [waiting.it.turn(1, session_id=session, turn_number=n) for n, session in ((1, "s1"), (2, "s1"), (1, "s2"))]
    await waiting.run(turns)
    assert (waiting.row().counters.turns, waiting.row().counters.episodes) == (3, 3)
    assert waiting.harness.covered == turns[1:]
    assert waiting.harness.steps.count("table") == 1
    assert (waiting.counts_of(), waiting.counts_of("acme/u1/s2")) == (["t1", "t2"], ["t3"])


async def test_a_turn_that_makes_a_run_due_is_the_last_one(bench: Bench) -> None:
    waiting = Waiting(bench)
    turns = [waiting.it.turn(2) for _ in range(6)]
    await waiting.run(turns)
    [run] = waiting.row().runs
    assert run.run_id == ids.run_id(KEY, ids.turn_cause("acme/u1/s1", "t4"))
    assert waiting.row().counters.turns == 2
    assert waiting.harness.covered == [*turns[1:4], turns[5]]
    assert waiting.it.model.tasks == ["consolidation"]


async def test_commands_and_recalls_are_decided_by_themselves(bench: Bench) -> None:
    waiting = Waiting(bench)
    it = waiting.it
    turns = [it.turn() for _ in range(3)]
    command, recall = it.command(), recalled(it, "r1")
    await waiting.run([turns[0], command, turns[1], recall, turns[2]])
    assert waiting.harness.covered == []
    assert len(waiting.row().runs) == 1
    assert waiting.row().counters.turns == 2


async def test_a_counted_turn_writes_the_owners_row_alone(bench: Bench) -> None:
    waiting = Waiting(bench)
    await waiting.run([waiting.it.turn()])
    before = len(waiting.harness.steps)
    await waiting.run([waiting.it.turn(session_id="s2", turn_number=1)])
    assert waiting.harness.steps[before:] == [
        *("decide", f"local {KEY}", f"changelog {KEY}", "table"),
        *("store", "publish", "commit"),
    ]
    assert waiting.row().row_version == 3, "an earlier version must not write this row without its turns"


async def test_turns_move_to_the_rows_of_their_sessions_when_the_owners_row_has_enough(bench: Bench) -> None:
    waiting = Waiting(bench)
    turns = [
        waiting.it.turn(session_id=f"s{n % 3}", turn_number=1 + n // 3, turn_id=f"t{n}") for n in range(RECENT_MAX + 1)
    ]
    await waiting.run(turns[:-1], together=False)
    assert waiting.session_rows() == []
    await waiting.run(turns[-1:])
    assert waiting.row().recent == ()
    assert sorted(waiting.session_rows()) == [f"{KEY}/acme/u1/s{n}" for n in range(3)]
    waiting.rows()
    for again in turns:
        await waiting.run([bench_record(waiting.it, again)])
    assert waiting.row().counters.turns == RECENT_MAX + 1
    assert waiting.counts_of("acme/u1/s0") == [f"t{n}" for n in range(RECENT_MAX + 1) if n % 3 == 0 and n]


async def test_the_index_row_of_counted_turns_stands_where_no_schedule_reads_it(bench: Bench) -> None:
    waiting, entry = Waiting(bench), index_key(COUNTS, KEY)
    turns = [waiting.it.turn(2) for _ in range(6)]
    await waiting.run(turns[:4], together=False)
    assert (waiting.row().counters.turns, waiting.row().indexed) == (0, ("follows", COUNTS))
    await waiting.run(turns[4:], together=False)
    await waiting.run([waiting.it.command()])
    assert waiting.harness.steps.count(f"changelog {entry}") == 1
    scheduled = waiting.it.build(consolidation=ConsolidationPolicy(trigger="schedule"))
    await take_over(scheduled, waiting.harness.rows, range(PARTITIONS))
    assert entry in waiting.harness.rows.local, "the owner's row says that it is there"
    waiting.harness.rows.local.pop(entry)
    mark = waiting.harness.rows.local.pop(INDEX_BUILT)
    await take_over(scheduled, waiting.harness.rows, range(PARTITIONS))
    assert mark
    assert entry in waiting.harness.rows.local, "an index that is built anew has it, too"


async def test_with_a_schedule_it_goes_with_the_run(bench: Bench) -> None:
    waiting = Waiting(bench, consolidation=ConsolidationPolicy(trigger="schedule"))
    await waiting.run([waiting.it.turn(2)])
    assert index_key(COUNTS, KEY) in waiting.harness.rows.changelog
    await waiting.run([waiting.it.command()])
    assert index_key(COUNTS, KEY) not in waiting.harness.rows.changelog


async def test_the_row_of_a_session_that_an_earlier_version_wrote_counts(bench: Bench) -> None:
    waiting = Waiting(bench)
    it = waiting.it
    old = CountedTurns(turn_number=5, gaps=((3, 3),), counted=SeenIds().add("t5"), last_at=7)
    waiting.harness.rows.local[f"{KEY}/acme/u1/s1"] = old.to_bytes()
    await waiting.run([it.turn(turn_number=n, turn_id=f"t{n}") for n in (2, 3, 5, 6)])
    assert waiting.row().counters.turns == 2
    merged = turns_of(waiting.harness.rows, KEY, "acme/u1/s1")
    assert (merged.turn_number, merged.gaps, waiting.counts_of()) == (6, (), ["t3", "t5", "t6"])


async def test_duplicates_among_them_are_passed_over(bench: Bench) -> None:
    waiting = Waiting(bench)
    first, second = waiting.it.turn(1), waiting.it.turn(1)
    again = [bench.record(EPISODES_RECORDED.name, KEY, each.value or b"") for each in (first, second)]
    await waiting.run([first, again[0], second, again[1]])
    assert (waiting.row().counters.turns, waiting.row().counters.episodes) == (2, 2)
    assert len(waiting.harness.covered) == 3


async def test_at_most_so_many_are_counted_by_one_outcome(bench: Bench) -> None:
    waiting = Waiting(bench)
    turns = [waiting.it.turn() for _ in range(QUEUED_MAX + 3)]
    await waiting.run(turns)
    assert waiting.harness.steps.count("table") == 2
    assert waiting.row().counters.turns == QUEUED_MAX + 3


async def test_the_dead_letter_of_a_run_is_of_the_turn_that_made_it_due(bench: Bench) -> None:
    waiting = Waiting(bench)
    waiting.it.model.away = Poison("refused_by_model", "no JSON")
    waiting.it.model.away_for = "consolidation"
    turns = [waiting.it.turn(2) for _ in range(4)]
    await waiting.run(turns)
    [letter] = waiting.harness.on(EPISODES_RECORDED.name + ".dlq")
    assert letter.value == turns[3].value
    assert dict(letter.headers)["kafka_dlt-original-offset"] == str(turns[3].position.offset).encode()
    assert waiting.row().runs[-1].status == "failed"


async def test_a_run_that_crashes_is_the_failure_of_its_own_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(bench)
    turns = [waiting.it.turn(2) for _ in range(4)]

    async def crash(self: object, *given: object) -> None:
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr("memstream.agents.consolidation.run.RunExecutor.run", crash)
    await waiting.harness.deliver(turns[0], ahead=turns[1:])
    assert (waiting.row().counters.turns, waiting.harness.covered) == (1, [])


def some_events(it: Consolidating, random_: random.Random) -> list[Record]:
    """Return turns of three sessions, some of them twice or late, among commands and recalls."""
    numbers = dict.fromkeys(("s1", "s2", "s3"), 0)
    records: list[Record] = []
    late: list[bytes] = []
    for n in range(random_.randint(2, 40)):
        kind = random_.choices(("turn", "late", "again", "command", "recall"), (20, 2, 3, 1, 1))[0]
        if kind == "command":
            records.append(it.command(random_.choice(("consolidate", "prune", "facts.add")), f"c{n}"))
        elif kind == "recall":
            records.append(recalled(it, f"r{n}"))
        elif kind == "again" and records:
            given = random_.choice(records)
            records.append(bench_record(it, given))
        else:
            session = random_.choice(("s1", "s1", "s2", "s3"))
            numbers[session] += 1
            turn = it.turn(
                random_.choice((0, 0, 1, 2)),
                session_id=session,
                turn_number=numbers[session],
                epoch=random_.choice((0, 0, 0, 1)),
                evicted_persistent=random_.choice((0, 0, 0, 0, 1)),
                notes_tokens=random_.choice((0, 10, 10_000)),
                fact_ids=tuple(f"f{n}/{m}" for m in range(random_.randint(0, 2))),
            )
            if kind == "late":
                late.append(turn.value or b"")
            else:
                records.append(turn)
    return [*records, *(it.bench.record(EPISODES_RECORDED.name, KEY, value) for value in late)]


def bench_record(it: Consolidating, given: Record) -> Record:
    return it.bench.record(given.position.topic, KEY, given.value or b"")


@pytest.mark.parametrize("seed", range(24))
async def test_the_rows_runs_and_commands_are_those_of_one_by_one(bench: Bench, seed: int) -> None:
    random_ = random.Random(seed)
    policy = ConsolidationPolicy(trigger=random_.choice(("capture", "capture", "schedule")))
    events = some_events(Consolidating(bench), random_)
    alone, together, killed = (Waiting(bench, consolidation=policy) for _ in range(3))
    await alone.run(events, together=False)
    await together.run(events)
    assert together.rows() == alone.rows()
    assert together.sent() == alone.sent()
    assert together.it.model.tasks == alone.it.model.tasks
    assert len(together.harness.steps) < len(alone.harness.steps) or not together.harness.covered
    kill = random_.choice(list(kills(len(together.harness.steps))))
    await killed.run(events, kill=kill, together=random_.random() < 0.7)
    assert killed.harness.step is not None
    assert killed.rows() == alone.rows(), f"{kill} at {killed.harness.step}"
    assert killed.sent() == alone.sent(), f"{kill} at {killed.harness.step}"


@pytest.mark.long
async def test_a_kill_at_any_step_counts_each_turn_once(bench: Bench) -> None:
    """Also while turns move to the rows of their sessions, and while a run is decided."""
    it = Consolidating(bench)
    sessions = ["s1" if n % 3 else "s2" for n in range(RECENT_MAX + 6)]
    turns = [
        it.turn(2 if n > RECENT_MAX else 0, session_id=session, turn_number=1 + sessions[:n].count(session))
        for n, session in enumerate(sessions)
    ]
    wanted = Waiting(bench)
    await wanted.run(turns)
    assert (len(wanted.sent()), len(wanted.session_rows()), len(wanted.row().recent)) == (1, 2, 2)
    died: set[str] = set()
    for kill in kills(len(wanted.harness.steps)):
        killed = Waiting(bench)
        await killed.run(turns, kill=kill)
        assert killed.harness.step is not None
        died.add(killed.harness.step)
        killed.harness.check_equal_bytes([COMMANDS.name], by_command)
        assert killed.rows() == wanted.rows(), f"{kill} at {killed.harness.step}"
        assert killed.sent() == wanted.sent(), f"{kill} at {killed.harness.step}"
    assert died == set(wanted.harness.steps)

"""Upkeep of an owner with more facts than one visit looks at: each visit goes on where the last one ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from memstream.agents.consolidation import plan
from memstream.agents.consolidation.steps.merge import LOOKED_AT, MergeStep
from memstream.memory.policies import HygienePolicy
from memstream.schemas.commands import Change, FactsApply
from memstream.schemas.facts import StoredFact
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, episode, stored_fact

OLD = NOW - timedelta(days=600)


class Upkeep(Consolidating):
    def reflect(self, number: int) -> Record:
        """A maintenance run, asked for after the last one."""
        return self.command(
            "hygiene", f"c{number}", args={"run": "reflect"}, issued_at=NOW + timedelta(days=2 + number)
        )

    def visit(self, number: int) -> Record:
        return self.command("hygiene", f"v{number}")

    def proposals(self, action: str) -> list[Change]:
        changes = [change for each in self.proposed() for change in FactsApply.from_payload(each.args).changes]
        return [each for each in changes if each.action == action]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Upkeep]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield Upkeep(bench)
    await bench.store.close()


def fact(content: str, number: int, *, subject: str, last: bool = False, **changes: object) -> StoredFact:
    """A fact with an id that says its place among all: `last` come after all others."""
    identity = f"{'f' if last else '0'}0000000-0000-5000-8000-{number:012x}"
    return stored_fact(content, turn=f"t{number}", changes={"fact_id": identity, "subject": subject, **changes})


async def pairs(it: Upkeep, count: int) -> dict[frozenset[str], int]:
    """Store pairs of facts that say the same, the two far from each other. Return them by their ids."""
    made: dict[frozenset[str], int] = {}
    for n in range(count):
        older = fact(f"Likes tea {n}", n, subject=f"s{n}", recorded_at=OLD)
        younger = fact(f"likes  tea {n}", count + n, subject=f"s{n}", recorded_at=OLD + timedelta(days=1 + n))
        await it.store(older, younger)
        made[frozenset((older.fact_id, younger.fact_id))] = n
    return made


def merged(it: Upkeep) -> set[frozenset[str]]:
    return {frozenset(change.source_fact_ids) for change in it.proposals("merge")}


# ------------------------------------------------------------------------------------------------ merge
@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_merge_looks_at_every_fact_in_turn_although_a_worker_dies(
    it: Upkeep, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    monkeypatch.setattr(plan, "MergeStep", partial(MergeStep, looked_at=3))
    made = await pairs(it, 5)
    seen = []
    for number in range(4):  # 10 facts, 3 in a run
        run = it.reflect(number)
        await (it.bench.killed(run, step) if number == 1 else it.bench.run(run))
        seen.append(it.row().upkeep.merged_from)
    assert len(set(seen)) == 4
    assert seen[-1] == "", "the next one begins with the first"
    assert merged(it) == set(made)


async def test_a_run_that_has_proposed_enough_goes_on_with_the_next_fact(
    it: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MergeStep", partial(MergeStep, looked_at=8))
    it.build(hygiene=HygienePolicy(at_once=1))
    made = await pairs(it, 4)
    for number in range(6):
        await it.bench.run(it.reflect(number))
        assert len(it.proposals("merge")) <= number + 1
    assert merged(it) == set(made)


async def test_a_new_duplicate_does_not_wait_for_its_turn(it: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MergeStep", partial(MergeStep, looked_at=2))
    for n in range(9):
        await it.store(fact(f"Likes tea {n}", n, subject=f"s{n}", recorded_at=OLD))
    new = fact("likes  tea 3", 99, subject="s3", last=True, recorded_at=NOW)
    await it.store(new)
    await it.bench.run(it.reflect(0))
    assert [new.fact_id in each for each in merged(it)] == [True]


async def test_a_fact_that_is_gone_is_passed_over(it: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MergeStep", partial(MergeStep, looked_at=3))
    made = await pairs(it, 5)
    await it.bench.run(it.reflect(0))
    cursor = it.row().upkeep.merged_from
    await it.bench.store.delete("facts", tenant_id="acme", ids=[cursor])
    for number in range(1, 4):
        await it.bench.run(it.reflect(number))
    assert merged(it) >= {pair for pair in made if cursor not in pair}


@pytest.mark.long
async def test_of_more_than_two_thousand_facts_the_last_are_merged_too(it: Upkeep) -> None:
    """Both have the greatest ids and are older than all others, so neither the least ids nor the youngest have them."""
    await it.store(*(fact(f"Likes tea {n}", n, subject=f"s{n}", recorded_at=OLD) for n in range(2_100)))
    pair = [
        fact("Lives in Oslo", n, subject="user", last=True, recorded_at=OLD - timedelta(days=3 - n)) for n in (1, 2)
    ]
    await it.store(*pair)
    runs = -(-2_102 // LOOKED_AT)
    for number in range(runs):
        await it.bench.run(it.reflect(number))
    assert merged(it) == {frozenset(each.fact_id for each in pair)}
    assert it.row().upkeep.merged_from == ""


# ------------------------------------------------------------------------------------------------ the janitor
@pytest.mark.parametrize(("looked_at", "visits"), [(1, 5), (2, 3), (5, 1), (100, 1)])
@pytest.mark.parametrize("killed", [False, True])
async def test_the_janitor_looks_at_every_fact_in_turn(it: Upkeep, looked_at: int, visits: int, killed: bool) -> None:
    it.build(hygiene=HygienePolicy(looked_at=looked_at))
    made = [fact(f"Likes tea {n}", n, subject="user", recorded_at=OLD) for n in range(5)]
    await it.store(*made)
    for number in range(visits):
        await (it.bench.killed(it.visit(number), "table") if killed else it.bench.run(it.visit(number)))
    assert {change.target_fact_id for change in it.proposals("prune")} == {each.fact_id for each in made}
    assert it.row().upkeep.facts_from == ""


async def test_episodes_that_stay_hide_no_others_from_the_janitor(it: Upkeep) -> None:
    it.build(hygiene=HygienePolicy(looked_at=2))
    await it.bench.store.ensure("episodes")
    lasting = [episode(f"Married {n}", turn=f"m{n}", durability="permanent", occurred_at=OLD) for n in range(5)]
    over = [episode(f"Ran {n}", turn=f"r{n}", occurred_at=OLD + timedelta(days=1)) for n in range(4)]
    await it.store_episodes(*lasting, *over)
    for number in range(5):
        await it.bench.run(it.visit(number))
    found = await it.bench.store.select("episodes", tenant_id="acme")
    assert {str(each.payload["content"]) for each in found if each.payload.get("deleted_at")} == {
        each.content for each in over
    }
    assert all("stale" in each.payload["tags"] for each in found if each.payload["durability"] == "permanent")  # type: ignore[operator]

"""Hygiene over the real engine: what the janitor deletes and flags, and the counts of a maintenance run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.agents.consolidation.recall_counts import RecallRow, recall_row_key
from memstream.agents.consolidation.rows import FollowUp, PendingRun, ProgressRow
from memstream.agents.consolidation.steps.hygiene import after_turn
from memstream.agents.consolidation.steps.maintenance import COUNTS
from memstream.memory.policies import ConsolidationPolicy, HygienePolicy
from memstream.memory.recall.links import Links, strengthen_links
from memstream.recall.record_filters import RecordSelection, episodes_filter
from memstream.schemas.commands import Change, FactsApply
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.consolidation_world import KEY, Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, OWNER, episode, stored_fact


def days(number: float) -> datetime:
    """Return a time before the bench's now."""
    return NOW + timedelta(days=1) - timedelta(days=number)


class World(Consolidating):
    async def one(self, content: str, **fields: Any) -> StoredEpisode:
        made = episode(content, turn=content, **fields)
        [dense] = await self.bench.embedder.embed([content], tenant_id="acme")
        await self.bench.store.insert("episodes", [Point(made.episode_id, made.to_payload(), dense, content)])
        return made

    async def fact(self, content: str, turn: str = "", **changes: Any) -> StoredFact:
        made = stored_fact(content, turn=turn or content, changes=changes)
        [dense] = await self.bench.embedder.embed([content], tenant_id="acme")
        await self.bench.store.insert("facts", [Point(made.fact_id, made.to_payload(), dense, content)])
        return made

    async def now(self, one: StoredEpisode) -> StoredEpisode:
        found = await self.bench.store.get("episodes", tenant_id="acme", ids=[one.episode_id])
        return StoredEpisode.from_payload(found[one.episode_id].payload)

    async def read(self) -> set[str]:
        """Return the episodes that readers see."""
        where = episodes_filter(RecordSelection("acme", OWNER))
        return {
            str(each.payload["content"])
            for each in await self.bench.store.select("episodes", tenant_id="acme", where=where)
        }

    def visit(self, command_id: str = "c1", **fields: Any) -> Record:
        return self.command("hygiene", command_id, **fields)

    def reflect(self, command_id: str = "c1", *, issued_at: datetime = NOW, **args: Any) -> Record:
        return self.command("hygiene", command_id, args={"run": "reflect"} | args, issued_at=issued_at)

    def told(self) -> dict[str, Any]:
        """Return the counts of the last result."""
        result = self.bench.results()[-1]
        assert (result.status, result.error) == ("applied", None)
        return dict(result.result or {})

    def counts(self) -> dict[str, int]:
        told = self.told()
        return {name: told[name] for name in COUNTS if name != "duration_ms" and told[name]}

    def changes_sent(self) -> list[Change]:
        return [change for each in self.proposed() for change in FactsApply.from_payload(each.args).changes]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield World(bench)
    await bench.store.close()


# ------------------------------------------------------------------------------------------------ the janitor
async def test_what_is_over_goes_out_of_every_read_and_what_is_permanent_is_flagged_once(it: World) -> None:
    over, young = await it.one("Ran", occurred_at=days(90)), await it.one("Swam", occurred_at=days(89))
    lasting = await it.one("Married", durability="permanent", occurred_at=days(180), tags=("family",))
    await it.bench.run(it.visit())
    assert await it.read() == {"Swam", "Married"}
    assert (await it.now(over)).deleted_at is not None
    assert (await it.now(lasting)).tags == ("family", "stale")
    assert await it.now(young) == young
    assert {name: it.told()[name] for name in ("culled_facts", "culled_episodes", "stale")} == {
        "culled_facts": 0,
        "culled_episodes": 1,
        "stale": 1,
    }
    before = await it.now(over)
    await it.bench.run(it.visit("c2"))
    assert await it.now(over) == before
    assert (it.told()["culled_episodes"], it.told()["stale"]) == (0, 0)


async def test_a_fact_that_is_doubtful_is_proposed_to_the_reflector_with_a_reason_that_says_so(it: World) -> None:
    doubtful = await it.fact("Likes tea", recorded_at=days(600), version=3)
    await it.fact("Likes milk", recorded_at=days(600), last_reinforced_at=days(10))
    await it.bench.run(it.visit())
    [change] = it.changes_sent()
    assert (change.action, change.target_fact_id, change.expected_version) == ("prune", doubtful.fact_id, 3)
    assert change.reason.startswith("hygiene: its effective confidence 0.0")
    assert it.told()["command_ids"] == [it.proposed()[0].command_id]


async def test_a_visit_looks_at_a_bounded_number_and_the_next_one_goes_on(it: World) -> None:
    it.build(hygiene=HygienePolicy(looked_at=3, at_once=2))
    made = [await it.fact(f"Likes {n}", recorded_at=days(600)) for n in ("tea", "milk", "cake", "nuts", "rice")]
    for n in range(1, 5):
        await it.bench.run(it.visit(f"c{n}"))
        assert len(it.changes_sent()) <= 2 * n
    assert {change.target_fact_id for change in it.changes_sent()} == {each.fact_id for each in made}


async def test_what_a_waiting_run_has_not_looked_at_is_kept(it: World) -> None:
    """Paused work is never dropped."""
    await it.one("Ran", occurred_at=days(300))
    await it.one("Swam", occurred_at=days(300), consolidated_at=days(200))
    it.bench.rows.rows[KEY] = ProgressRow(
        waiting=PendingRun(tenant_id="acme", owner=OWNER, run_id="r", status="paused")
    ).to_bytes()
    await it.bench.run(it.visit())
    assert await it.read() == {"Ran"}
    await it.bench.run(it.reflect("c2"))
    assert await it.read() == {"Ran"}


async def test_episodes_live_so_many_turns_of_their_owner(it: World) -> None:
    it.build(
        hygiene=HygienePolicy(episode_turns=4, episode_days=0), consolidation=ConsolidationPolicy(trigger="manual")
    )
    minutes = [NOW + timedelta(minutes=n) for n in range(8)]
    for n, at in enumerate(minutes):
        await it.one(f"Said {n}", recorded_at=at, occurred_at=at)
        turn = it.turn(1)
        await it.bench.run(Record(turn.position, turn.key, turn.value, timestamp=int(at.timestamp() * 1000) + 1))
    await it.bench.run(it.visit())
    assert await it.read() == {"Said 4", "Said 5", "Said 6", "Said 7"}


async def test_hygiene_that_is_off_does_nothing_whoever_asks(it: World) -> None:
    it.build(hygiene=HygienePolicy(enabled=False))
    await it.one("Ran", occurred_at=days(300))
    await it.fact("Likes tea", recorded_at=days(600))
    for n, record in enumerate((it.visit("c1"), it.reflect("c2"))):
        await it.bench.run(record)
        assert it.row().runs[n].status == "nothing"
    assert await it.read() == {"Ran"}
    assert it.changes_sent() == []


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_culls_once(it: World, step: Step) -> None:
    over = await it.one("Ran", occurred_at=days(90))
    await it.fact("Likes tea", recorded_at=days(600))
    await it.bench.killed(it.visit(), step)
    assert (await it.now(over)).deleted_at is not None
    assert len({each.command_id for each in it.proposed()}) == 1
    assert len({record.value for record in it.bench.sent}) == 2, "a result and a proposal, equal in every byte"


# ------------------------------------------------------------------------------------------------ when it comes
def test_it_comes_after_a_captured_turn_or_by_the_hour_once() -> None:
    now = NOW
    for janitor, due in (("capture", now), ("schedule", now + timedelta(hours=6))):
        policy = HygienePolicy(janitor=janitor, every_hours=6)  # type: ignore[arg-type]
        row = after_turn(ProgressRow(), at=1, run_id=lambda: "r1", policy=policy, now=now)
        row = after_turn(row, at=2, run_id=lambda: "r2", policy=policy, now=now + timedelta(hours=1))
        assert [(each.kind, each.run_id, each.not_before) for each in row.errands] == [("hygiene", "r1", due)]
    visited = ProgressRow()
    visited = visited.model_copy(update={"upkeep": visited.upkeep.model_copy(update={"visited_at": now})})
    policy = HygienePolicy(janitor="schedule", every_hours=6)
    late = after_turn(visited, at=1, run_id=lambda: "r", policy=policy, now=now + timedelta(hours=9))
    assert late.errands[0].not_before == now + timedelta(hours=9)
    for janitor in ("consolidation", "manual"):
        policy = HygienePolicy(janitor=janitor)  # type: ignore[arg-type]
        assert after_turn(ProgressRow(), at=1, run_id=lambda: "r", policy=policy, now=now).errands == ()


# ------------------------------------------------------------------------------------------------ reflect
async def test_maintenance_counts_its_six_steps(it: World) -> None:
    await it.one("Ran", occurred_at=days(50))
    recalled = await it.one("Swam", occurred_at=days(50), last_accessed_at=days(8), stability=47.25, retrieval_count=3)
    await it.fact("Works at Stripe in Berlin as an engineer", recorded_at=days(9))
    await it.fact("Works at Stripe in Berlin, as an engineer.", recorded_at=days(3))
    links = strengthen_links(Links(), [recalled.episode_id, recalled.observation_id], at=NOW, step=0.1, keep=9)
    it.bench.rows.rows[recall_row_key(KEY)] = RecallRow(links=links).to_bytes()
    await it.bench.run(it.reflect())
    assert it.counts() == {"pruned": 1, "merged": 1, "strengthened": 1, "compacted": 1}
    assert it.told()["duration_ms"] >= 0
    assert {name: n for part in it.row().runs[-1].phases for name, n in part.counts.items()}.keys() == set(COUNTS)
    assert await it.read() == {"Swam"}
    assert [change.action for change in it.changes_sent()] == ["merge", "new"]
    merge, compact = it.changes_sent()
    assert merge.content == "Works at Stripe in Berlin as an engineer"
    assert compact.source_episode_ids == (recalled.episode_id,)


async def test_a_call_that_was_made_while_a_run_went_on_gets_zeros_and_a_later_one_runs(it: World) -> None:
    await it.one("Ran", occurred_at=days(50))
    await it.bench.run(it.reflect("c1"))
    assert it.counts() == {"pruned": 1}
    ended = it.row().upkeep.reflected_at
    assert ended is not None
    later = await it.one("Swam", occurred_at=days(50))
    await it.bench.run(it.reflect("c2", issued_at=ended - timedelta(milliseconds=1)))
    assert it.counts() == {}
    assert it.told()["duration_ms"] == 0
    assert await it.now(later) == later
    await it.bench.run(it.reflect("c3", issued_at=ended + timedelta(milliseconds=1)))
    assert it.counts() == {"pruned": 1}


async def test_maintenance_is_no_visit_of_the_janitor_which_is_owed_as_before(it: World) -> None:
    owed = ProgressRow(errands=(FollowUp(kind="hygiene", run_id="r", not_before=NOW),))
    it.bench.rows.rows[KEY] = owed.to_bytes()
    await it.bench.run(it.reflect("c1"))
    await it.bench.run(it.reflect("c2"))
    await it.bench.run(it.visit("c3", args={"run": "nobodys"}))
    assert it.row().errands == owed.errands
    await it.bench.run(it.visit("c4"))
    assert it.row().errands == ()


async def test_opposites_are_never_merged_however_near(it: World) -> None:
    it.build(hygiene=HygienePolicy(merge_similarity=0.0))
    await it.fact("Likes strong black tea with milk in the morning")
    await it.fact("No longer likes strong black tea with milk in the morning")
    await it.fact("Has 2 cats")
    await it.fact("Has 3 cats")
    await it.bench.run(it.reflect())
    assert it.changes_sent() == []


async def test_below_the_bound_nothing_is_merged(it: World) -> None:
    it.build(hygiene=HygienePolicy(merge_similarity=1.0))
    await it.fact("Likes tea")
    await it.fact("Likes tea very much indeed")
    await it.bench.run(it.reflect())
    assert it.changes_sent() == []


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_in_maintenance_does_it_once(it: World, step: Step) -> None:
    await it.one("Ran", occurred_at=days(50))
    await it.fact("Likes tea", turn="a")
    await it.fact("likes  tea", turn="b")
    await it.bench.killed(it.reflect(), step)
    assert it.counts() == {"pruned": 1, "merged": 1}
    assert await it.read() == set()
    assert len({record.value for record in it.bench.sent}) == 2
    assert len(it.row().runs) == 1

"""Tiers of memory that are off, in the stages after the observer: nothing is written, and commands are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memstream.adapters.ports import Point
from memstream.agents.consolidation.rows import FollowUp, PendingRun, ProgressRow
from memstream.cli.wiring.worker import COLLECTIONS_OF
from memstream.memory.effective_policy import without_disabled_tiers
from memstream.memory.policies import HygienePolicy, MemoryPolicy, TiersPolicy
from memstream.schemas.commands import CommandResult
from memstream.schemas.episodes import EpisodesRecorded
from memstream.schemas.topics import EPISODES_RECORDED, FACTS_UPDATED, RESULTS
from tests.support.consolidation_world import KEY, Consolidating, proposal
from tests.support.embedded_stage import Bench, open_bench
from tests.support.record_builders import NOW, OWNER, episode, stored_fact
from tests.support.reflector_world import Talk, command, reflector
from tests.support.table_rows import take_over

WITHOUT_FACTS = TiersPolicy(semantic=False, digest=False)
ALONE = TiersPolicy(episodic=False, semantic=False, digest=False)


def results(bench: Bench) -> list[CommandResult]:
    return [CommandResult.read(value) for value in bench.values(RESULTS.name)]


class TestReflector:
    @pytest.fixture
    async def bench(self, tmp_path: Path) -> AsyncIterator[Bench]:
        bench = await open_bench(tmp_path, "reflector")
        yield bench
        await bench.store.close()

    async def test_without_facts_there_are_episodes_and_what_lies_there_stays(self, bench: Bench) -> None:
        bench.stage = reflector(bench)
        talk = Talk(bench)
        google = await talk.tell("Works at Google", category="profession")
        before = await bench.store.select("facts", tenant_id="acme")
        told = len(bench.values(FACTS_UPDATED.name))
        bench.stage = reflector(bench, without_disabled_tiers(MemoryPolicy(tiers=WITHOUT_FACTS)))
        await talk.tell(
            "Works at Stripe", category="profession", replaces_observation_id=google.observation_id, is_correction=True
        )
        assert await bench.store.select("facts", tenant_id="acme") == before
        assert len(bench.values(FACTS_UPDATED.name)) == told
        assert len(await bench.store.select("episodes", tenant_id="acme")) == 2
        recorded = EpisodesRecorded.read(bench.values(EPISODES_RECORDED.name)[-1])
        assert (len(recorded.episodes), recorded.fact_ids) == (1, ())

    async def test_where_the_working_set_is_alone_an_old_backlog_is_counted_and_no_more(self, bench: Bench) -> None:
        bench.stage = reflector(bench, without_disabled_tiers(MemoryPolicy(tiers=ALONE)))
        await Talk(bench).tell("Works at Google", category="profession", durability="permanent", importance=1.0)
        for collection in ("episodes", "facts"):
            assert await bench.store.select(collection, tenant_id="acme") == []
        recorded = EpisodesRecorded.read(bench.values(EPISODES_RECORDED.name)[-1])
        assert (recorded.episodes, recorded.fact_ids) == ((), ())

    @pytest.mark.parametrize(
        ("kind", "tiers", "setting"),
        [
            ("facts.apply", WITHOUT_FACTS, "memory.tiers.semantic"),
            ("episodes.record", ALONE, "memory.tiers.episodic"),
        ],
    )
    async def test_a_proposal_is_refused_with_the_setting(
        self, bench: Bench, kind: str, tiers: TiersPolicy, setting: str
    ) -> None:
        bench.stage = reflector(bench, without_disabled_tiers(MemoryPolicy(tiers=tiers)))
        await bench.run(command(bench, {"action": "new", "subject": "user", "content": "Likes tea"}, kind=kind))
        (result,) = results(bench)
        assert result.status == "refused"
        assert result.error is not None
        assert (result.error.code, result.error.message.endswith(setting)) == ("tier_off", True)
        assert await bench.store.select("facts", tenant_id="acme") == []


class TestConsolidation:
    @pytest.fixture
    async def it(self, tmp_path: Path) -> AsyncIterator[Consolidating]:
        bench = await open_bench(tmp_path, "consolidation")
        await bench.store.ensure(*COLLECTIONS_OF["consolidation"])
        yield Consolidating(bench)
        await bench.store.close()

    async def test_without_facts_no_run_is_started_and_commands_are_refused(self, it: Consolidating) -> None:
        it.build(tier="full", tiers=WITHOUT_FACTS)
        await it.episodes("Ran a marathon", "Swam across the lake")
        await it.bench.run(await it.due())
        await it.bench.run(it.turn(6))
        assert (it.row().runs, it.model.asked) == ((), [])
        for kind in ("consolidate", "prune", "digest"):
            await it.bench.run(it.command(kind, f"c-{kind}"))
        told = {result.command_id: result for result in results(it.bench)}
        for kind, tier in (("consolidate", "semantic"), ("prune", "semantic"), ("digest", "digest")):
            result = told[f"c-{kind}"]
            assert result.error is not None
            assert (result.status, result.error.code) == ("refused", "tier_off")
            assert result.error.message.endswith(f"memory.tiers.{tier}")
        assert (it.row().runs, it.model.asked, it.proposed()) == ((), [], [])

    async def test_without_facts_the_janitor_comes_by_the_hour(self, it: Consolidating) -> None:
        it.build(tiers=WITHOUT_FACTS, hygiene=HygienePolicy(episode_days=1))
        await it.episodes("Ran a marathon")
        await it.bench.run(it.turn(1))
        (errand,) = it.row().errands
        assert errand.kind == "hygiene"
        await it.bench.run(it.command("hygiene"))
        (run,) = it.row().runs
        assert (run.kind, run.status, it.row().errands) == ("hygiene", "done", ())

    async def test_without_facts_maintenance_proposes_none(self, it: Consolidating) -> None:
        """The reflector would refuse the proposals."""
        often = episode("Ran a marathon", occurred_at=NOW - timedelta(days=30), retrieval_count=3)
        alike = [stored_fact("Likes tea", turn=turn) for turn in ("t1", "t2")]
        [dense] = await it.bench.embedder.embed(["Likes tea"], tenant_id="acme")
        await it.bench.store.insert("episodes", [Point(often.episode_id, often.to_payload())])
        await it.bench.store.insert("facts", [Point(fact.fact_id, fact.to_payload(), dense) for fact in alike])
        reflect = {"run": "reflect"}
        it.build(tier="full")
        await it.bench.run(it.command("hygiene", "c1", args=reflect))
        assert {change.action for change in it.changes()} == {"merge", "new"}
        it.bench.sent.clear()
        it.build(tier="full", tiers=WITHOUT_FACTS)
        await it.bench.run(it.command("hygiene", "c2", args=reflect, issued_at=it.bench.now() + timedelta(minutes=1)))
        assert it.proposed() == []
        (result,) = results(it.bench)
        assert (result.status, (result.result or {})["merged"], (result.result or {})["compacted"]) == ("applied", 0, 0)

    async def test_what_was_owed_before_the_tier_was_off_is_owed_no_more(self, it: Consolidating) -> None:
        owed = tuple(FollowUp(kind=kind, run_id="r", not_before=NOW) for kind in ("prune", "hygiene"))
        it.bench.rows.rows[KEY] = ProgressRow(errands=owed).to_bytes()
        it.build(tiers=WITHOUT_FACTS)
        await it.bench.run(it.command("prune"))
        assert [errand.kind for errand in it.row().errands] == ["hygiene"]

    async def test_a_run_that_waits_for_its_model_is_not_asked_for_while_facts_are_off(self, it: Consolidating) -> None:
        waiting = PendingRun(tenant_id="acme", owner=OWNER, run_id="r")
        it.bench.rows.rows[KEY] = ProgressRow(waiting=waiting).to_bytes()
        for tiers, asked_for in ((WITHOUT_FACTS, 0), (TiersPolicy(), 1)):
            await take_over(it.build(tier="full", tiers=tiers), it.bench.rows)
            it.time.seconds += 60
            await it.remind()
            assert len(it.reminders()) == asked_for

    async def test_without_a_digest_all_else_goes_on(self, it: Consolidating) -> None:
        it.build(tier="full", tiers=TiersPolicy(digest=False))
        it.model.answer = lambda shown: {"facts": [proposal()]}
        await it.episodes("Ran a marathon")
        await it.bench.run(await it.due())
        (run,) = it.row().runs
        assert (run.status, [errand.kind for errand in it.row().errands]) == ("done", ["prune", "hygiene"])
        await it.bench.run(it.command("digest"))
        assert results(it.bench)[-1].status == "refused"
        assert await it.digest() is None

"""Policies of tenants and personas in the stages: what the observer keeps, and what follows from its record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.policies import MemoryPolicy, RecallPolicy
from memstream.memory.recall.ranking import congruence
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.recall.tenant_recall import TenantRecall
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.observations import AppliedPolicy, ObservedBy
from memstream.schemas.topics import COMMANDS_SESSION
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import Bench, open_bench
from tests.support.observer_world import AwayModel, ObserverWorld, item, policy
from tests.support.record_builders import NOW, OWNER
from tests.support.reflector_world import Talk, reflector

SAID = "a very plain word"


def world(model: AwayModel, personas: Mapping[str, Any], **sections: Any) -> ObserverWorld:
    return ObserverWorld(model, policy=policy(), tenants={"acme": {"personas": personas} | sections})


def answer(**fields: Any) -> list[dict[str, Any]]:
    return [item("t1", "first", category="event", importance=0.5, **fields)]


# ------------------------------------------------------------------------------------------------ the observer
async def test_a_boost_is_in_the_importance_and_in_the_cause() -> None:
    it = world(AwayModel(answer(), answer()), {"coach": {"emotionality": 0.7}})
    await it.deliver(it.turn(SAID, "t1", agent_id="coach"), it.turn(SAID, "t2", agent_id="another"))
    coached, other = it.observed()
    assert [each.importance for each in (*coached.observations, *other.observations)] == [0.6, 0.5]
    assert coached.cause.applied == AppliedPolicy(
        persona="coach",
        settings={"capture.boosted": ["event", "emotional"], "capture.emotion": True},
        boosted=(coached.observations[0].observation_id,),
    )
    assert other.cause.applied is None


async def test_an_emotion_is_kept_where_the_persona_keeps_it() -> None:
    felt = {"valence": 0.8, "arousal": 0.1}
    it = world(AwayModel(answer(emotion=felt), answer(emotion=felt)), {"coach": {"openness": 0.7}})
    await it.deliver(it.turn(SAID, "t1", agent_id="coach"), it.turn(SAID, "t2"))
    coached, other = it.observed()
    assert [each.emotion.valence if each.emotion else None for each in coached.observations] == [0.8]
    assert [each.emotion for each in other.observations] == [None]


@pytest.mark.parametrize(("valence", "importance"), [(0.0, 0.5), (-0.4, 0.6)])
async def test_what_has_an_emotion_counts_more(valence: float, importance: float) -> None:
    emotion = {"valence": valence, "arousal": 0.0}
    said = [item("t1", "first", category="knowledge", importance=0.5, emotion=emotion)]
    it = world(AwayModel(said), {"coach": {"emotionality": 0.7}})
    await it.deliver(it.turn(SAID, "t1", agent_id="coach"))
    assert [each.importance for each in it.observed()[0].observations] == [importance]


async def test_openness_takes_one_more_observation() -> None:
    most = policy().capture.max_per_message
    said = [item("t1", f"statement {n}") for n in range(most + 2)]
    it = world(AwayModel(said, said), {"coach": {"openness": 0.7}})
    await it.deliver(it.turn(SAID, "t1", agent_id="coach"), it.turn(SAID, "t2"))
    assert [len(each.observations) for each in it.observed()] == [most + 1, most]


async def test_turns_of_two_personas_are_shown_in_two_calls() -> None:
    model = AwayModel()
    it = world(model, {"coach": {"openness": 0.7}})
    model.away.add("word")
    agents = (None, "other", "coach", "coach", None)
    await it.deliver(*(it.turn(f"word {n}", f"t{n}", agent_id=agent) for n, agent in enumerate(agents)))
    model.away.clear()
    await it.deliver(it.command())
    assert model.shown == [["user: word 0", "user: word 1"], ["user: word 2", "user: word 3"], ["user: word 4"]]
    assert [each.cause.applied is not None for each in it.observed()] == [False, False, True, True, False]
    assert not it.waiting()


async def test_another_tenant_has_the_deployments() -> None:
    it = world(AwayModel(answer(), answer()), {}, capture={"boosted": ["event"]})
    await it.deliver(it.turn(SAID, "t1"), it.turn(SAID, "t1", session=("other", "u1", "s1")))
    found = {each.tenant_id: each for each in it.observed()}
    assert [found[each].observations[0].importance for each in ("acme", "other")] == [0.6, 0.5]
    assert found["other"].cause.applied is None


async def test_a_changed_policy_holds_for_the_next_turn_and_a_crash_repeats_the_old_one() -> None:
    it = world(AwayModel(answer(), answer()), {}, capture={"boosted": ["event"]})
    await it.deliver(it.turn(SAID, "t1"))
    it.policies.remove("acme")
    await it.deliver(it.turn(SAID, "t2"))
    assert [each.observations[0].importance for each in it.observed()] == [0.6, 0.5]
    it.harness.check_equal_bytes()


async def test_the_working_sets_size_is_the_tenants() -> None:
    it = world(AwayModel(), {}, working={"capacity": 2, "max_pinned": 1})
    for n in range(3):
        await it.deliver(it.command(f"c{n}", "working.add", args={"content": f"number {n}"}))
    assert len(it.working()) == 2
    assert it.harness.on(COMMANDS_SESSION.name) == []


# ------------------------------------------------------------------------------------------------ the reflector
@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    yield bench
    await bench.store.close()


async def episodes(bench: Bench) -> list[str]:
    found = await bench.store.select("episodes", tenant_id="acme")
    return sorted(StoredEpisode.from_payload(each.payload).content for each in found)


async def test_a_turn_is_reflected_by_the_settings_of_its_record(bench: Bench) -> None:
    bench.stage = reflector(bench)
    lower = ObservedBy(applied=AppliedPolicy(settings={"routing.significance": 0.3, "capture.threshold": 0.3}))
    talk = Talk(bench)
    for content, cause in (("Runs in the park", lower), ("Swims in the lake", ObservedBy())):
        said = talk.says(content, importance=0.35, category="event")
        await bench.run(talk.turn(said, cause=cause))
    assert await episodes(bench) == ["Runs in the park"]
    await bench.agree()


async def test_settings_that_do_not_fit_are_left_out_and_counted(bench: Bench) -> None:
    bench.stage = reflector(bench)
    talk = Talk(bench)
    wrong = ObservedBy(applied=AppliedPolicy(settings={"tiers.semantic": False}))
    await bench.run(talk.turn(talk.says("Works at Stripe"), cause=wrong))
    assert len(bench.events()) == 1
    assert await episodes(bench) == ["Works at Stripe"]


@pytest.mark.parametrize(("persona", "zone"), [({}, "NEAR-DUP"), ({"conscientiousness": 0.7}, "CONFLICT-CHECK")])
async def test_the_near_dup_bound_of_a_persona_decides(bench: Bench, persona: dict[str, float], zone: str) -> None:
    """Nine of eleven words are common: NEAR-DUP from 0.8, and not from 0.92."""
    policies = TenantPolicies(MemoryPolicy())
    policies.set("acme", {"personas": {"coach": persona}})
    bench.stage = reflector(bench)
    talk = Talk(bench)
    for time in ("day", "morning"):
        said = talk.says(f"Believes that good coffee needs fresh beans every single {time}", category="belief")
        await bench.run(talk.turn(said, cause=ObservedBy(applied=policies.applied("acme", "coach"))))
    decision = bench.events()[-1].decision
    assert decision is not None
    assert decision.zone == zone


# ------------------------------------------------------------------------------------------------ consolidation
async def test_a_conscientious_agent_consolidates_after_three_episodes(tmp_path: Path) -> None:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    it = Consolidating(bench)
    it.policies.set("acme", {"personas": {"coach": {"conscientiousness": 0.7}}})
    for agent in (None, None, None, "coach"):
        assert it.model.asked == []
        assert not it.bench.rows.rows or it.row().runs == ()
        await bench.run(it.turn(1, agent_id=agent))
    assert it.row().runs[-1].kind == "consolidate"
    await bench.store.close()


# ------------------------------------------------------------------------------------------------ reads
async def test_a_read_has_the_tenants_ranking(bench: Bench) -> None:
    bench.stage = reflector(bench)
    for n, valence in enumerate((-0.9, 0.9)):
        talk = Talk(bench, session_id=f"s{n}")
        said = talk.says(f"Went home early, number {n}", category="event", emotion={"valence": valence, "arousal": 0.5})
        await bench.run(talk.turn(said))
    policies = TenantPolicies(MemoryPolicy())
    recall = TenantRecall(
        policies=policies,
        make=lambda policy: RecallService(store=bench.store, embedder=bench.embedder, policy=policy.recall),
    )

    async def first(mood: float) -> str:
        request = RecallRequest(
            tenant_id="acme", owner=OWNER, cue="went home early", tiers=("episodic",), mood=mood, limit=1
        )
        (found,) = (await recall.recall(request, now=NOW)).items
        return found.item.content

    assert await first(-0.9) == await first(0.9)
    policies.set("acme", {"recall": {"profile": "composite"}})
    assert (await first(-0.9), await first(0.9)) == ("Went home early, number 0", "Went home early, number 1")
    policies.remove("acme")
    assert await first(-0.9) == await first(0.9)
    assert congruence(-0.9, -0.9) == 1.0
    assert RecallPolicy().profile == "memstream"

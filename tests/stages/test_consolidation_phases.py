"""The phases of a run and its follow-ups: pending facts, prune, digest; each works when another one fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.memory.policies import ConsolidationPolicy, DigestPolicy, PrunePolicy
from memstream.schemas import ids
from memstream.schemas.digests import Basis
from memstream.schemas.errors import OverBudget, Poison, Transient
from memstream.schemas.facts import WAITS_FOR, StoredFact
from memstream.schemas.procedures import StoredProcedure
from memstream.schemas.topics import COMMANDS
from memstream.streams.engine.crash_points import Step
from tests.support.consolidation_world import KEY, Consolidating, proposal
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, episode, stored_fact
from tests.support.table_rows import take_over


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Consolidating]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield Consolidating(bench)
    await bench.store.close()


def pending(content: str, waits_for: StoredFact | None, **changes: Any) -> StoredFact:
    metadata = {WAITS_FOR: waits_for.fact_id} if waits_for else {}
    return stored_fact(
        content, turn=" ".join(content.split()), changes={"state": "pending", "metadata": metadata, **changes}
    )


# ------------------------------------------------------------------------------------------------ pending facts
async def test_what_settles_by_itself_asks_nobody(it: Consolidating) -> None:
    closed = stored_fact("Works at Google", changes={"state": "superseded"})
    stands = stored_fact("Likes tea")
    free = pending("Works at Stripe", closed)
    same = pending("likes  TEA", stands, content_hash=stands.content_hash)
    early = pending("Moves to Oslo", None, valid_from=NOW + timedelta(days=90))
    await it.store(closed, stands, free, same, early)
    await it.bench.run(it.command())
    assert it.model.asked == []
    changes = {each.target_fact_id: each for each in it.changes()}
    assert {each.action for each in changes.values()} == {"judge"}
    assert {fact_id: each.judgement for fact_id, each in changes.items()} == {
        free.fact_id: "coexist",
        same.fact_id: "duplicate",
    }
    assert changes[same.fact_id].source_fact_ids == (stands.fact_id,)
    (run,) = it.row().runs
    assert (run.status, [(part.name, part.status) for part in run.phases]) == (
        "done",
        [("light", "done"), ("standard", "nothing"), ("deep", "nothing")],
    )
    assert run.phases[0].counts == {"settled": 2}


# ------------------------------------------------------------------------------------------------ each by itself
def runs_in_a_park(it: Consolidating) -> tuple[str, ...]:
    """Return episodes of which insights are drawn, after a model's proposal."""
    it.model.answer = lambda shown: {"facts": [proposal()]}
    return tuple(f"Went running in the park on day {n}" for n in range(5))


async def test_a_part_that_fails_leaves_the_others_as_they_are(it: Consolidating) -> None:
    made = await it.episodes(*runs_in_a_park(it))
    it.model.away, it.model.away_for = Poison("refused_by_model", "no JSON, also after one repair"), "insights"
    await it.bench.run(it.command())
    assert [each.action for each in it.changes()] == ["new"]
    assert await it.consolidated() == len(made)
    run = it.row().runs[-1]
    assert (run.status, [(part.name, part.status) for part in run.phases]) == (
        "done",
        [("light", "nothing"), ("standard", "done"), ("deep", "failed")],
    )
    assert it.bench.results()[-1].status == "applied"
    assert [each.topic for each in it.bench.sent if each.topic.endswith(".dlq")] == [f"{COMMANDS.name}.dlq"]


async def test_a_part_that_waits_keeps_what_was_done_and_comes_again(it: Consolidating) -> None:
    made = await it.episodes(*runs_in_a_park(it))
    it.model.away, it.model.away_for = Transient("model", "503"), "insights"
    await it.bench.run(it.command())
    assert await it.consolidated() == len(made)
    assert (it.row().runs[-1].status, it.row().counters.turns) == ("deferred", 0)
    it.model.away = None
    it.bench.calls._breakers.clear()
    it.time.seconds += 0.1
    await it.remind()
    (reminder,) = it.reminders()
    await it.bench.run(it.command(command_id=reminder.command_id))
    assert [each.action for each in it.changes()] == ["new"]
    assert it.model.tasks == ["consolidation", "insights", "procedures"]
    assert it.row().waiting is None


async def test_a_budget_that_is_spent_pauses_and_is_asked_again_when_it_is_free(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.away = OverBudget("today's tokens are spent", retry_after=100.0, remedy="tomorrow")
    await it.bench.run(await it.due())
    waiting = it.row().waiting
    assert waiting is not None
    assert (waiting.status, it.row().counters.turns, it.model.asked) == ("paused", 4, [])
    for seconds, due in ((50.0, 0), (110.0, 1)):
        it.time.seconds = seconds
        await it.remind()
        assert len(it.reminders()) == due
    await it.bench.run(it.command())
    error = it.bench.results()[-1].error
    assert error is not None
    assert (error.code, error.message) == ("paused_by_tier", "today's tokens are spent: tomorrow")


async def test_a_paused_run_does_what_costs_nothing_every_few_turns(it: Consolidating) -> None:
    it.model.costs_money = True
    it.build()
    await it.bench.run(await it.due())
    assert [run.status for run in it.row().runs] == ["paused"]
    closed = stored_fact("Works at Google", changes={"state": "superseded"})
    await it.store(closed, pending("Works at Stripe", closed))
    for _ in range(4):
        await it.bench.run(it.turn(0))
    assert [each.action for each in it.changes()] == ["judge"]
    assert [run.status for run in it.row().runs] == ["paused", "paused"]


# ------------------------------------------------------------------------------------------------ a schedule
async def test_a_schedule_asks_for_runs_where_something_came(it: Consolidating) -> None:
    it.build(consolidation=ConsolidationPolicy(trigger="schedule", every=600))
    await it.remind()
    assert it.reminders() == []
    for _ in range(9):
        await it.bench.run(it.turn(1))
    assert it.model.asked == []
    it.time.seconds = 590
    await it.remind()
    assert it.reminders() == []
    it.time.seconds = 601
    await it.remind()
    (reminder,) = it.reminders()
    other = it.build(consolidation=ConsolidationPolicy(trigger="schedule", every=600))
    await take_over(other, it.bench.rows)  # another worker has the partition now
    it.time.seconds = 1_300
    await it.remind()
    assert {each.command_id for each in it.reminders()} == {reminder.command_id}
    await it.bench.run(it.command(command_id=reminder.command_id))
    await it.bench.run(it.command(command_id=reminder.command_id))
    assert len(it.row().runs) == 1
    sent = len(it.reminders())
    it.time.seconds = 9_000
    await it.remind()
    assert len(it.reminders()) == sent  # nothing came since


# ------------------------------------------------------------------------------------------------ prune
async def test_prune_proposes_removals_and_merges(it: Consolidating) -> None:
    facts = await it.facts(*(f"Collects stamps of series {n}" for n in range(18)), "Has a cat", "Has a cat named Miso")
    shown = sorted(facts, key=lambda fact: (fact.subject, fact.recorded_at, fact.fact_id))
    at = {fact.content: f"f{n}" for n, fact in enumerate(shown, start=1)}
    it.model.answers["prune"] = lambda _: {
        "removals": [
            {"fact_id": at["Has a cat"], "reason": "redundant: said by another"},
            {"fact_id": at["Collects stamps of series 2"], "reason": "I do not like it"},
            {"fact_id": "f99", "reason": "noise"},
        ],
        "merges": [
            {
                "source_fact_ids": [at["Collects stamps of series 0"], at["Collects stamps of series 1"]],
                "merged_content": "Collects stamps",
                "reason": "one statement",
            }
        ],
    }
    await it.bench.run(it.command("prune", "p0"))
    assert it.model.asked == []  # nothing is known to have changed
    for n in range(5):
        await it.bench.run(it.turn(0, fact_ids=(f"f{n}",)))
    await it.bench.run(it.command("prune", "p1"))
    merge, removal = it.changes()
    by_content = {fact.content: fact for fact in facts}
    assert (merge.action, merge.content) == ("merge", "Collects stamps")
    assert merge.source_fact_ids == tuple(by_content[f"Collects stamps of series {n}"].fact_id for n in (0, 1))
    assert (removal.action, removal.target_fact_id) == ("prune", by_content["Has a cat"].fact_id)
    assert it.row().runs[-1].dropped == {"protected": 1, "unknown_fact": 1}
    assert it.row().changed_facts == 2  # what was proposed
    await it.bench.run(it.command("prune", "p2"))
    assert it.model.tasks == ["prune"]


async def test_prune_goes_on_where_it_stopped(it: Consolidating) -> None:
    await it.facts(*(f"Owns the book {n}" for n in range(25)))
    it.model.answers["prune"] = lambda shown: {"removals": [], "merges": []}
    it.build(prune=PrunePolicy(max_facts=10))
    for n in range(4):
        await it.bench.run(it.command("prune", f"p{n}", args={"force": True}))
    sizes = [shown.count("[f") for shown in it.model.asked]
    assert sizes == [10, 10, 5, 10]
    lines = [set(shown.split("\n")[2:]) for shown in it.model.asked]
    texts = [{line.partition("] ")[2] for line in each} for each in lines]
    assert len(texts[0] | texts[1] | texts[2]) == 25
    assert texts[3] == texts[0]


# ------------------------------------------------------------------------------------------------ digest
async def test_a_digest_is_made_anew_only_when_what_it_stands_on_has_changed(it: Consolidating) -> None:
    await it.facts("Works at Stripe")
    await it.store(stored_fact("Has a secret", turn="t9", changes={"sensitivity": "secret"}))
    answers = iter(["Works at Stripe.", "", "Likes tea now.", "By force."])
    it.model.answers["digest"] = lambda shown: {"text": next(answers)}
    await it.bench.run(it.command("digest", "d1"))
    await it.bench.run(it.command("digest", "d2"))
    digest = await it.digest()
    assert digest is not None
    assert (digest.text, digest.digest_id) == ("Works at Stripe.", ids.digest_id(KEY))
    assert digest.basis == Basis(facts=2, reinforcements=0, episodes=0, newest=NOW)
    assert len(it.model.asked) == 1
    assert "secret" not in it.model.asked[0]
    await it.store(stored_fact("Likes tea", turn="t2"))
    await it.bench.run(it.command("digest", "d3"))  # the model says nothing
    assert await it.digest() == digest
    assert it.row().runs[-1].dropped == {"empty": 1}
    await it.bench.run(it.command("digest", "d4"))
    assert "The digest as it was: Works at Stripe." in it.model.asked[-1]
    await it.bench.run(it.command("digest", "d5", args={"force": True}))
    digest = await it.digest()
    assert digest is not None
    assert digest.text == "By force."
    assert len(it.model.asked) == 4


async def test_what_is_no_longer_believed_is_in_no_digest(it: Consolidating) -> None:
    await it.store(
        stored_fact("Works at Google", turn="x0", changes={"state": "superseded"}),
        stored_fact("Works at Stripe", turn="x1"),
    )
    made = await it.episodes("Works at Google", "Works at Stripe", "Sold the house")
    facts = await it.bench.facts()
    assert facts["Works at Google"].evidence[0].observation_id == made[0].observation_id
    it.model.answers["digest"] = lambda shown: {"text": "Works at Stripe."}
    await it.bench.run(it.command("digest"))
    assert "Google" not in it.model.asked[0]
    assert it.model.asked[0].count("[e") == 2


async def test_a_digest_of_nothing_is_not_asked_for(it: Consolidating) -> None:
    await it.bench.run(it.command("digest", args={"force": True}))
    assert (it.model.asked, await it.digest()) == ([], None)
    assert it.bench.results()[-1].status == "applied"


async def test_a_digest_has_at_most_four_hundred_tokens(it: Consolidating) -> None:
    await it.facts("Works at Stripe")
    it.model.answers["digest"] = lambda shown: {"text": "Works at Stripe and nowhere else. " * 100}
    it.build(digest=DigestPolicy(tokens=20))
    await it.bench.run(it.command("digest"))
    digest = await it.digest()
    assert digest is not None
    assert digest.text == "Works at Stripe and nowhere else. Works at Stripe and nowhere else."


# ------------------------------------------------------------------------------------------------ after a run
async def test_prune_hygiene_and_digest_follow_a_run_one_after_the_other(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.answers["digest"] = lambda shown: {"text": "Drank tea."}
    it.build(consolidation=ConsolidationPolicy(after_run=60))
    await it.bench.run(it.command())
    run = it.row().runs[-1]
    kinds = [errand.kind for errand in it.row().errands]
    assert [kind for kind in kinds if kind != "hygiene"] == ["prune", "digest"]
    for n, kind in enumerate(kinds, start=1):
        it.time.seconds += 30
        await it.remind()
        assert it.reminders(kind) == []
        it.time.seconds += 40
        await it.remind()
        (reminder,) = it.reminders(kind)
        assert reminder.command_id == ids.errand_command_id(run.run_id, kind, 0)
        await it.bench.run(it.command(kind, reminder.command_id))
        assert len(it.row().errands) == len(kinds) - n
    assert [each.kind for each in it.row().runs] == ["consolidate", *kinds]
    assert (await it.digest()) is not None
    it.time.seconds += 1_000
    sent = len(it.bench.sent)
    await it.remind()
    assert len(it.bench.sent) == sent


async def test_a_digest_whose_model_is_away_is_tried_again(it: Consolidating) -> None:
    await it.facts("Works at Stripe")
    it.model.away = Transient("model", "503")
    await it.bench.run(it.command("digest"))
    assert it.bench.results()[-1].status == "failed"
    it.model.away = None
    it.bench.calls._breakers.clear()
    it.model.answers["digest"] = lambda shown: {"text": "Works at Stripe."}
    it.time.seconds += 0.1
    await it.remind()
    (reminder,) = it.reminders("digest")
    await it.bench.run(it.command("digest", reminder.command_id))
    assert (await it.digest()) is not None
    assert it.row().errands == ()


@pytest.mark.parametrize("step", ["table", "store", "publish"])
async def test_killed_and_handed_in_again_a_digest_is_the_one_that_was_decided(it: Consolidating, step: Step) -> None:
    await it.facts("Works at Stripe")
    answers = iter(["First.", "Second."])
    it.model.answers["digest"] = lambda shown: {"text": next(answers)}
    await it.bench.killed(it.command("digest"), step)
    digest = await it.digest()
    assert digest is not None
    assert digest.text == "First."
    assert len({each.value for each in it.bench.sent}) == 1


# ------------------------------------------------------------------------------------------------ episodes together
async def test_an_insight_is_drawn_from_a_cluster_once(it: Consolidating, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await it.episodes(*(f"Went running in the park on day {n}" for n in range(5)), "Bought a boat")
    it.model.answers["insights"] = lambda shown: {
        "insights": [
            {"content": "Runs regularly", "episode_ids": ["e1", "[e2]", "e3"], "confidence": 0.7},
            {"content": "Likes parks", "episode_ids": ["e9"], "confidence": 0.7},
            {"content": "Owns shoes", "episode_ids": ["e1", "e1"], "confidence": 0.7},
        ]
    }
    it.model.answers["procedures"] = lambda shown: {"procedures": []}
    asked: list[str] = []
    get = it.bench.store.get

    async def counted(collection: str, *, ids: Sequence[str], **given: Any) -> Any:
        asked.append(collection)
        return await get(collection, ids=ids, **given)

    monkeypatch.setattr(it.bench.store, "get", counted)
    await it.bench.run(it.command())
    assert "procedures" not in asked, "there is none to look for"
    shown = it.model.asked[it.model.tasks.index("insights")]
    assert (shown.count("[e"), "boat" in shown) == (5, False)
    (change,) = it.changes()
    assert (change.action, change.content, change.category, change.confidence) == (
        "new",
        "Runs regularly",
        "pattern",
        0.7,
    )
    assert set(change.source_episode_ids) <= {each.episode_id for each in made[:5]}
    assert len(change.source_episode_ids) == 3
    assert it.row().runs[-1].dropped == {"no_source": 2}
    await it.bench.run(it.command(command_id="c2"))
    assert it.model.tasks == ["consolidation", "insights", "procedures"]


async def test_procedures_are_kept_by_name(it: Consolidating) -> None:
    told = "Made the weekly report on Friday: asked for the figures, wrote it and sent it"
    made = await it.episodes(*(f"{told}, week {n}" for n in range(5)))
    steps = iter([["Ask for figures", "Write it"], ["Ask for figures", "Write it", "Send it"]])
    it.model.answers["insights"] = lambda shown: {"insights": []}
    it.model.answers["procedures"] = lambda shown: {
        "procedures": [
            {
                "name": "Weekly  report",
                "trigger": "On Fridays",
                "steps": list(next(steps)),
                "episode_ids": ["e1", "[e2]"],
            },
            {"name": "Nothing to do", "trigger": "Never", "steps": [], "episode_ids": ["e1"]},
        ]
    }
    await it.bench.run(it.command())
    await it.episodes(*(f"{told}, week {n}" for n in range(6)))
    await it.bench.run(it.command(command_id="c2"))
    (found,) = await it.bench.store.select("procedures", tenant_id="acme")
    procedure = StoredProcedure.from_payload(found.payload)
    assert (procedure.name, len(procedure.steps), procedure.owner_key) == ("Weekly report", 3, KEY)
    sources = (procedure.earlier[0].source_episode_ids, procedure.source_episode_ids)
    assert [len(set(each)) for each in sources] == [2, 2], "each version names the episodes of its answer"
    assert set(sources[0]) < {each.episode_id for each in made}
    assert it.row().runs[-1].phases[-1].counts["procedures"] == 1
    assert "Known procedures: Weekly report" in it.model.asked[-1]


async def test_a_procedure_needs_an_episode_that_tells_it(it: Consolidating) -> None:
    told = "Deployed the shop: ran the tests, tagged the commit and told Tom"
    await it.episodes(*(f"{told}, time {n}" for n in range(5)))
    it.model.answers["insights"] = lambda shown: {"insights": []}
    steps = ["Run the tests", "Tag the commit", "Tell Tom"]
    it.model.answers["procedures"] = lambda shown: {
        "procedures": [
            {"name": "Deploy the shop", "trigger": "For a deployment", "steps": steps, "episode_ids": ["e9"]},
            {"name": "Shop", "trigger": "For the shop", "steps": [*steps, "Brew coffee"], "episode_ids": ["e1"]},
            {"name": "Gym", "trigger": "In the morning", "steps": ["Lift weights"], "episode_ids": ["e2"]},
            {"name": "Deploy", "trigger": "The shop is deployed", "steps": steps, "episode_ids": ["e1", "e77"]},
        ]
    }
    await it.bench.run(it.command())
    (found,) = await it.bench.store.select("procedures", tenant_id="acme")
    assert found.payload["name"] == "Deploy"
    assert it.row().runs[-1].dropped == {"no_source": 1, "weak_evidence": 2}


async def test_what_is_recalled_again_and_again_becomes_a_fact_once(it: Consolidating) -> None:
    often = episode("Sold the house", turn="t1", retrieval_count=3, occurred_at=NOW - timedelta(days=9))
    believed = episode("Works at Stripe", turn="t2", retrieval_count=9, occurred_at=NOW - timedelta(days=9))
    for each in (often, believed):
        await it.bench.store.insert("episodes", [Point(each.episode_id, each.to_payload(), [1.0] + [0.0] * 2047)])
    (fact,) = await it.store(stored_fact("Works at Stripe", turn="t2"))
    assert fact.evidence[0].observation_id == believed.observation_id
    await it.bench.run(it.command())
    assert [(each.content, each.source_episode_ids) for each in it.changes()] == [
        ("Sold the house", (often.episode_id,))
    ]

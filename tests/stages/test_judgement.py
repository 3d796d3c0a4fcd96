"""Pending facts of a turn are judged soon: the list, the question, its answers, and what happens without an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from memstream.agents.common.model_call import CallStopped
from memstream.agents.consolidation.judgement import JUDGED_SOON_MAX, LATE, MARKS_KEPT, with_listed, with_stopped
from memstream.agents.consolidation.rows import JudgementList, ProgressRow
from memstream.memory.policies import TiersPolicy
from memstream.memory.policies.budget import TIERS, Ceiling, Tier
from memstream.schemas import ids
from memstream.schemas.errors import OverBudget, Poison, Transient
from memstream.schemas.facts import UNCONFIRMED, WAITS_FOR, Evidence, StoredFact
from memstream.schemas.row_keys import index_key
from memstream.schemas.topics import COMMANDS
from memstream.streams.engine.crash_points import Step
from tests.support.consolidation_world import KEY
from tests.support.embedded_stage import PARTITIONS, open_bench
from tests.support.judgements import JudgeWorld, decided
from tests.support.record_builders import NOW, OWNER, stored_fact
from tests.support.table_rows import take_over

NOTHING_TO_SPEND = Ceiling(0, None, "pause")


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[JudgeWorld]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield JudgeWorld(bench)
    await bench.store.close()


def pending(content: str, waits_for: StoredFact | None, **changes: Any) -> StoredFact:
    metadata = {WAITS_FOR: waits_for.fact_id} if waits_for else {}
    return stored_fact(
        content, turn=" ".join(content.split()), changes={"state": "pending", "metadata": metadata, **changes}
    )


async def listed(it: JudgeWorld, *facts: StoredFact) -> None:
    """Deliver a turn with these pending facts."""
    named = tuple(each.fact_id for each in facts)
    await it.bench.run(it.turn(0, fact_ids=named, pending_fact_ids=named))


def of_list(it: JudgeWorld) -> JudgementList:
    judging = it.row().judging
    assert judging is not None
    return judging


# ------------------------------------------------------------------------------------------------ from turn to verdict
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("costs_money", [True, False])
async def test_the_pending_facts_of_a_turn_are_judged_in_every_tier(
    it: JudgeWorld, tier: Tier, costs_money: bool
) -> None:
    it.model.costs_money = costs_money
    it.build(tier=tier)
    (waiting,) = await it.wait(1)
    it.model.answers["judge"] = lambda shown: decided(shown, "supersede")
    await listed(it, waiting)
    assert [each.fact_id for each in of_list(it).facts] == [waiting.fact_id]
    assert it.model.asked == []
    assert await it.questions() == [["Likes tea of sort 0"]]
    (change,) = it.changes()
    assert (change.action, change.target_fact_id, change.judgement) == ("judge", waiting.fact_id, "supersede")
    (known,) = (each for each in (await it.bench.facts()).values() if each.state == "active")
    assert (change.source_fact_ids, change.compared_hash) == ((known.fact_id,), known.content_hash)
    assert it.row().judging is None
    assert len(it.row().judged) == 1
    assert it.row().runs == ()
    assert it.model.tasks == ["judge"]


async def test_a_question_shows_both_statements_with_their_words_and_times(it: JudgeWorld) -> None:
    said = Evidence(
        turn_id="t9", session_id="s1", observation_id="o9", occurred_at=NOW + timedelta(hours=3), quote="tea, please"
    )
    jazz, tea = await it.facts("Likes jazz", "Likes tea")
    await it.store(tea.model_copy(update={"evidence": (*tea.evidence, said)}))
    rock = pending("Likes rock", jazz, valid_from=NOW, valid_from_told=True)
    milk = pending(
        "Likes milk\n[p9]", tea, evidence=(said.model_copy(update={"quote": "milk\nnew: " + "it is " * 80}),)
    )
    await it.store(rock, milk)
    it.model.answers["judge"] = lambda shown: {
        "judgements": [
            {"pair_id": "[P1]", "decision": "supersede", "reason": "a newer taste"},
            {"pair_id": "p2", "decision": "coexist", "reason": None},
            {"pair_id": "p2", "decision": "duplicate", "reason": "again"},
            {"pair_id": "p7", "decision": "coexist", "reason": ""},
            {"pair_id": "p1", "decision": "perhaps", "reason": ""},
        ]
    }
    with structlog.testing.capture_logs() as logs:
        await listed(it, rock, milk)
        await it.questions()
    assert it.model.asked == [
        "Pairs:\n## user\n[p1]\nknown: Likes jazz\n  said 2026-11-20 10:01: Likes jazz\n"
        "new: Likes rock\n  said 2026-11-20 10:01, true from 2026-11-20: Likes rock\n"
        "[p2]\nknown: Likes tea\n  said 2026-11-20 13:00: tea, please\n"
        f"new: Likes milk [p9]\n  said 2026-11-20 13:00: milk new: {'it is ' * 48}it…"
    ]
    assert [(each.target_fact_id, each.judgement, each.reason) for each in it.changes()] == [
        (rock.fact_id, "supersede", "a newer taste"),
        (milk.fact_id, "coexist", ""),
    ]
    (run,) = (each for each in logs if each["event"] == "consolidation_run")
    assert (run["kind"], run["status"], run["dropped"]) == ("judge", "done", {"unknown_pair": 2, "invalid": 1})


async def test_turns_that_are_counted_together_make_one_list(it: JudgeWorld) -> None:
    waiting = await it.wait(3)
    await it.bench.run_together([it.turn(0, pending_fact_ids=(each.fact_id,)) for each in (*waiting, waiting[0])])
    assert [each.fact_id for each in of_list(it).facts] == [each.fact_id for each in waiting]
    assert len(await it.questions()) == 1


async def test_the_first_listed_are_asked_about_first(it: JudgeWorld) -> None:
    waiting = await it.wait(25)
    later, earlier = waiting[:12], waiting[12:]
    await listed(it, *earlier)
    await listed(it, *later)
    shown = await it.questions()
    assert [len(each) for each in shown] == [20, 5]
    assert {each.content for each in earlier} < set(shown[0])


async def test_secret_pairs_have_their_own_question(it: JudgeWorld) -> None:
    plain = await it.wait(2)
    (secret,) = await it.wait(1, "Likes", sensitivity="secret")
    it.model.answers["judge"] = lambda shown: decided(shown, "coexist")
    await listed(it, plain[0], secret, plain[1])
    assert sorted(await it.questions()) == [["Likes 0"], [each.content for each in plain]]
    reasons = {each.target_fact_id: each.reason for each in it.changes()}
    assert reasons[secret.fact_id] == "judged by the model"


async def test_more_than_the_list_holds_is_counted(it: JudgeWorld) -> None:
    waiting = await it.wait(JUDGED_SOON_MAX + 7)
    await listed(it, *waiting)
    assert len(of_list(it).facts) == JUDGED_SOON_MAX
    counted = it.bench.metrics._metrics.counted.labels("consolidation", "judgement_overflow")
    assert [sample.value for sample in counted.collect()[0].samples if sample.name.endswith("_total")] == [7]


# ------------------------------------------------------------------------------------------------ without a question
async def test_what_needs_no_model_leaves_the_list_without_a_question(it: JudgeWorld) -> None:
    tea, closed = await it.store(
        stored_fact("Likes tea"), stored_fact("Works at Google", turn="t0", changes={"state": "superseded"})
    )
    low = {"trust": "assistant"}
    home = stored_fact("Lives in Oslo", turn="t3")
    facts = {
        "settled": pending("Likes milk", tea, state="active"),
        "unconfirmed": pending("Likes rum", tea, metadata={WAITS_FOR: tea.fact_id, UNCONFIRMED: True}),
        "of lower trust": pending("Lives in Bergen", home, **low),
        "not begun": pending("Likes cocoa", tea, valid_from=NOW + timedelta(days=90)),
        "without a model": pending("Works at Stripe", closed),
    }
    gone = pending("Was erased", tea)
    await it.store(home, *facts.values())
    await listed(it, gone, *facts.values())
    assert await it.questions() == []
    assert [(each.target_fact_id, each.judgement) for each in it.changes()] == [
        (facts["without a model"].fact_id, "coexist")
    ]
    assert it.row().judging is None


async def test_a_pair_is_asked_about_once_until_its_neighbour_changes(it: JudgeWorld) -> None:
    (waiting,) = await it.wait(1)
    for _ in range(2):
        await listed(it, waiting)
        await it.questions()
    assert len(it.model.asked) == 1
    await it.store(
        stored_fact("Likes tea", turn="known", changes={"content": "Likes green tea", "content_hash": "0" * 64})
    )
    await listed(it, waiting)
    assert len(await it.questions()) == 1


async def test_marks_have_a_limit(it: JudgeWorld) -> None:
    for part in ("a", "b"):
        await listed(it, *await it.wait(JUDGED_SOON_MAX, part))
        await it.questions()
    assert len(it.row().judged) == MARKS_KEPT


# ------------------------------------------------------------------------------------------------ no answer
async def test_a_model_that_is_away_is_asked_again_after_ever_longer_pauses(it: JudgeWorld) -> None:
    (waiting,) = await it.wait(1)
    it.model.away = Transient("model", "503")
    it.stage._pause = 60.0
    await listed(it, waiting)
    for seconds in (0, 70, 130):
        it.bench.calls._breakers.clear()
        it.time.seconds += seconds
        await it.questions()
        assert await it.reminded() == []
    assert (of_list(it).failures, of_list(it).attempt) == (3, 3)
    assert "503" in of_list(it).why
    it.model.away = None
    it.bench.calls._breakers.clear()
    it.time.seconds += 1_000
    assert await it.questions() == [["Likes tea of sort 0"]]


async def test_the_pause_doubles_up_to_an_hour(it: JudgeWorld) -> None:
    row, _ = with_listed(ProgressRow(), ["f1"], run_id="r", now=NOW)
    pauses = []
    for _ in range(8):
        row = with_stopped(row, CallStopped("deferred", "503"), pause=60.0, now=NOW)
        assert row.judging is not None
        assert row.judging.until is not None
        pauses.append((row.judging.until - NOW).total_seconds())
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


async def test_when_the_breaker_closes_the_question_is_asked_now(it: JudgeWorld) -> None:
    (waiting,) = await it.wait(1)
    it.model.away = Transient("model", "503", retry_after=3_000.0)
    await listed(it, waiting)
    await it.questions()
    assert await it.reminded() == []
    it.model.away = None
    it.bench.calls._breakers.clear()
    it.stage._wake_owners("model:acme")
    assert await it.questions() == [["Likes tea of sort 0"]]


async def test_a_spent_budget_names_the_time_of_the_next_question(it: JudgeWorld) -> None:
    (waiting,) = await it.wait(1)
    it.model.away = OverBudget("the judgement budget is spent", retry_after=500.0, remedy="tomorrow")
    await listed(it, waiting)
    await it.questions()
    assert (of_list(it).failures, of_list(it).why) == (0, "the judgement budget is spent: tomorrow")
    it.stage._wake_owners("model:acme")
    assert await it.reminded() == []
    it.model.away = None
    it.time.seconds += 520
    assert await it.questions() == [["Likes tea of sort 0"]]


async def test_after_an_unusable_answer_each_pair_is_asked_alone(it: JudgeWorld) -> None:
    waiting = await it.wait(4)
    bad = waiting[2].content

    def judge(shown: str) -> Any:
        if bad in shown:
            raise Poison("refused_by_model", "no JSON, also after one repair")
        return decided(shown, "coexist")

    it.model.answers["judge"] = judge
    await listed(it, *waiting)
    shown = await it.questions()
    assert [len(each) for each in shown] == [4, 1, 1, 1, 1]
    assert {each.target_fact_id for each in it.changes()} == {each.fact_id for each in waiting if each.content != bad}
    assert [each.topic for each in it.bench.sent if each.topic.endswith(".dlq")] == [f"{COMMANDS.name}.dlq"]
    assert it.row().judging is None
    await listed(it, *waiting)
    assert [each for each in await it.questions() if bad in each] == []


async def test_pairs_without_an_answer_are_not_asked_about_again(it: JudgeWorld) -> None:
    waiting = await it.wait(3)
    it.model.answers["judge"] = lambda shown: {"judgements": [{"pair_id": "p2", "decision": "coexist", "reason": ""}]}
    await listed(it, *waiting)
    assert len(await it.questions()) == 1
    assert len(it.changes()) == 1
    await it.sweep()
    assert await it.questions() == []


async def test_where_no_model_may_judge_nothing_is_listed(it: JudgeWorld) -> None:
    (waiting,) = await it.wait(1)
    it.model.costs_money = True
    it.build(judgement=NOTHING_TO_SPEND)
    await listed(it, waiting)
    it.model.by_rules = True
    it.build()
    await listed(it, waiting)
    it.model.by_rules = it.model.costs_money = False
    it.build(tiers=TiersPolicy(semantic=False, digest=False))
    await listed(it, waiting)
    assert it.row().judging is None
    assert await it.questions() == []


async def test_rules_that_stand_in_for_a_model_do_not_judge(it: JudgeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    (waiting,) = await it.wait(1)
    complete = it.model.complete

    async def by_rules(request: Any) -> Any:
        answer = await complete(request)
        return type(answer)(answer.value, answer.model, answer.usage, by_rules=True)

    monkeypatch.setattr(it.model, "complete", by_rules)
    it.model.answers["judge"] = lambda shown: decided(shown, "supersede")
    it.stage._pause = 60.0
    await listed(it, waiting)
    await it.questions()
    assert it.changes() == []
    assert of_list(it).failures == 1


# ------------------------------------------------------------------------------------------------ restarts and crashes
@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_after_the_list_asks_once(it: JudgeWorld, step: Step) -> None:
    waiting = await it.wait(2)
    named = tuple(each.fact_id for each in waiting)
    await it.bench.killed(it.turn(0, pending_fact_ids=named), step)
    it.build()
    await take_over(it.stage, it.bench.rows, range(PARTITIONS))
    assert [len(each) for each in await it.questions()] == [2]


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_after_the_answer_sends_one_verdict(it: JudgeWorld, step: Step) -> None:
    answers = iter(["supersede", "coexist"])
    it.model.answers["judge"] = lambda shown: decided(shown, next(answers))
    await listed(it, *await it.wait(2))
    await it.questions(killed=step)
    proposed = {each.to_bytes() for each in it.proposed()}
    assert len(proposed) == 1
    assert {each.judgement for each in it.changes()} == ({"coexist"} if step == "decide" else {"supersede"})
    assert len(it.model.asked) == (2 if step == "decide" else 1)
    assert it.row().judging is None


async def test_a_command_that_is_sent_twice_is_executed_once(it: JudgeWorld) -> None:
    await listed(it, *await it.wait(25))
    (first,) = await it.reminded()
    it.build()
    await take_over(it.stage, it.bench.rows, range(PARTITIONS))
    (again,) = await it.reminded()
    assert first.command_id == again.command_id == ids.errand_command_id(of_list(it).run_id, "judge", 0)
    for each in (first, again):
        await it.bench.run(it.command("judge", each.command_id))
    assert (len(it.model.asked), len(of_list(it).facts)) == (1, 5)
    assert [len(each) for each in await it.questions()] == [5]


async def test_a_row_of_an_earlier_version_has_no_list_and_its_facts_are_swept(it: JudgeWorld) -> None:
    await it.wait(3)
    await it.bench.run(it.turn(0))
    stored = it.row().model_dump(mode="json")
    assert not {"judging", "judged"} & set(stored)
    stored["upkeep"]["judged_from"] = "a fact"
    it.bench.rows.rows[KEY] = ProgressRow.model_validate(stored).to_bytes()
    await it.sweep()
    assert [len(each) for each in await it.questions()] == [3]


async def test_an_owner_with_a_list_is_in_the_index(it: JudgeWorld) -> None:
    await listed(it, *await it.wait(1))
    assert index_key("follows", KEY) in it.bench.rows.rows
    await it.questions()
    assert index_key("follows", KEY) not in it.bench.rows.rows


async def test_a_paused_run_and_a_list_do_not_wait_for_each_other(it: JudgeWorld) -> None:
    await it.episodes("Drank tea")
    it.model.away, it.model.away_for = Transient("model", "503"), "consolidation"
    await it.bench.run(await it.due())
    assert it.row().waiting is not None
    await listed(it, *await it.wait(1))
    it.bench.calls._breakers.clear()
    assert len(await it.questions()) == 1
    assert it.row().waiting is not None


# ------------------------------------------------------------------------------------------------ what waits too long
def shown_in_metric(it: JudgeWorld) -> dict[str, float]:
    (family,) = it.bench.metrics._metrics.waiting_judgements.collect()
    return {sample.labels["tenant"]: sample.value for sample in family.samples}


async def test_the_gauge_counts_listed_facts(it: JudgeWorld) -> None:
    await listed(it, *await it.wait(25))
    assert shown_in_metric(it) == {"acme": 25}
    (first,) = await it.reminded()
    await it.bench.run(it.command("judge", first.command_id))
    assert shown_in_metric(it) == {"acme": 5}


async def test_partitions_that_leave_take_their_facts_out_of_the_gauge(it: JudgeWorld) -> None:
    await listed(it, *await it.wait(2))
    it.stage.retain(frozenset())
    assert shown_in_metric(it) == {"acme": 0}


async def test_what_waits_longer_than_a_day_is_reported(it: JudgeWorld) -> None:
    it.model.away = OverBudget("the budget is spent", retry_after=10 * LATE, remedy="docs")
    await listed(it, *await it.wait(3))
    await it.questions()
    other = OWNER.model_copy(update={"id": "u2"})
    await it.bench.run(it.turn(0, owner=other, user_id="u2", pending_fact_ids=("x",)))
    texts, lines = [], []
    for hours in (1, 25, 26, 50):
        it.bench.now.moment = NOW + timedelta(days=1, hours=hours)
        it.time.seconds += 120
        with structlog.testing.capture_logs() as logs:
            await it.remind()
        texts.append(it.bench.calls.remark)
        lines.append([each for each in logs if each["event"] == "judgement_late"])
    late = "4 facts of 2 owners wait longer than a day for a judgement: the budget is spent: docs"
    assert texts == ["", late, late, late]
    assert [len(each) for each in lines] == [0, 1, 0, 1]
    assert {name: lines[1][0][name] for name in ("tenant_id", "facts", "owners", "why")} == {
        "tenant_id": "acme",
        "facts": 4,
        "owners": 2,
        "why": "the budget is spent: docs",
    }


async def test_facts_that_no_model_may_judge_any_more_are_reported_with_the_setting(it: JudgeWorld) -> None:
    await listed(it, *await it.wait(1))
    it.model.costs_money = True
    it.build(judgement=NOTHING_TO_SPEND)
    await take_over(it.stage, it.bench.rows, range(PARTITIONS))
    it.bench.now.moment += timedelta(days=2)
    it.time.seconds += 120
    assert await it.reminded() == []
    assert it.bench.calls.remark.endswith(
        "the budget of judgements is 0, and scripted costs money: raise tokens and cost in [memory.budget.judgement]"
    )

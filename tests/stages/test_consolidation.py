"""Consolidation over the real engine: when it runs, what it proposes, and what waits when the model is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import JsonValue

from memstream.agents.consolidation.rows import turns_of
from memstream.memory.policies import ConsolidationPolicy
from memstream.schemas import ids
from memstream.schemas.commands import FactsApply
from memstream.schemas.errors import Poison, StageError, Transient
from memstream.schemas.topics import COMMANDS, EPISODES_RECORDED, RESULTS
from memstream.schemas.turns import Owner
from memstream.streams.engine.crash_points import Step
from memstream.streams.engine.process_exit import LeaseLost
from tests.support.consolidation_world import KEY, Consolidating, proposal
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW
from tests.support.table_rows import take_over


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Consolidating]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield Consolidating(bench)
    await bench.store.close()


# ------------------------------------------------------------------------------------------------ when it runs
async def test_a_run_when_five_episodes_and_four_turns_have_come(it: Consolidating) -> None:
    made = await it.episodes("Drank tea", "Bought tea")
    (fact,) = await it.facts("Likes coffee")
    it.model.answer = lambda shown: {
        "facts": [proposal(), proposal("invalidate", target_fact_id="[f1]", content=None, category=None)]
    }
    last = await it.due()
    assert it.model.asked == []
    await it.bench.run(last)
    (command,) = it.proposed()
    run = ids.run_id(KEY, ids.turn_cause("acme/u1/s1", "t4"))
    assert command.command_id == ids.command_id(run, 0)
    args = FactsApply.from_payload(command.args)
    assert [change.action for change in args.changes] == ["new", "invalidate"]
    assert args.changes[0].source_episode_ids == (made[0].episode_id,)
    assert (args.changes[1].target_fact_id, args.changes[1].expected_version) == (fact.fact_id, 1)
    assert (args.model, args.run_id) == ("scripted", run)
    assert args.prompt is not None
    assert args.prompt.startswith("consolidate/v1:sha256")
    assert await it.consolidated() == 2
    row = it.row()
    assert (row.counters.episodes, row.counters.turns, row.runs[-1].status) == (0, 0, "done")


async def test_nothing_is_asked_before_and_the_count_begins_anew(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    await it.bench.run(await it.due())
    assert len(it.model.asked) == 1
    for _ in range(3):
        await it.bench.run(it.turn(2))
    assert len(it.model.asked) == 1


async def test_enough_that_was_noted_starts_a_run_without_an_episode(it: Consolidating) -> None:
    for _ in range(4):
        assert it.number == 0 or it.row().runs == ()
        await it.bench.run(it.turn(notes_tokens=10_000))
    assert (len(it.row().runs), it.row().counters.notes_tokens) == (1, 0)
    it.build(consolidation=ConsolidationPolicy(notes_tokens=0))
    for _ in range(5):
        await it.bench.run(it.turn(notes_tokens=10_000))
    assert len(it.row().runs) == 1


async def test_without_episodes_no_model_is_asked(it: Consolidating) -> None:
    await it.bench.run(await it.due())
    assert it.model.asked == []
    assert it.row().runs[-1].status == "nothing"


async def test_the_prompt_shows_short_ids_under_a_heading_per_subject(it: Consolidating) -> None:
    await it.episodes("Drank\n[e9] tea")
    await it.facts("Likes coffee")
    await it.bench.run(it.command())
    assert it.model.asked == ["Known facts:\n## user\n[f1] Likes coffee\n\nEpisodes:\n## user\n[e1] Drank [e9] tea"]


async def test_at_most_twenty_episodes_and_the_nearest_sixty_facts(it: Consolidating) -> None:
    await it.episodes(*(f"Drank tea number {n}" for n in range(25)))
    await it.facts(*(f"Plays chess in room {n}" for n in range(61)), "Drinks tea")
    await it.bench.run(it.command())
    shown = it.model.asked[0]
    assert (shown.count("[e"), shown.count("[f")) == (20, 60)
    assert "Drinks tea" in shown
    assert await it.consolidated() == 20
    assert it.row().counters.episodes == 5  # what is left counts for the next run


async def test_the_facts_near_to_all_episodes_are_one_question_to_the_store(
    it: Consolidating, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.episodes("Drank tea", "Bought a board", "Moved house")
    await it.facts(*(f"Plays chess in room {n}" for n in range(61)))
    rankings: list[int] = []
    search = it.bench.store.search

    async def watched(collection: str, **asked: Any) -> Any:
        rankings.append(len(asked["rankings"]))
        return await search(collection, **asked)

    monkeypatch.setattr(it.bench.store, "search", watched)
    await it.bench.run(it.command())
    assert rankings == [3]
    assert it.model.asked[0].count("[f") == 60


async def test_more_than_twenty_changes_are_several_commands(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.answer = lambda shown: {"facts": cast(JsonValue, [proposal(content=f"Likes tea {n}") for n in range(45)])}
    await it.bench.run(it.command())
    commands = it.proposed()
    assert [len(FactsApply.from_payload(each.args).changes) for each in commands] == [20, 20, 5]
    result = it.bench.results()[-1]
    assert result.result is not None
    assert result.result["command_ids"] == [each.command_id for each in commands]
    assert result.result["status"] == "done"


async def test_bad_items_are_dropped_and_counted(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.answer = lambda shown: {
        "facts": [
            proposal(),
            proposal("update", target_fact_id="f7"),
            proposal(source_episode_ids=["e1", "e8"], content="Buys tea"),
            {"content": "half an item"},
            "no item",
        ]
    }
    await it.bench.run(it.command())
    (command,) = it.proposed()
    assert len(FactsApply.from_payload(command.args).changes) == 2
    assert it.row().runs[-1].dropped == {"unknown_fact": 1, "unknown_episode": 1, "invalid": 2}


# ------------------------------------------------------------------------------------------------ not run
async def test_tier_free_calls_no_model_that_costs_money(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.costs_money = True
    it.build()
    await it.bench.run(await it.due())
    await it.bench.run(it.command())
    assert it.model.asked == []
    result = it.bench.results()[-1]
    assert (result.status, result.error.code if result.error else "") == ("refused", "paused_by_tier")
    assert it.row().counters.turns == 4  # they stand
    stage = it.build(tier="standard")
    await take_over(stage, it.bench.rows)
    await it.remind()
    (reminder,) = it.reminders()
    await it.bench.run(it.command(command_id=reminder.command_id))
    assert len(it.model.asked) == 1


async def test_a_model_that_is_away_defers_the_run_and_is_asked_again(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.away = Transient("model", "503")
    await it.bench.run(await it.due())
    assert (it.row().runs[-1].status, it.row().counters.turns) == ("deferred", 4)
    await it.bench.run(it.turn(1))  # counted, without waiting for the model again
    assert (len(it.row().runs), it.row().counters.turns) == (1, 5)
    await it.remind()
    assert it.reminders() == []
    it.time.seconds += 0.1
    await it.remind()
    (first,) = it.reminders()
    await it.bench.run(it.command(command_id=first.command_id))
    it.time.seconds += 0.1
    await it.remind()
    second = it.reminders()[-1]
    assert second.command_id != first.command_id
    assert await it.consolidated() == 0
    it.model.away = None
    it.bench.calls._breakers.clear()  # the model is back
    await it.bench.run(it.command(command_id=second.command_id))
    assert await it.consolidated() == 1
    assert (it.row().waiting, it.row().counters.turns) == (None, 0)
    sent = len(it.reminders())
    it.time.seconds += 10
    await it.remind()
    assert len(it.reminders()) == sent


@pytest.mark.parametrize("failure", [LeaseLost("no answer from the group coordinator"), Transient("broker", "away")])
async def test_a_reminder_that_cannot_be_sent_does_not_end_the_timers(
    it: Consolidating, monkeypatch: pytest.MonkeyPatch, failure: StageError
) -> None:
    await it.episodes("Drank tea")
    it.model.away = Transient("model", "503")
    await it.bench.run(await it.due())
    attempts: list[object] = []

    async def fail(record: object) -> None:
        attempts.append(record)
        raise failure

    monkeypatch.setattr(it.stage, "_send_durably", fail)
    it.time.seconds += 0.1
    timers = asyncio.create_task(it.stage.background())
    try:
        async with asyncio.timeout(5):
            while not attempts:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not timers.done()
    finally:
        timers.cancel()


async def test_an_answer_that_cannot_be_used_is_a_dead_letter_and_the_turn_counts(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    it.model.away = Poison("refused_by_model", "no JSON, also after one repair")
    await it.bench.run(await it.due())
    (letter,) = [each for each in it.bench.sent if each.topic == f"{EPISODES_RECORDED.name}.dlq"]
    assert dict(letter.headers)["memstream-reason"] == b"refused_by_model"
    assert (it.row().runs[-1].status, it.row().counters.turns) == ("failed", 0)
    assert await it.consolidated() == 0
    await it.bench.run(it.command())
    assert it.bench.results()[-1].status == "failed"


async def test_other_kinds(it: Consolidating) -> None:
    for kind in ("prune", "digest", "hygiene"):
        await it.bench.run(it.command(kind, command_id=kind))
    assert [each.status for each in it.bench.results()] == ["applied"] * 3
    assert [(run.kind, run.status) for run in it.row().runs] == [
        (kind, "nothing") for kind in ("prune", "digest", "hygiene")
    ]
    sent = len(it.bench.sent)
    await it.bench.run(it.command("facts.apply", command_id="x"))
    await it.bench.run(it.command("dance", command_id="y"))
    await it.bench.run(it.command(command_id="z", owner=None, session={"user_id": "u1", "session_id": "s1"}))
    await it.bench.run(it.bench.record(EPISODES_RECORDED.name, KEY, b"{"))
    assert len(it.bench.sent) == sent
    assert it.bench.refused == ["invalid", "undecodable"]
    assert not it.stage.writes_dead_letters(COMMANDS.name)
    await it.bench.run(it.command(command_id="late", expires_at=NOW))
    assert it.bench.results()[-1].status == "expired"


# ------------------------------------------------------------------------------------------------ again
@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_killed_and_handed_in_again_it_proposes_once(it: Consolidating, step: Step) -> None:
    await it.episodes("Drank tea")
    answers = iter(["Likes tea", "Likes milk"])
    it.model.answer = lambda shown: {"facts": [proposal(content=next(answers))]}
    last = await it.due()
    await it.bench.killed(last, step)
    await it.bench.run(last)
    values = {record.value for record in it.bench.sent if record.topic == COMMANDS.name}
    assert len(values) == 1
    content = FactsApply.from_payload(it.proposed()[0].args).changes[0].content
    assert content == ("Likes milk" if step == "decide" else "Likes tea")
    assert len(it.row().runs) == 1


@pytest.mark.parametrize("step", [None, "decide", "table", "store", "publish"])
async def test_a_turn_that_is_put_back_after_a_later_one_counts_once(it: Consolidating, step: Step | None) -> None:
    await it.bench.run(it.turn(1))
    second = it.turn(1)
    await it.bench.run(it.turn(1))
    letter = it.bench.record(EPISODES_RECORDED.name, KEY, second.value or b"")
    if step is None:
        await it.bench.run(letter)
    else:
        await it.bench.killed(letter, step)
    await it.bench.run(letter)
    await it.bench.run(it.bench.record(EPISODES_RECORDED.name, KEY, second.value or b""))
    assert (it.row().counters.turns, it.row().counters.episodes) == (3, 3)
    counted = turns_of(it.bench.rows, KEY, "acme/u1/s1")
    assert (counted.turn_number, counted.gaps, "t2" in counted.counted) == (3, (), True)


async def test_turns_and_commands_that_come_twice_count_once(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    first = it.turn(1)
    await it.bench.run(first)
    await it.bench.run(it.turn(1))
    await it.bench.run(first)
    assert (it.row().counters.turns, it.row().counters.episodes) == (2, 2)
    again = it.command()
    await it.bench.run(again)
    await it.bench.run(it.command())
    await it.bench.run(it.turn())
    await it.bench.run(again)
    assert len(it.model.asked) == 1
    assert len({record.value for record in it.bench.sent if record.topic == RESULTS.name}) == 1


async def test_owners_are_counted_apart(it: Consolidating) -> None:
    await it.episodes("Drank tea")
    for n in range(4):
        for tenant, user in (("acme", "u1"), ("acme", "u2"), ("other", "u1")):
            it.number = n
            owner = Owner(scope="user", id=user)
            await it.bench.run(it.turn(1, tenant_id=tenant, user_id=user, owner=owner))
    assert it.model.asked == []
    assert it.row().counters.turns == 4
    await it.bench.run(it.command(tenant_id="other"))
    assert it.model.asked == []  # the other tenant has no episode

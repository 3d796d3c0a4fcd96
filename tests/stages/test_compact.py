"""`compact`: the older turns of a session become one episode, once, wherever consolidation or the reflector crash."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.agents.consolidation.rows import Summary
from memstream.memory.policies import (
    CapturePolicy,
    ConsolidationPolicy,
    SessionLogPolicy,
    TiersPolicy,
)
from memstream.schemas import ids
from memstream.schemas.commands import Command, EpisodesRecord, SummaryProposal
from memstream.schemas.episodes import SUMMARISED_MAX, StoredEpisode
from memstream.schemas.errors import OverBudget, Poison, Transient
from memstream.schemas.topics import COMMANDS
from memstream.streams.engine.crash_points import Step
from memstream.streams.engine.retry import Calls, RetryPolicy
from memstream.streams.log.port import Record
from tests.support.consolidation_world import KEY, Consolidating, in_session_log, in_short
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.record_builders import NOW, OWNER, episode
from tests.support.reflector_world import reflector


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Consolidating]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("digests", "labels", "procedures")
    made = Consolidating(bench)
    made.model.answers["summary"] = lambda shown: {"text": in_short(shown)}
    made.build(consolidation=ConsolidationPolicy(summary_turns=0, trigger="manual"))
    yield made
    await bench.store.close()


async def log(it: Consolidating, *turns: int, session: str = "s1", **fields: Any) -> None:
    """Put turns t1, t2 … into the session log, in this order."""
    told = {
        f"t{n}": {
            "content": f"I said word{n}.",
            "occurred_at": NOW + timedelta(minutes=n),
            "session_place": n,
            "first_place": n,
        }
        for n in turns
    }
    await in_session_log(it, told, session=session, **fields)


async def said(it: Consolidating, turns: int, **fields: Any) -> None:
    """Put turns t1 … into the session log, and reflect them."""
    await log(it, *range(1, turns + 1), **fields)
    await reflected(it, turns)


async def reflected(it: Consolidating, turns: int, **fields: Any) -> None:
    for _ in range(turns):
        await it.bench.run(it.turn(**fields))


def compact(it: Consolidating, command_id: str = "c1", keep: int | None = 2, **fields: Any) -> Record:
    args = {"user_id": "u1", "session_id": "s1", "keep": keep}
    return it.command("compact", command_id, **({"args": args} | fields))


def proposed(it: Consolidating) -> list[SummaryProposal]:
    sent = {each.command_id: each for each in map(Command.read, it.bench.values(COMMANDS.name))}
    args = [EpisodesRecord.from_payload(each.args) for each in sent.values() if each.kind == "episodes.record"]
    return [summary for each in args for summary in each.summaries]


def taken(it: Consolidating) -> list[tuple[str, ...]]:
    return [each.turn_ids for each in proposed(it)]


def counts(it: Consolidating, place: int = -1) -> tuple[Any, ...]:
    """Return the counts `turns`, `episodes` and `left` of a result."""
    told: Any = it.bench.results()[place].result
    return told["turns"], told["episodes"], told["left"]


def names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"t{n}" for n in range(first, last + 1))


async def test_the_older_turns_become_one_episode_and_the_newest_stay_out(it: Consolidating) -> None:
    await said(it, 6)
    await it.bench.run(compact(it))
    assert it.model.tasks == ["summary"]
    (shown,) = it.model.asked
    assert shown.startswith("[t1]\nuser: I said word1.\n\n[t2]")
    (summary,) = proposed(it)
    assert (summary.turn_ids, summary.content) == (
        names(1, 4),
        "I said word1. I said word2. I said word3. I said word4.",
    )
    assert (summary.importance, summary.began_at) == (0.6, NOW + timedelta(minutes=1))
    assert summary.occurred_at == NOW + timedelta(minutes=4)
    (result,) = it.bench.results()
    (sent,) = map(Command.read, it.bench.values(COMMANDS.name))
    told: Any = result.result
    assert (result.status, told["run_id"]) == ("applied", ids.run_id(KEY, "c1"))
    assert (counts(it), told["command_ids"]) == ((4, 1, 0), [sent.command_id])
    (run,) = it.row().runs
    assert (run.kind, run.status, run.usage.calls, run.model) == ("compact", "done", 1, "scripted")
    assert it.row().errands == ()


async def test_so_many_are_kept(it: Consolidating) -> None:
    await said(it, 22)
    for n, (keep, turns) in enumerate([(22, 0), (10**30, 0), (None, 2), (21, 0), (10, 10), (0, 10)]):
        await it.bench.run(compact(it, f"c{n}", keep=keep))
        assert counts(it) == (turns, int(turns > 0), 0)
    assert taken(it) == [names(1, 2), names(3, 12), names(13, 22)]
    it.build(session_log=SessionLogPolicy(keep=1))
    for _ in range(3):
        turn = it.turn()
        await log(it, it.number)
        await it.bench.run(turn)
    await it.bench.run(compact(it, "c9", keep=None))
    assert taken(it)[3:] == [names(23, 24)]


async def test_the_order_is_that_of_the_log_whatever_the_turns_say_of_their_time(it: Consolidating) -> None:
    await log(it, 1, 2, session_place=None, first_place=None)  # of 0.1
    await log(it, 3, occurred_at=NOW - timedelta(days=9))
    await log(it, 4, occurred_at=NOW - timedelta(days=10))
    await reflected(it, 4)
    await it.bench.run(compact(it, keep=1))
    assert taken(it) == [names(1, 3)]


async def test_what_no_episode_can_hold_is_left_and_told_and_taken_when_asked_again(it: Consolidating) -> None:
    await said(it, SUMMARISED_MAX + 10)
    for n, expected in enumerate([(SUMMARISED_MAX, 1, 8), (8, 1, 0), (0, 0, 0)]):
        await it.bench.run(compact(it, f"c{n}"))
        assert counts(it) == expected
    assert taken(it) == [names(1, SUMMARISED_MAX), names(SUMMARISED_MAX + 1, SUMMARISED_MAX + 8)]
    assert len(it.model.asked) == 2  # although no summary is in the store yet


async def test_what_no_question_can_hold_is_left(it: Consolidating) -> None:
    it.build(consolidation=ConsolidationPolicy(summary_tokens=10))
    await said(it, 6)
    await it.bench.run(compact(it))
    assert (taken(it), counts(it)) == ([names(1, 2)], (2, 1, 2))


async def test_only_turns_that_were_reflected_are_taken(it: Consolidating) -> None:
    """It is not known yet whether the other turns hold a secret."""
    await log(it, 1, 2, 3, 4, 5)
    await reflected(it, 2)
    await it.bench.run(compact(it, keep=1))
    assert (taken(it), counts(it)) == ([names(1, 2)], (2, 1, 0))


async def test_sessions_and_owners_are_kept_apart(it: Consolidating) -> None:
    agent = OWNER.model_copy(update={"scope": "agent", "id": "bot"})
    await log(it, 1, 2)
    await log(it, 3, owner_key=agent.key("acme"))
    await log(it, 4, 5)
    await log(it, 1, 2, 3, session="s2")
    await reflected(it, 2)
    await reflected(it, 1, owner=agent)
    await reflected(it, 2)
    await it.bench.run(compact(it, keep=1))
    assert taken(it) == [("t1", "t2", "t4")]
    await it.bench.run(compact(it, "c2", keep=1, owner=agent))
    assert taken(it)[1:] == [("t3",)]


async def test_no_turn_is_taken_that_a_summary_has_or_will_have(it: Consolidating) -> None:
    await said(it, 8)
    known = episode("Told of one", turn="t2", tags=("summary",), turn_ids=("t1", "t2"), deleted_at=NOW)
    (dense,) = await it.bench.embedder.embed([known.content], tenant_id="acme")
    await it.bench.store.insert("episodes", [Point(known.episode_id, known.to_payload(), dense, known.content)])
    await it.bench.run(compact(it, keep=5))
    assert taken(it) == [("t3",)]
    await it.bench.run(compact(it, "c2", keep=3))  # the first one is on its way still
    assert taken(it)[1:] == [("t4", "t5")]
    waiting = Summary(
        user_id="u1",
        session_id="s1",
        turn_ids=("t6", "t7"),
        content="Told of two",
        began_at=NOW,
        occurred_at=NOW,
        sensitivity="internal",
        trust="user",
        model="scripted",
        prompt="summarise/v1",
    )
    it.bench.rows.rows[KEY] = it.row().model_copy(update={"summaries": (waiting,)}).to_bytes()
    await it.bench.run(compact(it, "c3", keep=0))
    assert taken(it)[2:] == [("t8",)]


async def test_turns_that_waited_for_a_summary_of_their_own_wait_no_longer(it: Consolidating) -> None:
    it.build(consolidation=ConsolidationPolicy(trigger="manual"))
    await said(it, 6)
    await it.bench.run(compact(it))
    assert [each.turn_ids for each in it.row().unsummarised] == [names(5, 6)]
    await it.bench.run(it.command(command_id="c2"))
    assert taken(it) == [names(1, 4)]


async def test_turns_of_a_summary_that_is_on_its_way_are_not_asked_about_again(it: Consolidating) -> None:
    it.build(consolidation=ConsolidationPolicy(trigger="manual"))
    await said(it, 4)
    await it.bench.run(it.command())
    assert taken(it) == [names(1, 4)]
    await it.bench.run(compact(it, "c2", keep=0))
    assert (len(it.model.asked), counts(it)) == (1, (0, 0, 0))


async def test_what_is_secret_is_left_out(it: Consolidating) -> None:
    await log(it, 1)
    await log(it, 2, sensitivity="secret")
    await log(it, 3, 4)
    await reflected(it, 4)
    secret = episode("Has a dog", turn="t3", sensitivity="secret")
    (dense,) = await it.bench.embedder.embed([secret.content], tenant_id="acme")
    await it.bench.store.insert("episodes", [Point(secret.episode_id, secret.to_payload(), dense, secret.content)])
    await it.bench.run(compact(it, keep=0))
    assert (taken(it), counts(it)) == ([("t1", "t4")], (2, 1, 0))
    assert "word2" not in it.model.asked[0]
    assert "word3" not in it.model.asked[0]


async def test_turns_of_which_nothing_may_be_told_do_not_stand_in_the_way(it: Consolidating) -> None:
    await log(it, *range(1, SUMMARISED_MAX + 2), sensitivity="secret")
    await log(it, 90, 91)
    await reflected(it, SUMMARISED_MAX + 1)
    for n in (90, 91):
        await it.bench.run(it.turn(turn_id=f"t{n}"))
    await it.bench.run(compact(it, keep=0))
    assert (taken(it), counts(it)) == ([("t90", "t91")], (2, 1, 0))


async def test_nothing_is_shown_of_what_a_source_or_nobody_captures(it: Consolidating) -> None:
    await said(it, 6)
    for n, capture in enumerate((CapturePolicy(enabled=False), CapturePolicy(source="a.b:c"))):
        it.build(capture=capture)
        await it.bench.run(compact(it, f"c{n}"))
        assert (it.model.asked, counts(it)) == ([], (0, 0, 0))


async def test_where_no_model_may_be_asked_it_is_refused_and_nothing_is_lost(it: Consolidating) -> None:
    it.model.costs_money = True
    await said(it, 6)
    await it.bench.run(compact(it))
    (result,) = it.bench.results()
    assert (result.status, result.error and result.error.code) == ("refused", "paused_by_tier")
    assert counts(it) == (0, 0, 4)
    it.build(tier="standard")
    await it.bench.run(compact(it, "c2"))
    assert taken(it) == [names(1, 4)]


async def test_a_model_that_does_not_answer_is_told_and_who_asked_asks_again(it: Consolidating) -> None:
    await said(it, 6)
    for n, (away, status, code) in enumerate(
        [
            (OverBudget("the day's tokens are spent", remedy="wait", retry_after=60.0), "refused", "paused_by_tier"),
            (Poison("refused_by_model", "no JSON, also after one repair"), "failed", "refused_by_model"),
            (Transient("model", "503"), "failed", "model_away"),
        ]
    ):
        it.model.away = away
        await it.bench.run(compact(it, f"c{n}"))
        result = it.bench.results()[-1]
        assert result.error is not None
        assert (result.status, result.error.code) == (status, code)
        assert (it.row().errands, it.row().waiting, taken(it), counts(it)) == ((), None, [], (0, 0, 4))
    assert "send the command again" in result.error.message
    it.time.seconds += 1_000
    await it.remind()
    assert it.reminders("compact") == []
    it.model.away = None
    it.bench.calls = Calls(retry=RetryPolicy(first=0.001, cap=0.001))  # its breaker is closed again
    it.build()
    await it.bench.run(compact(it, "c9"))
    assert taken(it) == [names(1, 4)]


async def test_what_is_worth_nothing_makes_no_episode_and_is_not_asked_about_again(it: Consolidating) -> None:
    it.model.answers["summary"] = lambda shown: {"text": ""}
    await said(it, 6)
    await it.bench.run(compact(it))
    assert (taken(it), counts(it), it.row().runs[-1].dropped) == ([], (4, 0, 0), {"empty": 1})
    await it.bench.run(compact(it, "c2"))
    assert (len(it.model.asked), counts(it)) == (1, (0, 0, 0))


async def test_what_names_no_session_is_refused(it: Consolidating) -> None:
    await said(it, 6)
    whose = {"user_id": "u1", "session_id": "s1"}
    wrong: list[dict[str, Any]] = [{}, {"user_id": "u1"}, whose | {"user_id": ""}, whose | {"keep": -1}]
    for n, args in enumerate(wrong):
        await it.bench.run(compact(it, f"c{n}", args=args))
        result = it.bench.results()[-1]
        assert (result.status, result.error and result.error.code) == ("refused", "invalid_args")
    assert (it.model.asked, it.row().runs) == ([], ())


async def test_without_episodes_it_is_refused_with_the_setting(it: Consolidating) -> None:
    it.build(tiers=TiersPolicy(episodic=False, semantic=False, digest=False))
    await it.bench.run(compact(it))
    (result,) = it.bench.results()
    assert (result.status, result.error and result.error.code) == ("refused", "tier_off")


@pytest.mark.parametrize(
    ("first", "second"), [("decide", "publish"), ("table", "store"), ("store", "table"), ("publish", "decide")]
)
async def test_no_turn_is_in_two_summaries_wherever_both_stages_die(
    it: Consolidating, tmp_path: Path, first: Step, second: Step
) -> None:
    """The model answers differently each time, and the commands are given once more at the end."""
    tries = iter(range(9))
    it.model.answers["summary"] = lambda shown: {"text": f"{'Again ' * next(tries)}{in_short(shown)}"}
    policy: dict[str, Any] = {"consolidation": ConsolidationPolicy(trigger="manual", summary_turns=2)}
    it.build(**policy)
    await said(it, 6)
    asked = compact(it)
    with pytest.raises(Killed):
        await it.bench.run(asked, crash_after=first)
    it.build(**policy)
    await it.bench.run(asked)
    await it.bench.run(it.command(command_id="c2"))  # the two that were kept
    await it.bench.run(asked)
    assert sorted(taken(it)) == [names(1, 4), names(5, 6)]

    keeper = Bench(store=it.bench.store, folder=tmp_path / "deaths", stage_name="reflector")
    for command in map(Command.read, it.bench.values(COMMANDS.name)):  # those that were sent twice come twice
        keeper.stage = reflector(keeper)
        told = keeper.record(COMMANDS.name, command.key, command)
        try:
            await keeper.run(told, crash_after=second)
        except Killed:
            keeper.stage = reflector(keeper)
            await keeper.run(told)
    found = await it.bench.store.select("episodes", tenant_id="acme")
    summaries = [StoredEpisode.from_payload(each.payload) for each in found]
    assert sorted(turn for each in summaries for turn in each.turn_ids) == list(names(1, 6))
    assert {each.category for each in summaries} == {"event"}
    assert {each.tags for each in summaries} == {("summary",)}
    assert len({each.to_bytes() for each in it.bench.results()}) == 2
    await it.bench.run(compact(it, "c3", keep=0))
    assert counts(it) == (0, 0, 0)
    assert len(await it.bench.store.select("turns", tenant_id="acme")) == 6  # the turns stay

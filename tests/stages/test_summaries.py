"""Summaries of sessions: made in the phase light, proposed as episodes in the phase standard, each turn once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.completions.offline import OfflineCompletions
from memstream.adapters.ports import Point, Usage
from memstream.memory.policies import CapturePolicy, ConsolidationPolicy
from memstream.memory.policies.budget import NO_CEILING, TierPolicy
from memstream.schemas.commands import Command, EpisodesRecord, SummaryProposal
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.topics import COMMANDS
from memstream.streams.engine.crash_points import Step
from tests.support.consolidation_world import Consolidating, in_session_log, in_short
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.record_builders import NOW, episode
from tests.support.reflector_world import reflector

SAID = ("I joined Stripe.", "I moved to Oslo.", "I have a dog.", "I love jazz.", "I play chess.", "I drink tea.")


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Consolidating]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("digests", "labels", "procedures")
    made = Consolidating(bench)
    made.model.answers["summary"] = lambda shown: {"text": in_short(shown)}
    yield made
    await bench.store.close()


async def log(it: Consolidating, *turns: int, session: str = "s1", **fields: Any) -> None:
    """Put turns t1, t2 … into the session log."""
    await in_session_log(it, {f"t{n}": {"content": SAID[n - 1]} for n in turns}, session=session, **fields)


async def tell(it: Consolidating, turns: int, **fields: Any) -> None:
    for _ in range(turns):
        await it.bench.run(it.turn(**fields))


def proposed(it: Consolidating) -> list[SummaryProposal]:
    sent = {each.command_id: each for each in map(Command.read, it.bench.values(COMMANDS.name))}
    args = [EpisodesRecord.from_payload(each.args) for each in sent.values() if each.kind == "episodes.record"]
    return [summary for each in args for summary in each.summaries]


async def test_turns_that_no_summary_has_taken_become_an_episode(it: Consolidating) -> None:
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    assert it.model.tasks == ["summary"]
    (shown,) = it.model.asked
    assert shown.startswith("[t1]\nuser: I joined Stripe.\n\n[t2]\nuser: I moved to Oslo.")
    (summary,) = proposed(it)
    assert (summary.user_id, summary.session_id, summary.turn_ids) == ("u1", "s1", ("t1", "t2", "t3", "t4"))
    assert (summary.content, summary.importance, summary.trust) == (" ".join(SAID[:4]), 0.6, "user")
    (run,) = it.row().runs
    assert [(part.name, part.status) for part in run.phases][:2] == [("light", "done"), ("standard", "done")]
    assert (run.status, run.model, run.prompt and run.prompt[:13]) == ("done", "scripted", "summarise/v2:")
    assert run.usage.calls == 1
    assert (it.row().unsummarised, it.row().summaries) == ((), ())
    await it.bench.run(it.command(command_id="c2"))
    assert len(proposed(it)) == 1


async def test_too_few_turns_wait_and_so_do_those_that_are_not_in_the_log_yet(it: Consolidating) -> None:
    await log(it, 1, 2, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    assert it.model.asked == []
    await log(it, 3)
    await it.bench.run(it.command(command_id="c2"))
    assert [each.turn_ids for each in proposed(it)] == [("t1", "t2", "t3", "t4")]


async def test_one_session_a_run_and_what_is_too_much_waits(it: Consolidating) -> None:
    it.build(consolidation=ConsolidationPolicy(summary_turns=2, summary_tokens=10))
    await log(it, 1, 2, 3)
    await log(it, 4, 5, session="s2")
    await tell(it, 3)
    await tell(it, 2, session_id="s2")
    for n in range(3):
        await it.bench.run(it.command(command_id=f"c{n}"))
    assert [each.turn_ids for each in proposed(it)] == [("t1", "t2"), ("t4", "t5")]
    assert [each.turn_ids for each in it.row().unsummarised] == [("t3",)]


async def test_what_is_secret_is_left_out(it: Consolidating) -> None:
    await log(it, 1, 2, 3)
    await log(it, 4, sensitivity="secret")
    secret = episode("Has a dog", turn="t3", sensitivity="secret", consolidated_at=NOW)
    (dense,) = await it.bench.embedder.embed([secret.content], tenant_id="acme")
    await it.bench.store.insert("episodes", [Point(secret.episode_id, secret.to_payload(), dense, secret.content)])
    await tell(it, 4)
    await it.bench.run(it.command())
    (shown,) = it.model.asked
    assert "dog" not in shown
    assert "jazz" not in shown
    assert [each.turn_ids for each in proposed(it)] == [("t1", "t2")]
    assert it.row().unsummarised == ()


async def test_nothing_is_asked_where_no_model_may_be(it: Consolidating) -> None:
    it.model.costs_money = True
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    assert it.model.asked == []
    assert [len(each.turn_ids) for each in it.row().unsummarised] == [4]  # they wait for another tier
    assert [(part.name, part.status) for part in it.row().runs[-1].phases] == [("light", "nothing")], "light goes on"


async def test_nothing_is_shown_of_what_a_source_or_nobody_captures(it: Consolidating) -> None:
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    for n, capture in enumerate((CapturePolicy(enabled=False), CapturePolicy(source="a.b:c"))):
        it.build(capture=capture)
        await it.bench.run(it.command(command_id=f"c{n}"))
    it.build(consolidation=ConsolidationPolicy(summary_turns=0))
    await it.bench.run(it.command(command_id="c9"))
    assert it.model.asked == []


async def test_a_summary_waits_for_a_tier_with_a_standard_phase(it: Consolidating) -> None:
    it.model.costs_money = True
    it.build(tier=TierPolicy(("light",), NO_CEILING))
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    assert proposed(it) == []
    assert [each.turn_ids for each in it.row().summaries] == [("t1", "t2", "t3", "t4")]
    it.model.answers["summary"] = lambda shown: {"text": "Never asked again"}
    it.build(tier="standard")
    await it.bench.run(it.command(command_id="c2"))
    assert [each.content for each in proposed(it)] == [" ".join(SAID[:4])]
    assert it.row().summaries == ()


async def test_an_empty_answer_makes_no_episode_and_is_not_asked_for_again(it: Consolidating) -> None:
    it.model.answers["summary"] = lambda shown: {}
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    await it.bench.run(it.command(command_id="c2"))
    assert (len(it.model.asked), proposed(it)) == (1, [])
    assert it.row().runs[0].dropped == {"empty": 1}


async def test_sentences_that_the_turns_do_not_support_are_left_out(it: Consolidating) -> None:
    it.model.answers["summary"] = lambda shown: {
        "text": "The user joined Stripe. They bought a yacht in Monaco. The user has 3 dogs. They moved to Oslo!"
    }
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    (summary,) = proposed(it)
    assert summary.content == "The user joined Stripe. They moved to Oslo!"


async def test_an_answer_without_a_supported_sentence_makes_no_episode(it: Consolidating) -> None:
    it.model.answers["summary"] = lambda shown: {"text": "They bought a yacht in Monaco."}
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    assert (proposed(it), it.row().runs[0].dropped) == ([], {"weak_evidence": 1})
    assert it.row().unsummarised == ()


async def test_a_model_that_is_away_defers_the_run(it: Consolidating) -> None:
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    it.model.away, it.model.away_for = Transient("model", "503"), "summary"
    await it.bench.run(it.command())
    assert (it.row().runs[-1].status, len(it.row().unsummarised)) == ("deferred", 1)
    assert it.row().waiting is not None


async def test_what_a_model_cannot_summarise_it_is_not_asked_for_again(it: Consolidating) -> None:
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    it.model.away, it.model.away_for = Poison("refused_by_model", "no JSON, also after one repair"), "summary"
    await it.bench.run(it.command())
    part = it.row().runs[-1].phases[0]
    assert (part.name, part.status, it.row().unsummarised) == ("light", "failed", ())
    assert [each.topic for each in it.bench.sent if each.topic.endswith(".dlq")] == [f"{COMMANDS.name}.dlq"]


@pytest.mark.parametrize("second", ["decide", "table", "store", "publish"])
@pytest.mark.parametrize("first", ["decide", "table", "store", "publish"])
async def test_no_turn_is_in_two_summaries_wherever_both_stages_die(
    it: Consolidating, tmp_path: Path, first: Step, second: Step
) -> None:
    """The model answers differently each time, and the log of turns goes on in between."""
    tries = iter(range(9))
    it.model.answers["summary"] = lambda shown: {"text": f"{'Again ' * next(tries)}{in_short(shown)}"}
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    asked = it.command()
    with pytest.raises(Killed):
        await it.bench.run(asked, crash_after=first)
    await log(it, 5)
    it.build()
    await it.bench.run(asked)
    await tell(it, 2)
    await log(it, 6)
    it.build(consolidation=ConsolidationPolicy(summary_turns=2))
    await it.bench.run(it.command(command_id="c2"))

    keeper = Bench(store=it.bench.store, folder=tmp_path / "deaths", stage_name="reflector")
    for command in map(Command.read, it.bench.values(COMMANDS.name)):  # those that were sent twice come twice
        if command.kind != "episodes.record":
            continue
        keeper.stage = reflector(keeper)
        told = keeper.record(COMMANDS.name, command.key, command)
        try:
            await keeper.run(told, crash_after=second)
        except Killed:
            keeper.stage = reflector(keeper)
            await keeper.run(told)
    found = await it.bench.store.select("episodes", tenant_id="acme")
    summaries = [StoredEpisode.from_payload(each.payload) for each in found]
    turns = [turn for each in summaries for turn in each.turn_ids]
    assert sorted(turns) == ["t1", "t2", "t3", "t4", "t5", "t6"]
    assert len({each.episode_id for each in summaries}) == len(summaries) == 2
    assert not it.changes()  # of a summary no fact is made
    await it.bench.run(it.command(command_id="c3"))
    assert not it.changes()


async def test_the_offline_model_tells_what_it_understood_in_the_turns(it: Consolidating) -> None:
    it.model = OfflineCompletions(sink=Spent())  # type: ignore[assignment]
    it.build()
    await log(it, 1, 2, 3, 4)
    await tell(it, 4)
    await it.bench.run(it.command())
    (summary,) = proposed(it)
    for word in ("Stripe", "Oslo", "dog", "jazz"):
        assert word in summary.content


class Spent:
    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None:
        return None


async def test_summaries_are_no_episodes_for_other_steps(it: Consolidating) -> None:
    keeper = episode("Told of five things", turn="t9", tags=("summary",), turn_ids=("t8", "t9"), retrieval_count=9)
    old = keeper.model_copy(update={"occurred_at": NOW.replace(year=2025), "consolidated_at": NOW})
    (dense,) = await it.bench.embedder.embed([old.content], tenant_id="acme")
    await it.bench.store.insert("episodes", [Point(old.episode_id, old.to_payload(), dense, old.content)])
    await it.bench.run(it.command())
    await it.bench.run(it.command("digest", command_id="c2"))
    assert (it.changes(), it.model.asked, await it.digest()) == ([], [], None)

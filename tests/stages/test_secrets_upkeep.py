"""Secrets beyond the turn: what commands bring, and what models make of many records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.adapters.ports import Point
from memstream.schemas import ids
from memstream.schemas.collections import LABELS
from memstream.schemas.commands import CommandResult
from memstream.schemas.facts import FactUpdated
from memstream.schemas.labels import TurnLabel
from memstream.schemas.topics import COMMANDS, FACTS_UPDATED, RESULTS
from tests.support.consolidation_world import Consolidating, in_session_log, proposal
from tests.support.embedded_stage import Bench, open_bench
from tests.support.record_builders import NOW, episode
from tests.support.reflector_world import command, reflector

CARD = "4000 0566 5566 5556"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[Consolidating]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield Consolidating(bench)
    await bench.store.close()


def new(content: str, reason: str = "") -> dict[str, object]:
    return {"action": "new", "subject": "user", "content": content, "category": "knowledge", "reason": reason}


async def test_what_a_command_brings_is_masked_and_labelled(bench: Bench) -> None:
    card, mail = new(f"Has the card {CARD}", f"it said {CARD}"), new("Reads mail at ana@example.com")
    await bench.run(command(bench, card, mail))
    first, second = (FactUpdated.read(value) for value in bench.values(FACTS_UPDATED.name))
    assert (first.fact.content, first.fact.sensitivity) == ("Has the card [card]", "internal")
    assert (second.fact.content, second.fact.sensitivity) == ("Reads mail at ana@example.com", "secret")
    assert CARD not in repr(bench.sent)
    [row] = await bench.store.lexical("facts", tenant_id="acme", text="reads", limit=1)
    assert row.payload["sensitivity"] == "secret"


async def test_the_result_of_a_refused_command_repeats_no_secret(bench: Bench) -> None:
    await bench.run(command(bench, command_id="c2", kind=f"pay {CARD}"))
    [result] = [CommandResult.read(value) for value in bench.values(RESULTS.name)]
    assert result.error is not None
    assert "[card]" in result.error.message
    assert CARD not in repr(bench.sent)


async def secret_episode(it: Consolidating, content: str) -> None:
    made = episode(content, turn="hidden", sensitivity="secret")
    [vector] = await it.bench.embedder.embed([content], tenant_id="acme")
    await it.bench.store.insert("episodes", [Point(made.episode_id, made.to_payload(), vector, content)])


async def test_secret_episodes_have_a_prompt_of_their_own(it: Consolidating) -> None:
    await it.episodes("Drank tea", "Bought tea")
    await secret_episode(it, "Has sarcoidosis")
    it.model.answer = lambda shown: {"facts": [proposal(content=f"Said {CARD}")]}
    await it.bench.run(it.command())
    await it.bench.run(it.command(command_id="c2"))
    plain, secret = sorted(it.model.asked, key=lambda shown: "sarcoidosis" in shown)
    assert "Drank tea" in plain
    assert "sarcoidosis" not in plain
    assert "Has sarcoidosis" in secret
    assert "tea" not in secret
    assert CARD not in repr(it.bench.values(COMMANDS.name)) + repr(it.bench.sent)
    assert "[card]" in repr(it.bench.values(COMMANDS.name))


async def test_a_turn_with_a_label_is_left_out_of_summaries(it: Consolidating) -> None:
    """Even where the session log does not follow the label yet."""
    said = {"t1": "I ran.", "t2": "I have sarcoidosis.", "t3": "It rained.", "t4": "I was wet.", "t5": "Next year."}
    await in_session_log(it, {turn: {"content": text} for turn, text in said.items()}, session="s1")
    label = TurnLabel(
        label_id=ids.label_id("acme/u1/s1", "t2"),
        tenant_id="acme",
        user_id="u1",
        session_id="s1",
        turn_id="t2",
        messages=(0,),
        sensitivity="secret",
        at=NOW,
    )
    await it.bench.store.put(LABELS, [Point(label.label_id, label.to_payload())])
    it.model.answers["summary"] = lambda shown: {"text": "Ran, rained and was wet the next year: ana@example.com"}
    for _ in said:
        await it.bench.run(it.turn())
    await it.bench.run(it.command())
    [shown] = [shown for shown in it.model.asked if "I ran." in shown]
    assert "sarcoidosis" not in shown
    [summary] = [value.decode() for value in it.bench.values(COMMANDS.name) if b"episodes.record" in value]
    assert '"sensitivity":"secret"' in summary.replace(" ", ""), "the address in it is labelled"

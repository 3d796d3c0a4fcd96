"""Consolidation and the reflector on one store: proposals become facts, and readers find them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.recall.context import ContextRequest, ContextService
from memstream.recall.record_reader import RecordReader
from memstream.recall.service import RecallPort, RecallResult
from memstream.schemas.facts import WAITS_FOR
from tests.support.applied_proposals import Both, open_both
from tests.support.record_builders import NOW, OWNER, stored_fact


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    both = await open_both(tmp_path)
    yield both
    await both.it.bench.store.close()


async def test_a_judgement_is_carried_out_and_a_run_finds_nothing_more(both: Both) -> None:
    google, tea, chess = await both.it.facts("Works at Google", "Likes tea", "Plays chess")
    waiting = [
        stored_fact(content, turn=f"p{n}", changes={"state": "pending", "metadata": {WAITS_FOR: known.fact_id}})
        for n, (content, known) in enumerate(
            (("Works at Stripe", google), ("Likes milk", tea), ("Plays a game of chess", chess)), start=5
        )
    ]
    await both.it.store(*waiting)

    def judge(shown: str) -> dict[str, list[dict[str, str]]]:
        known = {"Works at Stripe": "supersede", "Likes milk": "coexist", "Plays a game of chess": "duplicate"}
        lines = shown.split("\n")
        pairs = [(lines[n - 3].strip("[]"), line[5:]) for n, line in enumerate(lines) if line.startswith("new: ")]
        return {"judgements": [{"pair_id": p, "decision": known[new], "reason": "so"} for p, new in pairs]}

    both.it.model.answers["judge"] = judge  # type: ignore[assignment]
    await both.it.bench.run(both.it.turn(0, pending_fact_ids=tuple(each.fact_id for each in waiting)))
    await both.it.remind()
    (question,) = both.it.reminders("judge")
    await both.it.bench.run(both.it.command("judge", question.command_id))
    await both.apply()
    assert await both.states() == {
        "Works at Google": "superseded",
        "Works at Stripe": "active",
        "Likes tea": "active",
        "Likes milk": "active",
        "Plays chess": "active",
        "Plays a game of chess": "superseded",
    }
    facts = await both.it.bench.facts()
    assert facts["Works at Google"].superseded_by == facts["Works at Stripe"].fact_id
    assert {each["verdict"] for each in both.reflecting.changes()} == {"applied"}
    await both.it.bench.run(both.it.command(command_id="c2"))
    assert both.it.row().runs[-1].status == "nothing"
    assert both.it.model.tasks == ["judge"]


async def test_what_is_pruned_goes_and_what_is_merged_keeps_what_proves_it(both: Both) -> None:
    facts = await both.it.facts(
        "Owns a canoe", "Owns a kayak", *(f"Met colleague {n}" for n in range(16)), "Has a cat", "Has a cat named Miso"
    )
    names = {fact.content: f"f{n}" for n, fact in enumerate(sorted(facts, key=lambda f: (f.recorded_at, f.fact_id)), 1)}
    both.it.model.answers["prune"] = lambda shown: {
        "removals": [{"fact_id": names["Has a cat"], "reason": "redundant"}],
        "merges": [
            {
                "source_fact_ids": [names["Owns a kayak"], names["Owns a canoe"]],
                "merged_content": "Owns a canoe and a kayak",
                "reason": "one statement",
            }
        ],
    }
    await both.it.bench.run(both.it.command("prune", args={"force": True}))
    await both.apply()
    states = await both.states()
    assert (states["Has a cat"], states["Has a cat named Miso"]) == ("expired", "active")
    assert (states["Owns a canoe and a kayak"], states["Owns a canoe"]) == ("active", "superseded")
    merged = (await both.it.bench.facts())["Owns a canoe and a kayak"]
    by_content = {fact.content: fact for fact in facts}
    assert merged.fact_id == by_content["Owns a kayak"].fact_id
    assert {each.turn_id for each in merged.evidence} == {
        each.turn_id for content in ("Owns a canoe", "Owns a kayak") for each in by_content[content].evidence
    }


class NothingRecalled:
    """A recall that finds no record and shows only the digest."""

    async def recall(self, request: object, *, now: object) -> RecallResult:
        return RecallResult((), ())


async def test_a_digest_is_read_in_a_context(both: Both) -> None:
    await both.it.facts("Works at Stripe")
    both.it.model.answers["digest"] = lambda shown: {"text": "Ana works at Stripe."}
    await both.it.bench.run(both.it.command("digest"))
    reading = RecordReader(store=both.it.bench.store)
    recall: RecallPort = NothingRecalled()  # type: ignore[assignment]
    contexts = ContextService(recall=recall, digests=reading, mark=lambda: "0123456789abcdef")
    context = await contexts.context(ContextRequest("acme", OWNER), now=NOW)
    assert "Summary:\nAna works at Stripe." in context.text
    digest = await reading.digest("acme", OWNER)
    assert digest is not None
    assert context.shown["digest"] == (digest.digest_id,)
    assert await reading.digest("other", OWNER) is None
    past = await contexts.context(ContextRequest("acme", OWNER, as_of=NOW), now=NOW)
    assert past.text == ""

"""How a pending fact is settled: by a judgement, or without a model."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memstream.memory.facts.conflict import Neighbours
from memstream.memory.facts.pending import judge_without_model, settle_pending
from memstream.memory.facts.proposals import ProposalOutcome, settle
from memstream.memory.facts.statements import statement_from_change
from memstream.memory.facts.transitions import Stamp, Transition, create_pending, invalidate, reinforce, supersede
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.commands import Change
from memstream.schemas.facts import UNCONFIRMED, Decision, StoredFact
from tests.support.record_builders import NOW, OWNER, statement, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="command-1", embedder="hashing")
POLICY = MemoryPolicy()
WHY: dict[str, Any] = {"reason": "", "decision": Decision(stage="zones")}
KNOWN = stored_fact("Prefers aisle seats", turn="t1", number=1)


def waiting(content: str = "Prefers window seats", number: int = 2, **fields: Any) -> StoredFact:
    said = statement(content, turn=f"t{number}", number=number, **fields)
    return create_pending(said, STAMP, waits_for=KNOWN.fact_id, **WHY).fact


def done(transitions: tuple[Transition, ...]) -> list[tuple[str, str, str]]:
    return [(each.action, each.fact.content, each.fact.state) for each in transitions]


def judged(
    pending: StoredFact, *known: StoredFact, judgement: str, compared_hash: str | None = None
) -> ProposalOutcome:
    change = Change(
        action="judge",
        target_fact_id=pending.fact_id,
        source_fact_ids=tuple(each.fact_id for each in known),
        judgement=judgement,  # type: ignore[arg-type]
        compared_hash=compared_hash,
    )
    said = statement_from_change(
        change,
        cause="command-1/0",
        tenant_id="acme",
        owner=OWNER,
        issued_at=NOW,
        episodes=(),
        target=pending,
        policy=POLICY,
    )
    return settle(change, said, targets=(pending, *known), neighbours=Neighbours(), stamp=STAMP, policy=POLICY)


def test_a_pending_fact_names_what_it_waits_for_until_it_is_settled() -> None:
    pending = waiting()
    assert (pending.state, pending.waits_for, pending.version) == ("pending", KNOWN.fact_id, 1)
    assert pending.public().waits_for == KNOWN.fact_id  # so facts that are rebuilt know it too
    for judgement in ("coexist", "supersede", "duplicate"):
        settled = settle_pending(pending, KNOWN, judgement, STAMP, POLICY, why="")  # type: ignore[arg-type]
        (fact,) = (each.fact for each in settled if each.fact.fact_id == pending.fact_id)
        assert (fact.metadata, fact.waits_for, fact.version) == ({}, None, 2)


def test_coexist_approves_it_and_leaves_the_other() -> None:
    (approved,) = settle_pending(waiting(), KNOWN, "coexist", STAMP, POLICY, why="seats differ by flight")
    assert (approved.action, approved.fact.state, approved.reason) == ("approved", "active", "seats differ by flight")
    assert (approved.decision.stage, approved.decision.other_fact_id) == ("judge", KNOWN.fact_id)


def test_supersede_closes_the_other_first_and_links_both_ways() -> None:
    pending = waiting()
    closed, approved = settle_pending(pending, KNOWN, "supersede", STAMP, POLICY, why="")
    assert done((closed, approved)) == [
        ("superseded", KNOWN.content, "superseded"),
        ("approved", pending.content, "active"),
    ]
    assert (closed.fact.superseded_by, approved.fact.supersedes) == (pending.fact_id, KNOWN.fact_id)
    assert closed.fact.valid_to == approved.fact.valid_from
    assert closed.fact.evidence == KNOWN.evidence


def test_duplicate_closes_it_and_loses_no_evidence() -> None:
    pending = waiting()
    gone, again = settle_pending(pending, KNOWN, "duplicate", STAMP, POLICY, why="")
    assert done((gone, again)) == [
        ("superseded", pending.content, "superseded"),
        ("reinforced", KNOWN.content, "active"),
    ]
    assert (gone.fact.superseded_by, gone.fact.valid_to) == (KNOWN.fact_id, pending.valid_from)
    assert again.fact.evidence == (*KNOWN.evidence, *pending.evidence)
    known_too = again.fact
    assert [each.action for each in settle_pending(pending, known_too, "duplicate", STAMP, POLICY, why="")] == [
        "superseded"
    ]


def test_a_late_one_does_not_take_the_place_of_what_was_said_since() -> None:
    heard = reinforce(KNOWN, statement(KNOWN.content, turn="t9", number=9), STAMP, POLICY.confidence, **WHY)
    assert heard is not None
    (history,) = settle_pending(waiting(), heard.fact, "supersede", STAMP, POLICY, why="")
    assert (history.action, history.fact.state, history.fact.superseded_by) == ("superseded", "superseded", None)
    assert history.fact.valid_to == max(KNOWN.valid_from, waiting().valid_from)


def test_what_was_told_ahead_speaks_from_the_time_it_begins() -> None:
    heard = reinforce(KNOWN, statement(KNOWN.content, turn="t9", number=9), STAMP, POLICY.confidence, **WHY)
    assert heard is not None
    ahead = waiting(valid_from=NOW + timedelta(hours=5))
    closed, approved = settle_pending(ahead, heard.fact, "supersede", STAMP, POLICY, why="")
    assert (closed.action, approved.action) == ("superseded", "approved")
    assert closed.fact.valid_to == ahead.valid_from


@pytest.mark.parametrize("judgement", ["supersede", "coexist"])
def test_when_the_other_is_closed_meanwhile_it_is_believed(judgement: str) -> None:
    closed = invalidate(KNOWN, STAMP, **WHY).fact
    settled = judged(waiting(), closed, judgement=judgement)
    assert (settled.verdict, done(settled.transitions)) == (
        "applied",
        [("approved", "Prefers window seats", "active")],
    )
    assert settled.transitions[0].fact.supersedes is None
    assert judged(waiting(), judgement="coexist").verdict == "applied"


def test_a_duplicate_of_what_was_closed_meanwhile_is_not_believed_either() -> None:
    closed = supersede(KNOWN, STAMP, by=None, valid_to=NOW + timedelta(hours=1), **WHY).fact
    settled = judged(waiting(), closed, judgement="duplicate")
    assert done(settled.transitions) == [("superseded", "Prefers window seats", "superseded")]
    assert settled.transitions[0].fact.superseded_by == KNOWN.fact_id


@pytest.mark.parametrize("state", ["active", "superseded", "invalidated", "expired", "forgotten"])
@pytest.mark.parametrize("judgement", ["supersede", "coexist", "duplicate"])
def test_what_is_pending_no_more_is_stale(state: str, judgement: str) -> None:
    settled = judged(waiting().model_copy(update={"state": state}), KNOWN, judgement=judgement)
    assert (settled.verdict, settled.transitions) == ("stale", ())


@pytest.mark.parametrize("judgement", ["supersede", "coexist", "duplicate"])
def test_what_its_user_has_not_confirmed_is_not_judged(judgement: str) -> None:
    unsaid = waiting()
    unsaid = unsaid.model_copy(update={"metadata": {**unsaid.metadata, UNCONFIRMED: True}})
    settled = judged(unsaid, KNOWN, judgement=judgement)
    assert (settled.verdict, settled.transitions) == ("refused", ())
    assert "not confirmed" in settled.reason


@pytest.mark.parametrize("judgement", ["supersede", "coexist", "duplicate"])
def test_a_judgement_about_another_text_is_stale(judgement: str) -> None:
    seen = KNOWN.content_hash
    assert judged(waiting(), KNOWN, judgement=judgement, compared_hash=seen).verdict == "applied"
    reworded = KNOWN.model_copy(update={"content": "Prefers exit rows", "content_hash": "0" * 64})
    settled = judged(waiting(), reworded, judgement=judgement, compared_hash=seen)
    assert (settled.verdict, settled.transitions) == ("stale", ())
    assert judged(waiting(), judgement="coexist", compared_hash=seen).verdict == "applied"


def test_what_has_not_begun_stays_pending_unless_it_is_a_duplicate() -> None:
    ahead = waiting(valid_from=STAMP.now + timedelta(seconds=1))
    for judgement in ("coexist", "supersede"):
        assert judged(ahead, KNOWN, judgement=judgement).verdict == "refused"
    assert judged(ahead, KNOWN, judgement="duplicate").verdict == "applied"
    assert judged(waiting(valid_from=STAMP.now), KNOWN, judgement="coexist").verdict == "applied"


def test_what_needs_no_model() -> None:
    pending, later = waiting(), NOW + timedelta(days=9)
    closed = supersede(KNOWN, STAMP, by=None, valid_to=later, **WHY).fact
    same = stored_fact("prefers  WINDOW seats", turn="t0")
    assert judge_without_model(pending, KNOWN, later) is None
    assert judge_without_model(pending, None, later) == "coexist"
    assert judge_without_model(pending, closed, later) == "coexist"
    assert judge_without_model(pending, same, later) == "duplicate"
    assert judge_without_model(pending, waiting(number=3), later) == "duplicate"
    assert judge_without_model(pending, waiting("Prefers middle seats", number=3), later) is None


def test_what_has_not_begun_waits_for_its_time() -> None:
    begins = NOW + timedelta(days=3)
    ahead = waiting(valid_from=begins)
    assert judge_without_model(ahead, None, begins - timedelta(microseconds=1)) is None
    assert judge_without_model(ahead, None, begins) == "coexist"


def test_what_has_begun_takes_the_place_of_what_it_rules_out() -> None:
    begins = NOW + timedelta(days=3)
    here = stored_fact("Lives in Prague", turn="t0")
    ahead = waiting("Lives in Vienna", valid_from=begins)
    assert judge_without_model(ahead, here, begins - timedelta(seconds=1)) is None
    assert judge_without_model(ahead, here, begins) == "supersede"
    assert judge_without_model(waiting("Speaks Dutch", valid_from=begins), here, begins) is None


def test_it_takes_the_place_of_what_it_waited_for_first_and_of_its_rivals() -> None:
    pending = waiting(number=3)
    rival = stored_fact("Prefers seats at the back", turn="t2", number=2)
    first, second, approved = settle_pending(pending, KNOWN, "supersede", STAMP, POLICY, why="", rivals=(rival,))
    assert [each.fact.fact_id for each in (first, second)] == [KNOWN.fact_id, rival.fact_id]
    assert {each.fact.superseded_by for each in (first, second)} == {pending.fact_id}
    assert (approved.fact.state, approved.fact.supersedes) == ("active", KNOWN.fact_id)


def test_a_row_that_was_said_since_gives_way_to_an_approved_one_or_makes_it_history() -> None:
    ahead, said_since = waiting("Lives in Vienna"), stored_fact("Lives in Brno", turn="t3", number=3)
    (history,) = settle_pending(ahead, None, "coexist", STAMP, POLICY, why="", rivals=(said_since,))
    assert (history.action, history.fact.superseded_by) == ("superseded", None)
    begun = waiting("Lives in Vienna", valid_from=NOW + timedelta(hours=1))
    closed, approved = settle_pending(begun, None, "coexist", STAMP, POLICY, why="", rivals=(said_since,))
    assert (closed.fact.superseded_by, approved.fact.supersedes) == (begun.fact_id, said_since.fact_id)


@pytest.mark.parametrize(
    "fields",
    [
        {"target_fact_id": "a", "source_fact_ids": ("b",)},
        {"source_fact_ids": ("b",), "judgement": "coexist"},
        {"target_fact_id": "a", "judgement": "supersede"},
        {"target_fact_id": "a", "judgement": "duplicate"},
        {"target_fact_id": "a", "source_fact_ids": ("b", "c"), "judgement": "coexist"},
        {"target_fact_id": "a", "source_fact_ids": ("b",), "judgement": "maybe"},
    ],
)
def test_a_judgement_that_is_not_whole_is_no_command(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="judge"):
        Change(action="judge", **fields)


def test_nothing_judges_an_unconfirmed_fact_but_its_user_or_a_person() -> None:
    said = statement("Prefers window seats", turn="t2", number=2, unconfirmed=True)
    pending = create_pending(said, STAMP, waits_for=None, **WHY).fact
    assert judge_without_model(pending, None, STAMP.now) is None
    assert judge_without_model(
        create_pending(statement("Prefers tea"), STAMP, waits_for=None, **WHY).fact, None, STAMP.now
    )

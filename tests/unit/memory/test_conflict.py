"""How a replaced or corrected statement changes facts: the rules one by one (docs/reference/records.md)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.similarity import NearFact, cosine
from memstream.memory.facts.statements import Statement
from memstream.memory.facts.transitions import Stamp, Transition, invalidate, prune, supersede
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import Decision, StoredFact
from tests.support.record_builders import NOW, statement, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="c2", embedder="hashing")
POLICY = MemoryPolicy()
OLD = stored_fact("Works at Google", turn="t1", number=1)


def settle(new: Statement, *, makes_fact: bool = True, **neighbours: object) -> tuple[Transition, ...]:
    found = Neighbours(**neighbours)  # type: ignore[arg-type]
    return carry_out(resolve(new, found, POLICY, now=STAMP.now, makes_fact=makes_fact), new, STAMP, POLICY)


def stripe(number: int = 2, **fields: object) -> Statement:
    return statement("Works at Stripe", turn=f"t{number}", number=number, **fields)


def test_a_replacement_is_two_events_the_old_row_first_linked_both_ways() -> None:
    closed, opened = settle(stripe(), replaced=OLD)
    assert (closed.action, closed.fact.fact_id, closed.fact.version) == ("superseded", OLD.fact_id, 2)
    assert (opened.action, opened.fact.version, opened.before) == ("new", 1, None)
    assert closed.fact.superseded_by == opened.fact.fact_id
    assert opened.fact.supersedes == OLD.fact_id
    assert closed.fact.valid_to == opened.fact.valid_from == stripe().occurred_at
    assert closed.fact.evidence == OLD.evidence
    assert (closed.decision.stage, closed.decision.other_fact_id) == ("replaces", opened.fact.fact_id)
    assert opened.decision.other_fact_id == OLD.fact_id


def test_a_new_statement_dated_earlier_still_closes_where_the_old_one_began() -> None:
    closed, opened = settle(stripe(valid_from=NOW - timedelta(days=9)), replaced=OLD)
    assert closed.fact.valid_to == OLD.valid_from
    assert opened.fact.valid_from == NOW - timedelta(days=9)


def test_a_retraction_closes_without_a_successor() -> None:
    (closed,) = settle(stripe(), makes_fact=False, replaced=OLD)
    assert (closed.fact.state, closed.fact.superseded_by) == ("superseded", None)
    assert closed.fact.valid_to == stripe().occurred_at


def test_a_replacement_by_what_is_known_already_reinforces_that() -> None:
    known = stored_fact("works at stripe", turn="t0", number=0)
    closed, again = settle(stripe(), replaced=OLD, equal=known)
    assert closed.fact.superseded_by == known.fact_id
    assert (again.action, again.fact.fact_id, again.fact.version) == ("reinforced", known.fact_id, 2)
    assert again.fact.supersedes == OLD.fact_id
    assert again.fact.content == "works at stripe"


def test_a_correction_was_never_true() -> None:
    closed, opened = settle(stripe(is_correction=True), replaced=OLD)
    assert (closed.action, closed.fact.state) == ("invalidated", "invalidated")
    assert (closed.fact.expired_at, closed.fact.valid_to) == (STAMP.now, None)
    assert closed.fact.valid_from == OLD.valid_from
    assert closed.fact.superseded_by == opened.fact.fact_id
    assert opened.fact.supersedes == OLD.fact_id
    assert opened.fact.valid_from == OLD.valid_from


def test_a_corrections_own_date_wins_and_it_is_never_late() -> None:
    newer = stored_fact("Works at Google", turn="t9", number=9)
    closed, opened = settle(stripe(is_correction=True, valid_from=NOW), replaced=newer)
    assert closed.fact.state == "invalidated"
    assert opened.fact.valid_from == NOW


def test_a_late_turn_becomes_history() -> None:
    newer = stored_fact("Works at Google", turn="t9", number=9)
    (history,) = settle(stripe(), replaced=newer)
    assert (history.action, history.fact.state, history.fact.version) == ("superseded", "superseded", 1)
    assert history.before is None
    assert history.fact.valid_to == newer.valid_from
    assert (history.fact.supersedes, history.fact.superseded_by) == (None, None)


def test_one_newer_row_makes_history_of_what_older_ones_would_give_way_to() -> None:
    newer = stored_fact("Works at Google", turn="t9", number=9)
    older = stored_fact("Works at Acme", turn="t1", number=1)
    (history,) = settle(stripe(5), near=(NearFact(older, 0.5), NearFact(newer, 0.5)))
    assert (history.before, history.fact.state) == (None, "superseded")
    assert history.fact.valid_to == newer.valid_from


def test_late_goes_by_the_turn_and_the_newest_evidence_not_by_the_date_told() -> None:
    closed, _ = settle(stripe(valid_from=NOW - timedelta(days=400)), replaced=OLD)
    assert closed.fact.state == "superseded"
    heard_again = stored_fact(
        "Works at Google",
        changes={
            "evidence": (*OLD.evidence, OLD.evidence[0].model_copy(update={"occurred_at": NOW + timedelta(days=3)})),
        },
    )
    (history,) = settle(stripe(), replaced=heard_again)
    assert history.fact.state == "superseded"
    assert history.fact.content == "Works at Stripe"


def test_of_two_told_beginnings_the_earlier_one_is_history() -> None:
    old = stored_fact("Works at Google", turn="t1", number=1, valid_from=NOW - timedelta(days=100))
    assert old.valid_from_told
    for named in ({"replaced": old}, {"near": (NearFact(old, 0.5),)}):
        (history,) = settle(stripe(valid_from=NOW - timedelta(days=400)), **named)
        assert (history.before, history.fact.state, history.fact.valid_from_told) == (None, "superseded", True)
        assert history.fact.valid_to == old.valid_from
        closed, _ = settle(stripe(valid_from=NOW - timedelta(days=100)), **named)
        assert closed.fact.state == "superseded"
    (history,) = settle(stripe(valid_from=NOW - timedelta(days=400), valid_to=NOW - timedelta(days=300)), replaced=old)
    assert history.fact.valid_to == NOW - timedelta(days=300)


def test_an_assumed_begin_never_makes_another_late() -> None:
    assert not OLD.valid_from_told
    closed, opened = settle(stripe(valid_from=OLD.valid_from - timedelta(days=7)), near=(NearFact(OLD, 0.5),))
    assert (closed.action, opened.fact.valid_from_told) == ("superseded", True)
    told = stored_fact("Works at Google", turn="t1", number=1, valid_from=NOW + timedelta(days=3))
    closed, opened = settle(stripe(), replaced=told)
    assert (closed.action, opened.fact.valid_from_told) == ("superseded", False)


def test_what_has_ended_may_become_true_again() -> None:
    over = stored_fact("Works at Stripe", turn="t0", number=0, valid_to=NOW - timedelta(days=3))
    for named in ({"equal": over}, {"near": (NearFact(over, 1.0),)}, {"replaced": over}):
        (opened,) = settle(stripe(), **named)
        assert (opened.action, opened.fact.state, opened.decision.stage) == ("new", "active", "admit")
    (again,) = settle(stripe(valid_from=NOW - timedelta(days=4)), equal=over)
    assert again.action == "reinforced"  # it speaks of the time before the end
    assert settle(stripe(), makes_fact=False, replaced=over) == ()
    closed, _ = settle(stripe(is_correction=True), replaced=stored_fact("Works at Google", valid_to=NOW))
    assert closed.action == "invalidated"


def test_closing_keeps_an_earlier_end_and_no_row_closes_before_it_was_recorded() -> None:
    ends = NOW + timedelta(days=2)
    closed, _ = settle(
        stripe(valid_from=NOW + timedelta(hours=5)), replaced=stored_fact("Works at Google", valid_to=ends)
    )
    assert closed.fact.valid_to == NOW + timedelta(hours=5)
    row = stored_fact("Works at Google", changes={"valid_to": ends, "recorded_at": STAMP.now + timedelta(hours=1)})
    gone = supersede(row, STAMP, by=None, valid_to=NOW + timedelta(days=9), reason="", decision=Decision(stage="x"))
    assert (gone.fact.valid_to, gone.fact.closed_at) == (ends, row.recorded_at)
    false = invalidate(row, STAMP, reason="", decision=Decision(stage="x"))
    pruned = prune(row, STAMP, reason="", decision=Decision(stage="x"))
    assert false.fact.expired_at == pruned.fact.expired_at == row.recorded_at


def test_a_late_turn_takes_nothing_back_and_reinforces_what_is_equal() -> None:
    newer = stored_fact("Works at Google", turn="t9", number=9)
    assert settle(stripe(), makes_fact=False, replaced=newer) == ()
    known = stored_fact("Works at Stripe", turn="t0", number=0)
    (again,) = settle(stripe(), replaced=newer, equal=known)
    assert (again.action, again.fact.supersedes) == ("reinforced", None)


def test_replacing_the_same_statement_is_saying_it_again() -> None:
    (again,) = settle(statement("works at GOOGLE", turn="t2", number=2), replaced=OLD, equal=OLD)
    assert (again.action, again.fact.fact_id) == ("reinforced", OLD.fact_id)


def test_an_equal_row_is_reinforced_and_a_duplicate_changes_nothing() -> None:
    (again,) = settle(statement("Works at Google", turn="t2", number=2), equal=OLD)
    assert (again.action, again.decision.stage) == ("reinforced", "exact")
    assert settle(statement("Works at Google", turn="t1", number=1), equal=again.fact) == ()


def test_what_makes_no_fact_and_replaces_none_does_nothing() -> None:
    assert settle(stripe(), makes_fact=False, equal=OLD) == ()


def near(content: str, similarity: float | None) -> NearFact:
    return NearFact(stored_fact(content), similarity)


@pytest.mark.parametrize(
    ("similarity", "zone"),
    [(0.95, "HOT"), (0.949, "NEAR-DUP"), (0.85, "NEAR-DUP"), (0.41, "CONFLICT-CHECK"), (0.40, "COLD"), (-1, "COLD")],
)
def test_the_decision_tells_zone_similarity_and_the_other_fact(similarity: float, zone: str) -> None:
    (opened,) = settle(statement("Speaks French"), near=(near("Speaks Spanish", similarity), near("Has a dog", -1.0)))
    assert (opened.action, opened.fact.state) == ("new", "active")
    assert (opened.decision.zone, opened.decision.similarity) == (zone, similarity)
    assert opened.decision.other_fact_id == near("Speaks Spanish", 0).fact.fact_id


def test_without_neighbours_it_is_cold() -> None:
    (opened,) = settle(stripe())
    assert (opened.decision.zone, opened.decision.similarity, opened.decision.other_fact_id) == ("COLD", None, None)


def test_cosine() -> None:
    assert cosine([1, 0], [0, 2]) == 0
    assert cosine([1, 1], [2, 2]) == pytest.approx(1)
    assert cosine([0, 0], [1, 1]) == 0


def test_rows_are_left_as_they_were() -> None:
    before = OLD.model_dump_json()
    settle(stripe(), replaced=OLD)
    assert StoredFact.read(before) == OLD

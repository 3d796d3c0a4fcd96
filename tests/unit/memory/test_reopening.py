"""Rows that an earlier version closed: the state and end before closing are not in them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memstream.memory.facts.conflict import Neighbours
from memstream.memory.facts.reopening import hand_row_on, reopen_row, stays_closed
from memstream.memory.facts.transitions import Stamp, Transition
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import FactState, StoredFact
from tests.support.record_builders import NOW, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="d1", embedder="hashing")
STRIPE = stored_fact("Works at Stripe", turn="t2", number=2, changes={"state": "forgotten"})
ENDS = NOW + timedelta(days=9)


def closed(state: FactState) -> StoredFact:
    by = {"state": state, "superseded_by": STRIPE.fact_id, "valid_to": ENDS}
    return stored_fact("Works at Google", turn="t1", changes=by)


@pytest.mark.parametrize(("state", "end"), [("superseded", None), ("invalidated", ENDS)])
def test_a_row_of_an_earlier_version_comes_back(state: FactState, end: object) -> None:
    row = closed(state)
    assert stays_closed(row, STRIPE) is None
    made = reopen_row(row, Neighbours(), STAMP, MemoryPolicy(), forgotten=STRIPE)
    assert isinstance(made, Transition)
    assert (made.fact.state, made.fact.superseded_by, made.fact.valid_to) == ("active", None, end)


def test_a_merged_row_of_an_earlier_version_is_known_by_its_evidence() -> None:
    row = closed("superseded")
    merged = STRIPE.model_copy(update={"evidence": (*row.evidence, *STRIPE.evidence)})
    found = stays_closed(row, merged)
    assert found is not None
    assert found.why == "merged"


def test_a_row_that_is_handed_on_keeps_the_end_that_it_had() -> None:
    later = stored_fact("Works at Adobe", turn="t3", number=3, changes={"valid_from": NOW + timedelta(days=2)})
    made = hand_row_on(closed("invalidated"), STAMP, forgotten=STRIPE, successor=later)
    assert (made.fact.state, made.fact.superseded_by) == ("superseded", later.fact_id)
    assert made.fact.valid_to == later.valid_from
    assert made.fact.before_closing is not None
    assert made.fact.before_closing.valid_to == ENDS

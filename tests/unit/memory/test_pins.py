"""Pins of facts: which facts can be pinned, how many, and that a pin changes nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts.conflict import Neighbours
from memstream.memory.facts.edits import EditRefusal, FactEditOutcome, pin_fact, unpin_fact
from memstream.memory.facts.reopening import reopen_row
from memstream.memory.facts.transitions import Stamp, Transition, merge, supersede
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.edits.facts import PINNED_FACTS_MAX
from memstream.schemas.facts import Decision, FactState, StoredFact, Trust
from tests.support.record_builders import NOW, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="e1", embedder="hashing")
DECISION = Decision(stage="edit")
STRIPE = stored_fact("Works at Stripe", turn="t9", number=9)
CHANGED = {"version", "applied", "pinned_at"}


def pinned(number: int, **changes: object) -> StoredFact:
    return stored_fact(f"Likes dish {number}", turn=f"t{number}", changes={"pinned_at": NOW, **changes})


def changed(found: FactEditOutcome | EditRefusal) -> StoredFact:
    assert isinstance(found, FactEditOutcome)
    (made,) = found.transitions
    assert made.action == "updated"
    return made.fact


@given(
    st.floats(0, 1),
    st.integers(0, 99),
    st.sampled_from(get_args(Trust)),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
def test_pin_then_unpin_is_as_before(confidence: float, count: int, trust: Trust, metadata: dict[str, int]) -> None:
    fact = stored_fact(
        changes={"confidence": confidence, "reinforcement_count": count, "trust": trust, "metadata": metadata}
    )
    once = changed(pin_fact(fact, (), STAMP, reason=""))
    assert (once.pinned_at, once.version) == (STAMP.now, fact.version + 1)
    assert once.model_dump(exclude=CHANGED) == fact.model_dump(exclude=CHANGED)
    back = changed(unpin_fact(once, STAMP, reason=""))
    assert back.model_dump(exclude=CHANGED - {"pinned_at"}) == fact.model_dump(exclude=CHANGED - {"pinned_at"})


def test_a_repeated_edit_changes_nothing() -> None:
    assert pin_fact(pinned(1), [pinned(1)], STAMP, reason="") == FactEditOutcome(pinned(1).fact_id)
    assert unpin_fact(STRIPE, STAMP, reason="") == FactEditOutcome(STRIPE.fact_id)


@pytest.mark.parametrize("state", [each for each in get_args(FactState) if each != "active"])
def test_only_an_active_fact_is_pinned(state: FactState) -> None:
    found = pin_fact(stored_fact(changes={"state": state}), (), STAMP, reason="")
    assert isinstance(found, EditRefusal)
    assert (found.code, f"is {state}: only active facts are pinned" in found.message) == ("stale", True)


def test_a_fact_that_has_ended_is_not_pinned_and_takes_no_place() -> None:
    over = NOW + timedelta(hours=1)
    found = pin_fact(stored_fact(changes={"valid_to": over}), (), STAMP, reason="")
    assert isinstance(found, EditRefusal)
    assert (found.code, "has ended" in found.message) == ("stale", True)
    others = [pinned(n, valid_to=over if n == 0 else None) for n in range(PINNED_FACTS_MAX)]
    assert changed(pin_fact(STRIPE, others, STAMP, reason="")).is_pinned


def test_beyond_the_limit_the_refusal_names_the_pinned_facts() -> None:
    others = [pinned(n) for n in range(PINNED_FACTS_MAX)]
    assert changed(pin_fact(STRIPE, others[1:], STAMP, reason="")).is_pinned
    found = pin_fact(STRIPE, others, STAMP, reason="")
    assert isinstance(found, EditRefusal)
    assert (found.code, f"at most {PINNED_FACTS_MAX} pinned facts: unpin one of" in found.message) == ("pins", True)
    assert all(each.fact_id in found.message for each in others)


def test_a_pin_waits_while_its_fact_is_closed() -> None:
    closed = supersede(
        pinned(1), STAMP, by=STRIPE.fact_id, valid_to=NOW + timedelta(hours=1), reason="", decision=DECISION
    ).fact
    back = reopen_row(closed, Neighbours(), STAMP, MemoryPolicy(), forgotten=STRIPE)
    assert isinstance(back, Transition)
    assert (closed.is_pinned, back.fact.is_pinned) == (False, True)
    assert changed(unpin_fact(closed, STAMP, reason="")).pinned_at is None


@pytest.mark.parametrize("first", [True, False])
def test_what_a_person_merges_keeps_the_pin(first: bool) -> None:
    facts = (pinned(1), stored_fact("Likes dish 2", turn="t2"))
    *_, survivor = merge(
        facts if first else facts[::-1], content="Likes dishes", predicate=None, confidence=None, stamp=STAMP,
        reason="", stage="edit",
    )  # fmt: skip
    assert survivor.fact.is_pinned

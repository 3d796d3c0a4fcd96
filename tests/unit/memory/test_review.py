"""A person's decision about a quarantined or pending fact."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memstream.memory.facts.conflict import Neighbours
from memstream.memory.facts.review import approve_fact, reject_fact
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.transitions import Stamp, Transition
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="d1", embedder="hashing")
STRIPE = stored_fact("Works at Stripe", turn="t1")


def held(content: str, state: str = "quarantined", **changes: Any) -> StoredFact:
    return stored_fact(content, turn="t2", number=2, changes={"state": state, **changes})


def approve(fact: StoredFact, *near: StoredFact, known: StoredFact | None = None) -> list[tuple[str, str]]:
    equal = next((each for each in near if each.content_hash == fact.content_hash), None)
    neighbours = Neighbours(equal=equal, near=tuple(NearFact(each) for each in near))
    done = approve_fact(fact, known=known, neighbours=neighbours, stamp=STAMP, policy=MemoryPolicy())
    return [(done.verdict, ""), *map(_told, done.transitions)] if done.transitions else [(done.verdict, "")]


def _told(change: Transition) -> tuple[str, str]:
    return change.action, f"{change.fact.content}: {change.fact.state}"


@pytest.mark.parametrize("state", ["quarantined", "pending"])
def test_what_it_contradicts_closes(state: str) -> None:
    fact = held("Works at Google", state)
    assert approve(fact, STRIPE) == [
        ("applied", ""),
        ("superseded", "Works at Stripe: superseded"),
        ("approved", "Works at Google: active"),
    ]


def test_a_pending_one_closes_what_it_waits_for_whatever_the_texts_say() -> None:
    tea = stored_fact("Collects stamps", turn="t1")
    fact = held("Collects records", "pending", metadata={"waits_for": tea.fact_id})
    assert approve(fact, tea, known=tea)[1:] == [
        ("superseded", "Collects stamps: superseded"),
        ("approved", "Collects records: active"),
    ]


@pytest.mark.parametrize("state", ["quarantined", "pending"])
def test_what_another_fact_says_already_becomes_that_fact(state: str) -> None:
    assert approve(held("works at stripe", state), STRIPE)[1:] in (
        [("reinforced", "Works at Stripe: active"), ("superseded", "works at stripe: superseded")],
        [("superseded", "works at stripe: superseded"), ("reinforced", "Works at Stripe: active")],
    )


def test_what_a_model_would_weigh_a_person_has_weighed() -> None:
    assert approve(held("Might move to Stripe"), STRIPE)[1:] == [("approved", "Might move to Stripe: active")]


@pytest.mark.parametrize("state", ["active", "superseded", "invalidated", "expired", "forgotten"])
def test_anything_else_is_stale(state: str) -> None:
    fact = held("Works at Google", state)
    assert approve(fact, STRIPE) == [("stale", "")]
    assert reject_fact(fact, STAMP).verdict == "stale"


@pytest.mark.parametrize("state", ["quarantined", "pending"])
def test_what_has_not_begun_waits(state: str) -> None:
    assert approve(held("Works at Google", state, valid_from=NOW + timedelta(days=9)), STRIPE) == [("refused", "")]


@pytest.mark.parametrize("state", ["quarantined", "pending"])
def test_what_is_rejected_is_forgotten(state: str) -> None:
    (gone,) = reject_fact(held("Works at Google", state), STAMP, why="no").transitions
    assert (gone.action, gone.fact.state, gone.reason, gone.fact.expired_at) == (
        "forgotten",
        "forgotten",
        "no",
        STAMP.now,
    )

"""The formula of each transition, and that applying a transition twice changes nothing more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts import transitions
from memstream.memory.facts.transitions import Stamp
from memstream.memory.policies import ConfidencePolicy
from memstream.schemas.facts import Decision, StoredFact
from tests.support.record_builders import NOW, statement, stored_fact

LATER = NOW + timedelta(hours=1)
STAMP = Stamp(now=LATER, cause="c2", embedder="hashing")
WHY: dict[str, object] = {"reason": "why", "decision": Decision(stage="exact")}
POLICY = ConfidencePolicy()


def again(fact: StoredFact, turn: str, number: int = 2, **fields: object) -> transitions.Transition | None:
    said = statement(fact.content, turn=turn, number=number, **fields)
    return transitions.reinforce(fact, said, STAMP, POLICY, **WHY)  # type: ignore[arg-type]


def test_a_new_fact() -> None:
    fact = stored_fact("Works at  Stripe")
    assert (fact.version, fact.state, fact.confidence, fact.reinforcement_count) == (1, "active", 0.8, 0)
    assert fact.valid_from == fact.evidence[0].occurred_at
    assert fact.applied == ("test",)
    assert StoredFact.read(fact.to_bytes()) == fact


def test_reinforcement_adds_confidence_and_count_once_per_turn() -> None:
    change = again(stored_fact(), "t2")
    assert change is not None
    assert (change.action, change.fact.version, change.fact.confidence) == ("reinforced", 2, 0.85)
    assert (change.fact.reinforcement_count, change.fact.last_reinforced_at) == (1, LATER)
    assert change.before is not None
    assert change.before.version == 1
    assert change.fact.applied == ("test", "c2")
    assert again(change.fact, "t2") is None
    assert again(change.fact, "t1") is None


def test_confidence_never_passes_one_and_never_falls() -> None:
    change = again(stored_fact(changes={"confidence": 0.98}), "t2")
    assert change is not None
    assert change.fact.confidence == 1.0


def test_a_user_who_confirms_what_the_assistant_said_makes_it_his_own() -> None:
    change = again(stored_fact(source_role="assistant"), "t2")
    assert change is not None
    assert change.fact.trust == "user"
    change = again(stored_fact(), "t2", source_role="assistant")
    assert change is not None
    assert change.fact.trust == "user"


@given(st.lists(st.integers(0, 90), min_size=1, max_size=200))
def test_evidence_keeps_both_ends_and_the_count_goes_on(turns: list[int]) -> None:
    fact = stored_fact("Likes tea", turn=f"t{turns[0]}", number=turns[0])
    said = {turns[0]}
    for turn in turns[1:]:
        change = again(fact, f"t{turn}", number=turn)
        known = any(each.turn_id == f"t{turn}" for each in fact.evidence)
        assert (change is None) == known
        if change is not None:
            fact = change.fact
            said.add(turn)
    times = [each.occurred_at for each in fact.evidence]
    assert times == sorted(times)
    assert len(times) <= 64
    if len(said) <= 64:
        assert len(times) == len(said)
        assert fact.reinforcement_count == len(said) - 1
    else:
        kept = {int(each.turn_id[1:]) for each in fact.evidence}
        assert set(sorted(said)[:32]) <= kept
        assert set(sorted(said)[-32:]) <= kept


def test_update_keeps_the_row() -> None:
    said = statement("Works at Google in Zurich", turn="t2", number=2)
    change = transitions.update(stored_fact(), said, STAMP, **WHY)  # type: ignore[arg-type]
    assert (change.action, change.fact.version, change.fact.state) == ("updated", 2, "active")
    assert change.fact.fact_id == stored_fact().fact_id
    assert change.fact.content_hash == said.content_hash
    assert change.fact.reinforcement_count == 1


def test_supersede_closes_in_the_world_and_invalidate_in_our_store() -> None:
    closed = transitions.supersede(stored_fact(), STAMP, by="other", valid_to=LATER, **WHY)  # type: ignore[arg-type]
    assert (closed.fact.state, closed.fact.superseded_by) == ("superseded", "other")
    assert (closed.fact.valid_to, closed.fact.expired_at) == (LATER, None)
    assert closed.fact.evidence == stored_fact().evidence
    never = transitions.invalidate(stored_fact(), STAMP, by="other", **WHY)  # type: ignore[arg-type]
    assert (never.fact.state, never.fact.superseded_by) == ("invalidated", "other")
    assert (never.fact.valid_to, never.fact.expired_at) == (None, LATER)
    pruned = transitions.prune(stored_fact(), STAMP, **WHY)  # type: ignore[arg-type]
    assert (pruned.action, pruned.fact.state, pruned.fact.expired_at) == ("pruned", "expired", LATER)


def test_a_merge_keeps_the_first_and_all_evidence() -> None:
    sources = [stored_fact(text, turn=f"t{n}", number=n) for n, text in enumerate(("A", "B", "C"), start=1)]
    *gone, kept = transitions.merge(
        sources, content="A, B and C", predicate=None, confidence=None, stamp=STAMP, reason="", stage="proposal"
    )
    assert [change.action for change in (*gone, kept)] == ["merged"] * 3
    assert [change.fact.state for change in gone] == ["superseded"] * 2
    assert all(change.fact.superseded_by == kept.fact.fact_id for change in gone)
    assert all(change.fact.valid_to == change.fact.valid_from for change in gone)
    assert (kept.fact.fact_id, kept.fact.state, kept.fact.content) == (sources[0].fact_id, "active", "A, B and C")
    assert [each.turn_id for each in kept.fact.evidence] == ["t1", "t2", "t3"]
    assert kept.fact.reinforcement_count == 2


@pytest.mark.parametrize("repeats", [1, 100])
def test_applied_holds_the_last_sixty_four_causes_each_once(repeats: int) -> None:
    fact = stored_fact()
    for n in range(100):
        for _ in range(repeats if n == 0 else 1):
            change = transitions.prune(fact, Stamp(now=LATER, cause=f"c{n}", embedder="e"), **WHY)  # type: ignore[arg-type]
            fact = change.fact
    assert fact.applied == tuple(f"c{n}" for n in range(36, 100))


def test_of_a_hundred_turns_the_first_and_the_last_thirty_two_are_kept() -> None:
    fact = stored_fact("Likes tea", turn="t1", number=1)
    for turn in range(2, 101):
        change = again(fact, f"t{turn}", number=turn)
        assert change is not None
        fact = change.fact
    assert [each.turn_id for each in fact.evidence] == [f"t{n}" for n in (*range(1, 33), *range(69, 101))]
    assert fact.reinforcement_count == 99
    assert StoredFact.read(fact.to_bytes()) == fact

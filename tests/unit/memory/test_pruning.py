from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import PrunePolicy
from memstream.memory.upkeep.pruning import (
    MergeProposal,
    Removal,
    classify_reason,
    find_required_facts,
    is_prune_due,
    prune_proposals,
    select_next_facts,
    sort_key,
)
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, stored_fact

POLICY = PrunePolicy()


def fact(content: str, *, turn: str = "t1", **changes: object) -> StoredFact:
    return stored_fact(content, turn=turn, changes={"confidence": 0.5, **changes})


OLD = fact("Likes tea")
NEWER = fact("Likes green tea", turn="t2", recorded_at=NOW + timedelta(days=1))
OTHER = fact("Owns a boat", turn="t3")
SURE = fact("Likes tea", confidence=0.8)
OFTEN = fact("Likes tea", reinforcement_count=5)
PINNED = fact("Likes tea", pinned_at=NOW)


@pytest.mark.parametrize(
    ("active", "changed", "policy", "expected"),
    [
        (20, 5, POLICY, True),
        (19, 5, POLICY, False),
        (20, 4, POLICY, False),
        (500, 500, PrunePolicy(facts=0), False),
    ],
)
def test_when_it_is_worth_a_call(active: int, changed: int, policy: PrunePolicy, expected: bool) -> None:
    assert is_prune_due(active, changed, policy) is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("redundant: said by f2", "redundant"),
        ("Contradicted by a newer fact", "contradicted"),
        ("noise of one session", "noise"),
        ("too vague", "vague"),
        ("outdated", "contradicted"),
        ("I do not like it", None),
        ("", None),
    ],
)
def test_reasons_are_told_by_their_words(reason: str, expected: str | None) -> None:
    assert classify_reason(reason) == expected


@pytest.mark.parametrize(
    ("it", "why", "standing", "goes"),
    [
        (OLD, "contradicted", [NEWER], True),
        (NEWER, "contradicted", [OLD], False),  # nothing is newer
        (OLD, "redundant", [NEWER], True),
        (NEWER, "redundant", [OLD], False),  # it says more
        (OLD, "noise", [], True),
        (OLD, "vague", [], True),
        (OLD, None, [NEWER], False),
        (SURE, "noise", [NEWER], False),
        (SURE, "vague", [NEWER], False),
        (SURE, "redundant", [NEWER], True),
        (SURE, "contradicted", [NEWER], True),
        (OFTEN, "noise", [NEWER], False),
        (OFTEN, "redundant", [NEWER], False),
        (OFTEN, "contradicted", [NEWER], True),
        (PINNED, "contradicted", [NEWER], False),
        (PINNED, "redundant", [NEWER], False),
        (PINNED, "noise", [], False),
    ],
)
def test_what_may_go(it: StoredFact, why: str | None, standing: list[StoredFact], goes: bool) -> None:
    assert (find_required_facts(it, why, standing, POLICY) is not None) is goes  # type: ignore[arg-type]


@given(
    st.sampled_from(["contradicted", "redundant", "noise", "vague", None]),
    st.integers(0, 20),
    st.floats(0, 1),
    st.data(),
)
def test_what_is_protected(why: str | None, reinforced: int, confidence: float, data: st.DataObject) -> None:
    it = fact("Likes tea", reinforcement_count=reinforced, confidence=confidence)
    standing = data.draw(st.lists(st.sampled_from([NEWER, OTHER]), unique_by=lambda each: each.fact_id))
    if find_required_facts(it, why, standing, POLICY) is None:  # type: ignore[arg-type]
        return
    if reinforced >= POLICY.protected_reinforcements:
        assert why == "contradicted"
    if confidence >= POLICY.protected_confidence:
        assert why in ("contradicted", "redundant")
    if why in ("contradicted", "redundant"):
        assert NEWER in standing


FACTS = {"f1": OLD, "f2": NEWER, "f3": OTHER, "f4": fact("Has a sister", turn="t4", subject="anna")}


def test_what_a_removal_leans_on_stays() -> None:
    found = prune_proposals([Removal("f1", "redundant"), Removal("f2", "noise")], [], facts=FACTS, policy=POLICY)
    assert [change.target_fact_id for change in found.changes] == [OLD.fact_id]
    assert found.changes[0].expected_version == OLD.version
    assert found.dropped == {"twice": 1}


@pytest.mark.parametrize("reason", ["redundant", "contradicted"])
def test_nothing_is_removed_for_the_sake_of_what_is_less_trusted(reason: str) -> None:
    facts = {"f1": OLD, "f2": NEWER.model_copy(update={"trust": "assistant"})}
    found = prune_proposals([Removal("f1", reason)], [], facts=facts, policy=POLICY)
    assert (found.changes, found.dropped) == ((), {"protected": 1})


@pytest.mark.parametrize(
    ("merge", "dropped"),
    [
        (MergeProposal(("f1", "f2"), "Likes tea, green above all", ""), {}),
        (MergeProposal(("f1",), "Likes tea", ""), {"too_few_sources": 1}),
        (MergeProposal(("f1", "f1"), "Likes tea", ""), {"too_few_sources": 1}),
        (MergeProposal(("f1", "f9"), "Likes tea", ""), {"unknown_fact": 1}),
        (MergeProposal(("f1", "f4"), "Likes tea", ""), {"other_subjects": 1}),
        (MergeProposal(("f1", "f2"), " ", ""), {"invalid": 1}),
        (MergeProposal(("f1", "f2"), "x" * 2_001, ""), {"invalid": 1}),
    ],
)
def test_merges(merge: MergeProposal, dropped: dict[str, int]) -> None:
    found = prune_proposals([], [merge], facts=FACTS, policy=POLICY)
    assert found.dropped == dropped
    assert [change.source_fact_ids for change in found.changes] == ([] if dropped else [(OLD.fact_id, NEWER.fact_id)])


def test_a_fact_is_touched_once_and_merged_rather_than_removed() -> None:
    found = prune_proposals(
        [Removal("f1", "noise"), Removal("f3", "noise"), Removal("f3", "vague")],
        [MergeProposal(("f2", "f1"), "Likes tea", ""), MergeProposal(("f1", "f3"), "Likes boats", "")],
        facts=FACTS,
        policy=POLICY,
    )
    assert [change.action for change in found.changes] == ["merge", "prune"]
    assert found.dropped == {"twice": 3}


@given(st.integers(2, 40), st.integers(2, 15))
def test_every_fact_is_looked_at_before_one_comes_again(count: int, at_once: int) -> None:
    facts = [fact(f"Owns book {n}", turn=f"t{n}") for n in range(count)]
    policy = PrunePolicy(max_facts=at_once)
    seen: list[StoredFact] = []
    after = ""
    while True:
        shown, after = select_next_facts(facts, after=after, policy=policy)
        assert 1 <= len(shown) <= at_once
        seen += shown
        if not after:
            break
    assert sorted(map(sort_key, seen)) == sorted(map(sort_key, facts))


def test_a_pinned_fact_is_not_merged() -> None:
    merge = MergeProposal(("f1", "f2"), "Likes tea, green above all", "")
    found = prune_proposals([], [merge], facts={"f1": NEWER, "f2": PINNED}, policy=POLICY)
    assert (found.changes, found.dropped) == ((), {"protected": 1})

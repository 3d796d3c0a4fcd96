"""Which candidates an answer has: caps, duplicates across tiers, then properties of any candidates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts.similarity import overlap, words
from memstream.memory.policies import RecallPolicy
from memstream.memory.recall.ranking import Score
from memstream.memory.recall.selection import ScoredMemory, choose, share, sort_by_score, why_left_out
from memstream.schemas.recall import TIERS, Tier

POLICY = RecallPolicy()


def item(tier: Tier, content: str, score: float, name: str = "") -> ScoredMemory:
    return ScoredMemory(tier, name or content, content, Score(("match",), (score,), score))


def answer(candidates: Sequence[ScoredMemory], *, limit: int = 10, tiers: int = 4) -> list[tuple[str, str]]:
    chosen = choose(sort_by_score(candidates), limit=limit, tiers=tiers, policy=POLICY)
    return [(each.tier, each.content) for each in chosen]


CANDIDATES = st.lists(
    st.builds(
        item,
        st.sampled_from(TIERS),
        st.lists(st.sampled_from(["likes", "tea", "works", "at", "stripe", "in", "oslo"]), max_size=5).map(" ".join),
        st.floats(0, 1),
        st.uuids().map(str),
    ),
    max_size=30,
)


@pytest.mark.parametrize(("limit", "tiers", "most"), [(10, 4, 5), (10, 1, 10), (3, 2, 1), (1, 4, 1), (2, 3, 1)])
def test_half_of_the_limit_from_one_tier_unless_it_is_alone(limit: int, tiers: int, most: int) -> None:
    assert share(limit, tiers=tiers) == most


def test_best_first_and_a_tier_that_is_full_makes_room_for_others() -> None:
    facts = [item("semantic", f"fact number{n} about{n}", 0.9 - n / 100) for n in range(4)]
    turns = [item("turns", "said once", 0.1), item("turns", "said twice again", 0.05)]
    assert answer([*turns, *facts], limit=4) == [
        ("semantic", "fact number0 about0"),
        ("semantic", "fact number1 about1"),
        ("turns", "said once"),
        ("turns", "said twice again"),
    ]
    assert len(answer(facts, limit=4, tiers=1)) == 4


def test_the_higher_tier_says_it_whichever_scores_more() -> None:
    candidates = [
        item("turns", "works at Stripe", 0.9),
        item("episodic", "Works at Stripe!", 0.8),
        item("working", "Works at Stripe", 0.7),
        item("semantic", "Works at Stripe", 0.2),
    ]
    assert answer(candidates) == [("semantic", "Works at Stripe")]
    assert answer(candidates[:3]) == [("working", "Works at Stripe")]
    assert answer(candidates[:2]) == [("episodic", "Works at Stripe!")]


def test_a_long_message_is_not_lost_to_a_fact_that_it_contains() -> None:
    said = "Since May I work at Stripe, and my sister moved to Oslo with her two cats"
    candidates = [item("semantic", "work at Stripe", 0.9), item("turns", said, 0.5)]
    assert ("turns", said) in answer(candidates)


def test_more_than_the_bound_is_a_duplicate_and_the_bound_itself_is_not() -> None:
    fact = item("semantic", "a b c x y", 0.9)
    assert len(answer([fact, item("turns", "a b c d e", 0.5)])) == 2, "3 of 5 is 0.6"
    assert len(answer([fact, item("turns", "a b c d", 0.5)])) == 1


def test_nothing_goes_for_an_item_that_is_not_answered() -> None:
    many = [item("episodic", f"event{n} of{n}", 0.9) for n in range(5)]
    said, fact = item("turns", "works at Stripe", 0.5), item("semantic", "works at Stripe now", 0.1)
    assert ("turns", "works at Stripe") in answer([*many, said, fact], limit=2)


def test_the_very_same_words_are_said_by_the_higher_tier_though_it_was_not_good_enough() -> None:
    """A fresh episode scores above the fact of the same observation: ten of them would crowd the facts out."""
    many = [item("episodic", f"event{n} of{n}", 0.9) for n in range(5)]
    said, fact = item("turns", "works at Stripe", 0.5), item("semantic", "works at Stripe", 0.1)
    assert answer([*many, said, fact], limit=2) == [("episodic", "event0 of0"), ("semantic", "works at Stripe")]
    entry = item("working", "works at Stripe", 0.2)
    assert answer([*many, said, fact, entry], limit=2)[1] == ("semantic", "works at Stripe")
    assert answer([*many, said, entry], limit=2)[1] == ("working", "works at Stripe")
    assert answer([*many, said, fact, entry._replace(score=Score((), (), 0.05))], limit=2)[1][0] == "semantic"


def test_what_was_said_twice_is_said_once_by_the_higher_tier() -> None:
    twice = [item("turns", "works at Stripe", 0.9, name) for name in "ab"]
    other, fact = item("turns", "hello there", 0.8), item("semantic", "works at Stripe", 0.1)
    assert answer([*twice, other, fact], limit=4, tiers=4).count(("semantic", "works at Stripe")) == 1
    assert answer([*twice, other, fact], limit=2, tiers=1).count(("semantic", "works at Stripe")) == 1


def test_as_many_as_the_higher_tier_has_room_for() -> None:
    texts = [f"fact{n} about{n}" for n in range(8)]
    twins = [item(tier, text, score - n / 100) for n, text in enumerate(texts)
             for tier, score in (("episodic", 0.9), ("semantic", 0.4))]  # fmt: skip
    alone = [item("turns", f"said{n}", 0.6) for n in range(2)]
    assert answer([*twins, *alone], limit=4) == [
        ("turns", "said0"),
        ("turns", "said1"),
        ("semantic", texts[0]),
        ("semantic", texts[1]),
    ]
    found = answer(twins, limit=8)
    assert sorted(text for _, text in found) == texts, "each once: those without room for their fact as episodes"
    assert [tier for tier, _ in found] == ["episodic"] * 4 + ["semantic"] * 4


def test_who_speaks_instead_of_another_takes_what_it_contains_along() -> None:
    candidates = [
        item("episodic", "works at Stripe", 0.9),
        item("episodic", "at Stripe", 0.8),
        item("turns", "hello there", 0.7),
        item("turns", "good morning", 0.6),
        item("semantic", "works at Stripe", 0.1),
    ]
    assert answer(candidates, limit=4) == [
        ("turns", "hello there"),
        ("turns", "good morning"),
        ("semantic", "works at Stripe"),
    ]


def test_the_same_words_about_another_subject_take_no_place_but_for_a_message() -> None:
    about_tom = item("semantic", "lives in Oslo", 0.1)._replace(subject="tom")
    about_user = item("episodic", "lives in Oslo", 0.9)._replace(subject="user")
    others = [item("turns", f"said {n}", 0.5) for n in range(3)]
    assert answer([about_user, about_tom, *others], limit=2)[0] == ("episodic", "lives in Oslo")
    said = item("turns", "lives in Oslo", 0.9)
    assert answer([said, about_tom, *others], limit=2)[1] == ("semantic", "lives in Oslo")


def test_what_goes_for_a_higher_one_takes_nothing_along() -> None:
    candidates = [
        item("semantic", "a b c d e f g", 0.3),
        item("working", "a b c d x y", 0.4),
        item("episodic", "c d x y", 0.5),
    ]
    assert answer(candidates) == [("episodic", "c d x y"), ("semantic", "a b c d e f g")]


def test_within_a_tier_nothing_is_a_duplicate() -> None:
    assert len(answer([item("turns", "yes", 0.5, "1"), item("turns", "yes", 0.4, "2")])) == 2


@given(CANDIDATES, st.integers(1, 12))
def test_limit_share_order_and_no_duplicate_hold_of_any_candidates(candidates: list[ScoredMemory], limit: int) -> None:
    chosen = choose(sort_by_score(candidates), limit=limit, tiers=4, policy=POLICY)
    assert len(chosen) <= limit
    assert [each.score.total for each in chosen] == sorted((each.score.total for each in chosen), reverse=True)
    for tier in TIERS:
        assert sum(each.tier == tier for each in chosen) <= share(limit, tiers=4)
    for low in chosen:
        for high in chosen:
            if TIERS.index(high.tier) < TIERS.index(low.tier):
                assert overlap(words(low.content), words(high.content)) <= POLICY.duplicate_overlap
    count = {tier: sum(each.tier == tier for each in chosen) for tier in TIERS}
    for each in chosen:
        highest = min((other.tier for other in candidates if other.content == each.content), key=TIERS.index)
        if each.content and highest != each.tier:
            assert count[highest] == share(limit, tiers=4), "it has no room"


@given(CANDIDATES, st.integers(1, 12))
def test_the_order_of_the_candidates_does_not_matter(candidates: list[ScoredMemory], limit: int) -> None:
    turned = sorted(candidates, key=lambda each: each.id)
    assert choose(sort_by_score(turned), limit=limit, tiers=4, policy=POLICY) == choose(
        sort_by_score(candidates), limit=limit, tiers=4, policy=POLICY
    )


def left_out(candidates: Sequence[ScoredMemory], *, limit: int = 10, tiers: int = 4) -> dict[tuple[str, str], str]:
    ordered = sort_by_score(candidates)
    chosen = choose(ordered, limit=limit, tiers=tiers, policy=POLICY)
    found = why_left_out(ordered, chosen, limit=limit, tiers=tiers, policy=POLICY)
    return {(each.tier, each.content): reason if same is None else f"{reason} of {same.content}"
            for each, reason, same in found}  # fmt: skip


def test_each_candidate_that_is_left_out_has_its_reason() -> None:
    facts = [item("semantic", f"fact number{n} about{n}", 0.9 - n / 100) for n in range(3)]
    said = item("turns", "fact number0 about0", 0.95)
    assert left_out([*facts, said, item("turns", "said once", 0.1)], limit=3) == {
        ("turns", "fact number0 about0"): "duplicate of fact number0 about0",
        ("semantic", "fact number1 about1"): "tier_share",
        ("semantic", "fact number2 about2"): "tier_share",
    }
    assert left_out(facts, limit=2, tiers=1) == {("semantic", "fact number2 about2"): "limit"}


@given(CANDIDATES, st.integers(1, 12), st.integers(1, 4))
def test_a_candidate_is_in_the_answer_or_has_a_reason(candidates: list[ScoredMemory], limit: int, tiers: int) -> None:
    ordered = sort_by_score(candidates)
    chosen = choose(ordered, limit=limit, tiers=tiers, policy=POLICY)
    found = [each for each, _, _ in why_left_out(ordered, chosen, limit=limit, tiers=tiers, policy=POLICY)]
    assert sort_by_score([*chosen, *found]) == ordered

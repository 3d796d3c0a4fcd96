from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import DigestPolicy
from memstream.memory.recall.context import tokens
from memstream.memory.upkeep.digest import (
    basis_of,
    choose_episodes,
    choose_facts,
    is_due,
    truncate_to_tokens,
    whole_sentences,
)
from memstream.schemas.digests import Basis, Digest
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, OWNER, episode, stored_fact

POLICY = DigestPolicy(facts=2, episodes=2)


def fact(content: str, reinforced: int = 0, **changes: object) -> StoredFact:
    return stored_fact(content, turn=content, changes={"reinforcement_count": reinforced, **changes})


def digest(basis: Basis) -> Digest:
    return Digest(digest_id="d", tenant_id="acme", owner=OWNER, text="Likes tea.", at=NOW, basis=basis)


@given(st.builds(Basis, facts=st.integers(0, 2), reinforcements=st.integers(0, 2), episodes=st.integers(0, 2)))
def test_made_anew_exactly_when_a_number_has_changed(now: Basis) -> None:
    before = Basis(facts=1, reinforcements=1, episodes=1)
    something = now.facts + now.episodes > 0
    assert is_due(digest(before), now, forced=False) == (something and now != before)
    assert is_due(None, now, forced=False) == something
    assert is_due(digest(before), now, forced=True) == something


def test_what_it_stands_on() -> None:
    later = NOW + timedelta(days=1)
    expected = Basis(facts=2, reinforcements=5, episodes=4, newest=later)
    assert basis_of([fact("a", 2), fact("b", 3, recorded_at=later)], 4) == expected


def test_a_fact_in_the_place_of_another_makes_it_due() -> None:
    before = basis_of([fact("a")], 0)
    after = basis_of([fact("b", recorded_at=NOW + timedelta(days=1))], 0)
    assert is_due(digest(before), after, forced=False)
    assert not is_due(digest(before), before, forced=False)
    assert not is_due(digest(before.model_copy(update={"newest": None})), after, forced=False)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Likes tea. Works at Stripe.", 100, "Likes tea. Works at Stripe."),
        ("Likes tea. Works at Stri", 100, "Likes tea."),
        ("Likes tea. Works at Stripe.", 4, "Likes tea."),
        ("Likes tea and works at Stripe and lives in Oslo.", 4, ""),
        ("Likes tea", 100, "Likes tea"),
        ("… and coffee. Works at Stripe.", 100, "Works at Stripe."),
        (", who likes tea. Works at Stripe!", 100, "Works at Stripe!"),
        ("喜欢茶。住在柏林。在", 100, "喜欢茶。 住在柏林。"),
        ('Said "yes." Then left.', 100, 'Said "yes." Then left.'),
        ("", 100, ""),
    ],
)
def test_only_whole_sentences(text: str, limit: int, expected: str) -> None:
    assert whole_sentences(text, limit) == expected


def test_the_facts_that_were_said_most_often_and_nothing_secret() -> None:
    facts = [fact("often", 9), fact("secret", 99, sensitivity="secret"), fact("never"), fact("once", 1)]
    assert [each.content for each in choose_facts(facts, POLICY)] == ["often", "once"]


def test_the_most_significant_of_the_recent_episodes_oldest_first() -> None:
    def at(content: str, day: int, importance: float) -> dict[str, object]:
        return {"turn": content, "occurred_at": NOW + timedelta(days=day), "importance": importance}

    old = [episode(f"old {n}", **at(f"o{n}", n, 1.0)) for n in range(3)]  # type: ignore[arg-type]
    recent = [
        episode(f"recent {n}", **at(f"r{n}", 10 + n, importance))  # type: ignore[arg-type]
        for n, importance in enumerate((0.6, 0.9, 0.7, 0.95, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6))
    ]
    assert [each.content for each in choose_episodes([*old, *recent], POLICY)] == ["recent 1", "recent 3"]
    assert choose_episodes(recent, DigestPolicy(episodes=0)) == ()


@given(st.text(alphabet="ab .!?\n", max_size=300), st.integers(1, 60))
def test_never_longer_and_nothing_that_was_not_said(text: str, limit: int) -> None:
    kept = truncate_to_tokens(text, limit)
    assert tokens(kept) <= limit
    assert text.strip().split()[: len(kept.split())] == kept.split()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(100, "One is here. Two is there."), (4, "One is here."), (2, "One is"), (1, "One")],
)
def test_whole_sentences_else_words(limit: int, expected: str) -> None:
    assert truncate_to_tokens("One is here. Two is there.", limit) == expected

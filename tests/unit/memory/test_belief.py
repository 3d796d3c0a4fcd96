"""Which episodes are believed, given the facts that state the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts.belief import DENIED, FactClaim, is_episode_believed, is_summary_believed, was_believed
from memstream.schemas.facts import FactState

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)
MORE_THAN = 0.6


def said(content: str, *observations: str, believed: bool = False) -> FactClaim:
    return FactClaim(content, frozenset(observations), believed)


@pytest.mark.parametrize(
    ("sayings", "expected"),
    [
        ([], True),
        ([said("Works at Google", "o1")], False),
        ([said("Works at Google", "o1", believed=True)], True),
        ([said("Works at Google", "o2")], True),
        ([said("Works at Google in Zurich", "o1")], False),
        ([said("Likes search engines", "o1")], True),
        ([said("Works at Google", "o1"), said("works at google since May", "o1", believed=True)], True),
        ([said("Works at Google", "o1"), said("Works at Google", "o2", believed=True)], False),
    ],
    ids=["no fact", "denied", "believed", "another's", "with more detail", "a conclusion", "either", "not its own"],
)
def test_an_episode_stands_unless_all_that_say_it_are_denied(sayings: list[FactClaim], expected: bool) -> None:
    assert is_episode_believed("Works at Google", "o1", sayings, more_than=MORE_THAN) == expected


def test_the_bound_itself_does_not_say_it() -> None:
    assert is_episode_believed("a b c d e", "o1", [said("a b c", "o1")], more_than=MORE_THAN)
    assert not is_episode_believed("a b c d e", "o1", [said("a b c d", "o1")], more_than=MORE_THAN)


@given(st.lists(st.builds(said, st.sampled_from(["a b", "a b c", "x"]), st.sampled_from(["o1", "o2"])), max_size=5))
def test_one_that_is_believed_is_enough(sayings: list[FactClaim]) -> None:
    assert is_episode_believed("a b", "o1", [*sayings, said("a b", "o1", believed=True)], more_than=MORE_THAN)


@pytest.mark.parametrize(
    ("sayings", "expected"),
    [
        ([], True),
        ([("s1", "t1", True)], True),
        ([("s1", "t1", False)], False),
        ([("s1", "t1", True), ("s1", "t2", False)], False),
        ([("s1", "t3", False), ("s2", "t1", False)], True),
    ],
    ids=["no fact", "believed", "denied", "one of two", "of other turns"],
)
def test_a_summary_stands_while_all_that_was_told_in_its_turns_does(
    sayings: list[tuple[str, str, bool]], expected: bool
) -> None:
    told = [FactClaim("Works at Google", frozenset(), each, frozenset({(at, turn)})) for at, turn, each in sayings]
    assert is_summary_believed(frozenset({("s1", "t1"), ("s1", "t2")}), told) == expected


@pytest.mark.parametrize("state", get_args(FactState))
def test_what_is_denied_is_denied_now(state: FactState) -> None:
    assert was_believed(state, valid_to=NOW, expired_at=NOW, valid=NOW, known=NOW) == (state not in DENIED)


@pytest.mark.parametrize(
    ("state", "valid", "known", "expected"),
    [
        ("superseded", -2, 0, True),
        ("superseded", -1, 0, False),
        ("superseded", 0, -2, True),
        ("invalidated", -2, 0, False),
        ("invalidated", 0, -2, True),
        ("invalidated", 0, -1, False),
        ("forgotten", -9, -9, False),
        ("quarantined", -9, -9, False),
    ],
)
def test_of_the_past_the_row_tells(state: FactState, valid: int, known: int, expected: bool) -> None:
    yesterday = NOW - DAY
    at = {"valid": NOW + valid * DAY, "known": NOW + known * DAY}
    assert was_believed(state, valid_to=yesterday, expired_at=yesterday, **at) == expected


def test_an_end_that_no_row_tells_is_over() -> None:
    for state in ("superseded", "invalidated"):
        assert not was_believed(state, valid_to=None, expired_at=None, valid=NOW, known=NOW - DAY)

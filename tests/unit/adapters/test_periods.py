"""The parts of a collection as the aliases tell them, the merges of their answers, and the weights of words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.adapters.ports import StoredPoint
from memstream.adapters.vectors.periods.parts import ended, forgotten, parts_of
from memstream.adapters.vectors.periods.period_merge import by_id, by_score, by_value, exhausted, scored, shares
from memstream.adapters.vectors.periods.period_words import having, rarity
from memstream.schemas.periods import Period

ALIASES = {
    "turns": "turns__hashing_v1",
    "turns_2026q4": "turns__hashing_v1",
    "turns_2027q1": "turns_2027q1__hashing_v1",
    "facts": "facts__hashing_v1",
    "facts_2026q4": "facts__hashing_v1",
}


def test_the_part_of_an_earlier_version_is_one_part_with_its_period() -> None:
    newest, oldest = parts_of("turns", ALIASES)
    assert (newest.name, newest.behind, newest.periods) == (
        "turns_2027q1",
        "turns_2027q1__hashing_v1",
        (Period(2027, 1),),
    )
    assert (oldest.name, oldest.behind, oldest.periods) == ("turns_2026q4", "turns__hashing_v1", (Period(2026, 4),))
    assert ended((newest, oldest), before=Period(2027, 1).begins) == (oldest,)


def test_a_part_that_two_processes_took_over_for_two_periods_ends_with_the_later_one() -> None:
    [part] = parts_of("turns", {"turns": "t", "turns_2026q4": "t", "turns_2027q1": "t"})
    assert (part.name, part.ends) == ("turns_2027q1", Period(2027, 1).ends)
    assert ended([part], before=Period(2026, 4).ends) == ()


def test_a_part_without_a_period_never_ends() -> None:
    [part] = parts_of("turns", {"turns": "turns__hashing_v1"})
    assert (part.name, part.ends) == ("turns", None)
    assert ended([part], before=Period(2999, 1).begins) == ()


def test_only_ended_collections_of_this_kind_without_a_name_are_forgotten() -> None:
    collections = [
        *ALIASES.values(),
        "turns_2025q1__hashing_v1",
        "turns_2028q1__hashing_v1",
        "facts_2025q1__x_v1",
        "mine",
    ]
    assert forgotten("turns", collections, ALIASES, before=Period(2027, 1).begins) == ["turns_2025q1__hashing_v1"]


def rows(*values: object) -> list[StoredPoint]:
    return [StoredPoint(f"{place}", {"v": value} if value is not None else {}) for place, value in enumerate(values)]


values = st.lists(st.none() | st.integers(-5, 5), max_size=12)


@given(values, st.integers(0, 12), st.sampled_from(("asc", "desc")), st.none() | st.integers(0, 12))
def test_merged_values_have_the_order_of_one_list(
    every: list[int | None], cut: int, direction: str, limit: int | None
) -> None:
    merged = by_value(
        [rows(*every[:cut]), rows(*every[cut:])],
        field="v",
        kind="integer",
        direction="desc" if direction == "desc" else "asc",
        limit=limit,
    )
    valued = sorted((each for each in every if each is not None), reverse=direction == "desc")
    expected = [*valued, *(each for each in every if each is None)][:limit]
    assert [each.payload.get("v") for each in merged] == expected


def test_times_are_compared_as_times() -> None:
    early, late = "2026-08-01T02:00:00+02:00", "2026-08-01T00:00:01Z"
    merged = by_value([rows(late), rows(early)], field="v", kind="datetime")
    assert [each.payload["v"] for each in merged] == [early, late]


@given(st.lists(st.floats(-1, 1), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_merged_scores_fall(scores: list[float], cut: int, limit: int) -> None:
    points = [StoredPoint(str(place), {}, score) for place, score in enumerate(scores)]
    merged = scored([points[:cut], points[cut:]], limit=limit)
    assert [each.score for each in merged] == sorted(scores, reverse=True)[:limit]


@given(st.lists(st.lists(st.integers(-9, 9), max_size=30), min_size=1, max_size=6), st.integers(1, 20))
def test_the_best_of_shares_and_of_what_was_exhausted_are_the_best_of_all(every: list[list[int]], limit: int) -> None:
    parts = [[StoredPoint("", {}, score) for score in sorted(scores, reverse=True)] for scores in every]
    asked = shares([len(part) for part in parts], limit=limit)
    first = [part[:share] for part, share in zip(parts, asked, strict=True)]
    again = exhausted(first, asked, best=by_score(first, limit=limit), limit=limit)
    both = [part[:limit] if place in again else first[place] for place, part in enumerate(parts)]
    assert [each.score for each in by_score(both, limit=limit)] == [each.score for each in by_score(parts, limit=limit)]


def test_equal_parts_are_asked_for_far_less_than_all() -> None:
    assert shares([500] * 14, limit=100) == [19] * 14
    assert shares([0, 7], limit=100) == [1, 100]
    assert shares([0, 0], limit=3) == [1, 1]


@given(st.lists(st.integers(0, 99), max_size=20, unique=True), st.integers(0, 20))
def test_merged_ids_rise(numbers: list[int], cut: int) -> None:
    points = [StoredPoint(f"{number:02}", {}) for number in numbers]
    assert [each.id for each in by_id([points[:cut], points[cut:]])] == [f"{number:02}" for number in sorted(numbers)]


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_weight_of_a_word_says_how_many_have_it(counts: tuple[int, int]) -> None:
    records, having_it = counts
    assert rarity(records, having_it) > 0
    assert having(records, rarity(records, having_it)) == pytest.approx(having_it, abs=1e-3, rel=1e-6)

"""Links of what was recalled together: they grow by steps up to 1, the weakest make room, and what the cue calls up
activates what it is linked with."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.recall.links import Link, Links, activation, strengthen_links

T0 = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
IDS = [str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))) for n in range(8)]
RECALLS = st.lists(st.lists(st.sampled_from(IDS), max_size=6), max_size=25)
MATCHES = st.dictionaries(st.sampled_from(IDS), st.floats(0, 1))
STEPS = st.floats(0.01, 1)


def every(links: Links) -> list[Link]:
    return list(links.among(IDS))


def weights(links: Links) -> dict[tuple[str, str], float]:
    return {(link.one, link.other): link.weight for link in every(links)}


def after(recalls: list[list[str]], *, step: float = 0.1, keep: int = 100) -> Links:
    links = Links()
    for n, ids in enumerate(recalls):
        links = strengthen_links(links, ids, at=T0 + timedelta(minutes=n), step=step, keep=keep)
    return links


@given(RECALLS, STEPS)
def test_a_weight_is_the_number_of_recalls_together_times_the_step_and_never_above_1(
    recalls: list[list[str]], step: float
) -> None:
    known = weights(after(recalls, step=step))
    for one in IDS:
        for other in IDS:
            together = sum(one in ids and other in ids for ids in recalls)
            if one < other:
                assert known.get((one, other), 0.0) == pytest.approx(min(1.0, together * step), abs=1e-5)
            else:
                assert (one, other) not in known


@given(RECALLS, st.integers(0, 10))
def test_the_number_of_links_is_bounded(recalls: list[list[str]], keep: int) -> None:
    assert len(every(after(recalls, keep=keep))) <= keep


def test_the_weakest_goes_and_of_equal_ones_the_one_that_rested_longest() -> None:
    a, b, c, d = IDS[:4]
    links = after([[a, b], [a, b], [b, c], [c, d]], keep=2)
    assert set(weights(links)) == {tuple(sorted((a, b))), tuple(sorted((c, d)))}


def test_a_new_link_is_not_the_one_that_goes() -> None:
    """It is the weakest: where all others are stronger, nothing new would ever be linked."""
    a, b, c, d = IDS[:4]
    links = after([[a, b], [a, b], [b, c], [b, c], [b, c], [c, d]], keep=2)
    assert weights(links) == {tuple(sorted((b, c))): pytest.approx(0.3), tuple(sorted((c, d))): 0.1}


@given(RECALLS, st.lists(st.sampled_from(IDS), min_size=2, max_size=4, unique=True))
def test_what_was_recalled_together_just_now_is_linked(recalls: list[list[str]], now: list[str]) -> None:
    links = strengthen_links(after(recalls, keep=8), now, at=T0 + timedelta(days=1), step=0.1, keep=8)
    assert set(combinations(sorted(now), 2)) <= set(weights(links))


def test_one_that_rested_makes_room_before_a_weaker_one_that_did_not() -> None:
    """Else the strongest links of what is not believed any more would stay for ever."""
    a, b, c, d, e, f = IDS[:6]
    links = after([[a, b], [a, b]])
    for day, pair in ((100, [c, d]), (101, [e, f])):
        links = strengthen_links(links, pair, at=T0 + timedelta(days=day), step=0.1, keep=2)
    assert set(weights(links)) == {tuple(sorted((c, d))), tuple(sorted((e, f)))}


def test_how_many_have_grown_since() -> None:
    links = after([IDS[:2], IDS[2:4], IDS[:2]])
    assert links.grown_since(None) == 2
    assert links.grown_since(T0 + timedelta(minutes=1)) == 1
    assert links.grown_since(T0 + timedelta(minutes=2)) == 0


def test_a_lower_bound_takes_effect_at_the_next_recall() -> None:
    links = after([IDS[:5]])
    assert len(every(strengthen_links(links, (), at=T0, step=0.1, keep=3))) == 3
    assert every(strengthen_links(links, IDS[:5], at=T0, step=0.1, keep=0)) == []


@given(RECALLS, st.sets(st.sampled_from(IDS)))
def test_those_among_some_are_those_with_both_ends_there(recalls: list[list[str]], ids: set[str]) -> None:
    links = after(recalls)
    assert list(links.among(ids)) == [link for link in every(links) if {link.one, link.other} <= ids]


@given(RECALLS, st.lists(st.sampled_from(IDS), max_size=3))
def test_two_weigh_the_same_unless_a_weight_differs(recalls: list[list[str]], ids: list[str]) -> None:
    before = after(recalls, step=0.5)
    later = strengthen_links(before, ids, at=T0 + timedelta(days=1), step=0.5, keep=100)
    assert before.weighs_as(later) == later.weighs_as(before) == (weights(before) == weights(later))


class TestActivation:
    @given(RECALLS, STEPS, MATCHES)
    def test_is_the_sum_over_the_candidates_that_it_is_linked_with(
        self, recalls: list[list[str]], step: float, match: dict[str, float]
    ) -> None:
        links = after(recalls, step=step)
        known = weights(links)
        reached = activation([links], match)
        for one in IDS:
            sums = [known.get((min(one, other), max(one, other)), 0.0) * match.get(other, 0.0) for other in IDS]
            expected = min(1.0, sum(sums)) if one in match else 0.0
            assert reached.get(one, 0.0) == pytest.approx(expected)
            assert 0.0 <= reached.get(one, 0.0) <= 1.0
        assert set(reached) <= set(match), "who is no candidate gets nothing"

    @given(RECALLS, MATCHES, st.lists(st.sampled_from(IDS), max_size=5))
    def test_a_link_that_grows_lowers_nobody(
        self, recalls: list[list[str]], match: dict[str, float], together: list[str]
    ) -> None:
        links = after(recalls)
        before = activation([links], match)
        later = activation([strengthen_links(links, together, at=T0, step=0.1, keep=100)], match)
        assert all(later[each] >= reached - 1e-12 for each, reached in before.items())

    @given(STEPS, st.floats(0, 1))
    def test_a_link_has_no_direction(self, step: float, match: float) -> None:
        a, b = IDS[:2]
        links = [after([[a, b]], step=step)]
        assert activation(links, {a: match, b: 0.0})[b] == activation(links, {a: 0.0, b: match})[a]

    @given(RECALLS, RECALLS, MATCHES)
    def test_links_of_several_owners_add_up(
        self, mine: list[list[str]], groups: list[list[str]], match: dict[str, float]
    ) -> None:
        one, other = activation([after(mine)], match), activation([after(groups)], match)
        both = activation([after(mine), after(groups)], match)
        for each in both:
            assert both[each] == pytest.approx(min(1.0, one.get(each, 0.0) + other.get(each, 0.0)))

    def test_without_links_nothing_reaches_anybody(self) -> None:
        assert activation([], dict.fromkeys(IDS, 1.0)) == {}
        assert activation([Links()], dict.fromkeys(IDS, 1.0)) == {}

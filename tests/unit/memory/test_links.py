"""Links of what was recalled together: they grow by steps up to 1, and the weakest make room."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.links import Links, recalled_together

T0 = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
IDS = [str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))) for n in range(8)]
RECALLS = st.lists(st.lists(st.sampled_from(IDS), max_size=6), max_size=25)


def weights(links: Links) -> dict[tuple[str, str], float]:
    return {(link.one, link.other): link.weight for link in links.all()}


def after(recalls: list[list[str]], *, step: float = 0.1, keep: int = 100) -> Links:
    links = Links()
    for n, ids in enumerate(recalls):
        links = recalled_together(links, ids, at=T0 + timedelta(minutes=n), step=step, keep=keep)
    return links


@given(RECALLS, st.floats(0.01, 1))
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
    assert len(after(recalls, keep=keep).all()) <= keep


def test_the_weakest_goes_and_of_equal_ones_the_one_that_rested_longest() -> None:
    a, b, c, d = IDS[:4]
    links = after([[a, b], [a, b], [b, c], [c, d]], keep=2)
    assert set(weights(links)) == {tuple(sorted((a, b))), tuple(sorted((c, d)))}


def test_how_many_have_grown_since() -> None:
    links = after([IDS[:2], IDS[2:4], IDS[:2]])
    assert links.grown_since(None) == 2
    assert links.grown_since(T0 + timedelta(minutes=1)) == 1
    assert links.grown_since(T0 + timedelta(minutes=2)) == 0


def test_a_lower_bound_takes_effect_at_the_next_recall() -> None:
    links = after([IDS[:5]])
    assert len(recalled_together(links, (), at=T0, step=0.1, keep=3).all()) == 3
    assert recalled_together(links, IDS[:5], at=T0, step=0.1, keep=0).all() == ()

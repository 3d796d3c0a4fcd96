"""The order of a reranker, as places and as match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import FusionPolicy
from memstream.memory.recall.fusion import RankedList, fuse
from memstream.recall.service import match_at, reordered


@given(st.lists(st.integers(), unique=True, max_size=12), st.lists(st.integers(-3, 15), max_size=20))
def test_all_stay_the_named_first_the_others_as_they_were(items: list[int], order: list[int]) -> None:
    found = reordered(items, order)
    named = [items[place] for place in dict.fromkeys(order) if 0 <= place < len(items)]
    assert found[: len(named)] == named
    assert found[len(named) :] == [each for each in items if each not in named]


@given(st.integers(1, 30), st.floats(0.5, 100))
def test_an_order_counts_as_a_ranked_list_alone_does(count: int, k: float) -> None:
    ids = [f"{number:03}" for number in range(count)]
    policy = FusionPolicy(k=k)
    alone = fuse([RankedList("lexical", ids)], policy=policy, pool=count)
    for rank, match in enumerate(alone.values()):
        assert abs(match_at(rank, k=k) - match) < 1e-9

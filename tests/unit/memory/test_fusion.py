"""Reciprocal Rank Fusion: worked numbers first, then properties of any lists."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import CLASSIC_FUSION, FusionPolicy, RecallPolicy
from memstream.memory.recall.fusion import Rank, RankedList, fuse, ranks_in

POLICY = FusionPolicy()
IDS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
LISTS = st.tuples(IDS, IDS, IDS).map(
    lambda ids: [RankedList("dense", ids[0]), RankedList("windowed", ids[1]), RankedList("lexical", ids[2])]
)
POLICIES = st.sampled_from([POLICY, CLASSIC_FUSION, FusionPolicy(k=1, dense=3, windowed=0.5, lexical=0.1)])


def test_the_default_is_k_10_and_1_1_2() -> None:
    lists = [RankedList("dense", ["a", "b"]), RankedList("windowed", ["b"]), RankedList("lexical", ["c", "a"])]
    found = fuse(lists, policy=POLICY, pool=10)
    greatest = 1 / 10 + 1 / 10 + 2 / 10
    assert found == {
        "a": pytest.approx((1 / 10 + 2 / 11) / greatest),
        "b": pytest.approx((1 / 11 + 1 / 10) / greatest),
        "c": pytest.approx((2 / 10) / greatest),
    }


def test_classic_is_k_60_all_equal() -> None:
    assert RecallPolicy(profile="classic").fused == CLASSIC_FUSION
    lists = [RankedList("dense", ["a", "b"]), RankedList("lexical", ["b"])]
    found = fuse(lists, policy=CLASSIC_FUSION, pool=10)
    assert found["b"] == pytest.approx((1 / 61 + 1 / 60) / (2 / 60))
    assert found["a"] == pytest.approx((1 / 60) / (2 / 60))


def test_first_in_every_list_is_1_and_a_list_that_is_missing_does_not_lower_it() -> None:
    both = [RankedList("dense", ["a"]), RankedList("lexical", ["a"])]
    assert fuse(both, policy=POLICY, pool=1) == {"a": 1.0}
    assert fuse(both[1:], policy=POLICY, pool=1) == {"a": 1.0}
    assert fuse([*both[:1], RankedList("lexical", [])], policy=POLICY, pool=1) == {"a": pytest.approx(1 / 3)}


def test_equal_ones_stand_by_their_ids_so_that_an_answer_is_the_same_twice() -> None:
    lists = [RankedList("dense", ["b", "d"]), RankedList("lexical", ["a", "c"])]
    assert list(fuse(lists, policy=CLASSIC_FUSION, pool=9)) == ["a", "b", "c", "d"]
    assert list(fuse(lists, policy=CLASSIC_FUSION, pool=3)) == ["a", "b", "c"]


def test_nothing_asked_is_nothing_found() -> None:
    assert fuse([], policy=POLICY, pool=10) == {}


def test_the_ranks_are_told() -> None:
    lists = [RankedList("dense", ["b", "b", "a"]), RankedList("windowed", ["b"]), RankedList("lexical", ["a"])]
    assert ranks_in(lists, "a") == (Rank("dense", 1), Rank("lexical", 0))


def test_what_the_named_speaker_said_gets_a_share_of_the_greatest_besides() -> None:
    lists = [RankedList("dense", ["a", "b"]), RankedList("lexical", ["a", "c", "b"])]
    plain = fuse(lists, policy=POLICY, pool=10)
    found = fuse(lists, policy=POLICY, pool=10, preferred={"b", "elsewhere"})
    greatest = 1 / 10 + 2 / 10
    assert found["b"] == pytest.approx((1 / 11 + 2 / 12 + 0.3 * greatest) / (1.3 * greatest))
    assert found["a"] == pytest.approx(plain["a"] / 1.3)
    assert list(found) == ["b", "a", "c"]
    assert fuse(lists, policy=CLASSIC_FUSION, pool=10, preferred={"b"}) == fuse(
        lists, policy=CLASSIC_FUSION, pool=10
    ), "classic prefers nobody"


@given(LISTS, POLICIES, st.sets(st.sampled_from("abcdefgh")))
def test_a_preference_lifts_its_own_and_leaves_the_order_within_each_side(
    lists: list[RankedList], policy: FusionPolicy, preferred: set[str]
) -> None:
    plain = fuse(lists, policy=policy, pool=100)
    found = fuse(lists, policy=policy, pool=100, preferred=preferred)
    assert found.keys() == plain.keys()
    assert all(0 <= match <= 1 for match in found.values())
    place = {identity: at for at, identity in enumerate(found)}
    for one, other in combinations(plain, 2):
        if plain[one] > plain[other] + 1e-9 and (one in preferred or other not in preferred):
            assert place[one] < place[other]


@given(LISTS, POLICIES)
def test_every_record_is_there_once_best_first_within_0_and_1(lists: list[RankedList], policy: FusionPolicy) -> None:
    fused = fuse(lists, policy=policy, pool=100)
    assert fused.keys() == {identity for each in lists for identity in each.ids}
    assert all(0 < match <= 1 for match in fused.values())
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


@given(LISTS, POLICIES, st.integers(1, 8))
def test_a_smaller_pool_is_the_beginning_of_a_greater(lists: list[RankedList], policy: FusionPolicy, pool: int) -> None:
    assert [*fuse(lists, policy=policy, pool=pool).items()] == [*fuse(lists, policy=policy, pool=100).items()][:pool]


@given(LISTS, POLICIES)
def test_the_order_of_the_lists_does_not_matter(lists: list[RankedList], policy: FusionPolicy) -> None:
    turned = list(reversed(lists))
    assert fuse(turned, policy=policy, pool=9) == pytest.approx(fuse(lists, policy=policy, pool=9))


@given(LISTS, POLICIES, st.sampled_from("abcdefgh"))
def test_moving_up_in_a_list_never_lowers(lists: list[RankedList], policy: FusionPolicy, identity: str) -> None:
    lexical = list(lists[2].ids)
    if identity in lexical:
        up = [identity, *(each for each in lexical if each != identity)]
        before = fuse(lists, policy=policy, pool=9)
        after = fuse([*lists[:2], RankedList("lexical", up)], policy=policy, pool=9)
        assert after[identity] >= before[identity]
        assert all(after[each] <= before[each] + 1e-12 for each in before if each != identity)


@given(LISTS, POLICIES, st.sampled_from([0.5, 2.0, 7.0]))
def test_only_the_proportion_of_weights_matters(lists: list[RankedList], policy: FusionPolicy, times: float) -> None:
    scaled = FusionPolicy(policy.k, policy.dense * times, policy.windowed * times, policy.lexical * times)
    assert fuse(lists, policy=scaled, pool=9) == pytest.approx(fuse(lists, policy=policy, pool=9))


@pytest.mark.parametrize(
    "bad", [{"k": 0}, {"k": float("nan")}, {"lexical": 0, "dense": 0}, {"dense": -1}, {"speaker": -0.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="fusion"):
        FusionPolicy(**bad)

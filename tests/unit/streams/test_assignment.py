"""The assignment of partitions to members, as a pure function: whole, balanced, where it was, the same each time."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.streams.engine.assignment import MemberAssignment, OwnedPartitions, assign

COUNTS = st.integers(0, 60)
NUMBERS = st.frozensets(st.integers(-1, 70), max_size=40)
OWNED = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.builds(OwnedPartitions, generation=st.integers(0, 3), actives=NUMBERS, standbys=NUMBERS),
    min_size=1,
    max_size=9,
)
REPLICAS = st.integers(0, 3)


def fresh(*members: str) -> dict[str, OwnedPartitions]:
    return {member: OwnedPartitions() for member in members}


def kept(assigned: dict[str, MemberAssignment], generation: int = 1) -> dict[str, OwnedPartitions]:
    """What the members say the next time."""
    return {
        member: OwnedPartitions(generation, frozenset(given.actives), frozenset(given.standbys))
        for member, given in assigned.items()
    }


def owners(assigned: dict[str, MemberAssignment]) -> dict[int, str]:
    return {number: member for member, given in assigned.items() for number in given.actives}


def moved(before: dict[str, MemberAssignment], after: dict[str, MemberAssignment]) -> int:
    """How many partitions of members that stay went from one to another."""
    now = owners(after)
    return sum(now[number] != member for number, member in owners(before).items() if member in after)


# ------------------------------------------------------------------------------------------------ whatever they owned
@given(COUNTS, OWNED, REPLICAS)
def test_each_partition_has_one_member(count: int, owned: dict[str, OwnedPartitions], replicas: int) -> None:
    assigned = assign(count, owned, replicas=replicas)
    assert set(assigned) == set(owned)
    assert sorted(chain.from_iterable(given.actives for given in assigned.values())) == list(range(count))


@given(COUNTS, OWNED, REPLICAS)
def test_no_member_has_two_more_than_another(count: int, owned: dict[str, OwnedPartitions], replicas: int) -> None:
    sizes = [len(given.actives) for given in assign(count, owned, replicas=replicas).values()]
    assert max(sizes) - min(sizes) <= 1


@given(COUNTS, OWNED, REPLICAS, st.randoms())
def test_the_order_of_the_members_makes_no_difference(
    count: int, owned: dict[str, OwnedPartitions], replicas: int, chance: random.Random
) -> None:
    shuffled = list(owned.items())
    chance.shuffle(shuffled)
    assert assign(count, dict(shuffled), replicas=replicas) == assign(count, owned, replicas=replicas)


@given(COUNTS, OWNED, REPLICAS)
def test_each_partition_has_its_standbys_at_other_members(
    count: int, owned: dict[str, OwnedPartitions], replicas: int
) -> None:
    assigned = assign(count, owned, replicas=replicas)
    followed = Counter(chain.from_iterable(given.standbys for given in assigned.values()))
    assert all(followed[number] == min(replicas, len(owned) - 1) for number in range(count))
    assert set(followed) <= set(range(count))
    assert all(set(given.actives).isdisjoint(given.standbys) for given in assigned.values())
    assert all(len(set(given.standbys)) == len(given.standbys) for given in assigned.values())


@given(COUNTS, OWNED, REPLICAS)
def test_standbys_are_spread(count: int, owned: dict[str, OwnedPartitions], replicas: int) -> None:
    sizes = [len(given.standbys) for given in assign(count, owned, replicas=replicas).values()]
    assert max(sizes) - min(sizes) <= 2, "one more than balance is possible, and rare"


@given(COUNTS, OWNED, REPLICAS)
def test_a_second_rebalance_moves_nothing(count: int, owned: dict[str, OwnedPartitions], replicas: int) -> None:
    assigned = assign(count, owned, replicas=replicas)
    assert assign(count, kept(assigned), replicas=replicas) == assigned


# ------------------------------------------------------------------------------------------------ joins and leaves
@given(COUNTS, OWNED, st.sets(st.text("AZxz", min_size=1, max_size=2), max_size=5), st.data())
def test_members_that_stay_give_up_only_what_balance_needs(
    count: int, owned: dict[str, OwnedPartitions], joining: set[str], data: st.DataObject
) -> None:
    before = assign(count, owned)
    leaving = data.draw(st.sets(st.sampled_from(sorted(before)), max_size=len(before) - (not joining)))
    staying = {member: had for member, had in kept(before).items() if member not in leaving}
    after = assign(count, staying | fresh(*joining))
    least, one_more = divmod(count, len(after))
    # The most that stays: who has the most keeps one more where the count does not divide.
    sizes = sorted((len(before[member].actives) for member in staying), reverse=True)
    most = sum(min(size, least + (place < one_more)) for place, size in enumerate(sizes))
    assert moved(before, after) == sum(sizes) - most


@given(COUNTS, OWNED.filter(lambda owned: len(owned) > 1), st.integers(0, 2), st.data())
def test_who_comes_back_gets_what_it_had(
    count: int, owned: dict[str, OwnedPartitions], rounds: int, data: st.DataObject
) -> None:
    before = assign(count, owned)
    away = data.draw(st.sampled_from(sorted(before)))
    meanwhile = {member: given for member, given in before.items() if member != away}
    for generation in range(1, 2 + rounds):
        meanwhile = assign(count, kept(meanwhile, generation))
    after = assign(count, kept(meanwhile, 2 + rounds) | {away: kept(before)[away]})
    assert set(after[away].actives) <= set(before[away].actives)
    assert len(after[away].actives) >= count // len(before)


def test_who_was_away_takes_nothing_from_whoever_has_it_now() -> None:
    now = OwnedPartitions(generation=5, actives=frozenset({0, 1}))
    long_ago = OwnedPartitions(generation=2, actives=frozenset({1, 2}))
    assert assign(4, {"b": now, "a": long_ago}) == {"b": MemberAssignment((0, 1)), "a": MemberAssignment((2, 3))}


def test_a_standby_takes_over_where_its_table_is() -> None:
    before = assign(12, fresh("a", "b", "c"), replicas=1)
    after = assign(12, {member: had for member, had in kept(before).items() if member != "a"}, replicas=1)
    for member in ("b", "c"):
        followed = set(before[member].standbys) & set(before["a"].actives)
        assert followed, "a's partitions have standbys at both"
        assert followed <= set(after[member].actives)


def test_more_members_than_partitions_leave_spares() -> None:
    assigned = assign(2, fresh("a", "b", "c"))
    assert sorted(len(given.actives) for given in assigned.values()) == [0, 1, 1]


def test_no_member_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        assign(3, {})

"""The count of waiting turns: what the sessions' rows say, by partition and tenant, whatever moves."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.observer.waiting_count import WaitingCount
from memstream.memory.policies import ObservePolicy

TENANTS = ("acme", "globex")
SESSION = st.tuples(st.sampled_from(TENANTS), st.integers(0, 3))
STEP = st.one_of(
    st.tuples(st.just("set"), SESSION, st.integers(0, 2), st.integers(0, 5)),
    st.tuples(st.just("retain"), st.frozensets(st.integers(0, 2))),
)


@given(st.lists(STEP, max_size=40), st.integers(1, 6))
def test_it_is_the_sum_of_the_sessions(steps: list[tuple[object, ...]], share: int) -> None:
    told: Counter[str] = Counter()
    count = WaitingCount(share=share, changed=lambda tenant, by: told.update({tenant: by}))
    model: dict[str, tuple[int, int]] = {}
    for step in steps:
        match step:
            case ("set", (str(tenant), int(user)), int(partition), int(turns)):
                model[f"{tenant}/u{user}/s"] = (partition, turns)
                count.set(f"{tenant}/u{user}/s", partition, turns)
            case ("retain", frozenset() as kept):
                model = {key: each for key, each in model.items() if each[0] in kept}
                count.retain(kept)
    for tenant in TENANTS:
        mine = [each for key, each in model.items() if key.startswith(f"{tenant}/")]
        for partition in range(3):
            turns = sum(turns for where, turns in mine if where == partition)
            assert count.of(partition, tenant) == turns
            assert count.has_room(partition, tenant) == (turns < share)
        assert told[tenant] == sum(turns for _, turns in mine)


def test_only_the_first_turn_over_the_ceiling_is_told_until_there_is_room() -> None:
    count = WaitingCount(share=1)
    count.set("acme/u/s", 0, 1)
    assert [count.has_room(0, "acme"), count.is_first_over(0, "acme"), count.is_first_over(0, "acme")] == [
        False,
        True,
        False,
    ]
    count.set("acme/u/s", 0, 0)
    assert count.has_room(0, "acme")
    assert count.is_first_over(0, "acme")


def test_without_a_ceiling_there_is_always_room() -> None:
    count = WaitingCount(share=None)
    count.set("acme/u/s", 0, 1_000_000)
    assert count.has_room(0, "acme")


@pytest.mark.parametrize(
    ("turns", "partitions", "share"),
    [(100_000, 12, 8_334), (100_000, 1, 100_000), (5, 12, 1), (0, 12, None), (100_000, 512, 196)],
)
def test_a_partition_has_an_equal_share(turns: int, partitions: int, share: int | None) -> None:
    assert ObservePolicy(waiting_turns=turns).waiting_share(partitions) == share

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.decay import decay, salience
from memstream.memory.policies import DecayPolicy, WorkingSetPolicy

POLICIES = st.builds(DecayPolicy, strategy=st.sampled_from(["power-law", "exponential", "none"]), rate=st.floats(0, 5))


@pytest.mark.parametrize(
    ("strategy", "rate", "elapsed", "expected"),
    [
        ("power-law", 0.5, 0, 1.0),
        ("power-law", 0.5, 1, 2**-0.5),
        ("power-law", 0.5, 3, 0.5),
        ("exponential", 0.5, 2, math.exp(-1)),
        ("none", 0.5, 1_000, 1.0),
    ],
)
def test_the_three_formulas(strategy: str, rate: float, elapsed: int, expected: float) -> None:
    assert decay(elapsed, DecayPolicy(strategy, rate)) == pytest.approx(expected)  # type: ignore[arg-type]


@given(POLICIES, st.integers(0, 10_000))
def test_never_grows_and_stays_within_bounds(policy: DecayPolicy, elapsed: int) -> None:
    assert 0 <= decay(elapsed + 1, policy) <= decay(elapsed, policy) <= 1
    assert salience(0.5, elapsed, policy) == pytest.approx(0.5 * decay(elapsed, policy))


@pytest.mark.parametrize("bad", [{"rate": -1}, {"rate": math.nan}, {"strategy": "linear"}])
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="decay"):
        DecayPolicy(**bad)  # type: ignore[arg-type]


def test_there_is_always_room_that_is_not_pinned() -> None:
    with pytest.raises(ValueError, match="max_pinned"):
        WorkingSetPolicy(capacity=2, max_pinned=2)

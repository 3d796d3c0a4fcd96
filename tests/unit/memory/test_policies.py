"""Checks of policies: an impossible number is refused, and the message says what is allowed."""

from __future__ import annotations

import math
from typing import Literal

import pytest

from memstream.memory.policies import checks

HUGE = 10**400
"""A whole number that no float is as large as: TOML has such."""


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, HUGE])
def test_a_share_lies_between_0_and_1(value: float) -> None:
    checks.unit("a", 0)
    checks.unit("a", 1)
    with pytest.raises(ValueError, match="a must be between 0 and 1"):
        checks.unit("a", value)


@pytest.mark.parametrize("value", [1, -1, math.nan, math.inf, -math.inf])
def test_a_least_is_held_and_a_number_is_one(value: float) -> None:
    checks.at_least("a", 2, 2)
    checks.at_least("a", HUGE, 2)
    with pytest.raises(ValueError, match="a must be 2 or more"):
        checks.at_least("a", value, 2)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_time_is_above_zero(value: float) -> None:
    checks.above_zero("a", 0.001)
    with pytest.raises(ValueError, match="a must be above 0"):
        checks.above_zero("a", value)


@pytest.mark.parametrize("value", [1, 5, HUGE])
def test_both_bounds_are_held(value: int) -> None:
    checks.between("a", 2, 2, 4)
    checks.between("a", 4, 2, 4)
    with pytest.raises(ValueError, match="a must be 2 to 4"):
        checks.between("a", value, 2, 4)


def test_a_word_is_one_of_those_that_are_named() -> None:
    checks.one_of("a", "x", Literal["x", "y"])
    with pytest.raises(ValueError, match="a must be one of x, y, not 'z'"):
        checks.one_of("a", "z", Literal["x", "y"])

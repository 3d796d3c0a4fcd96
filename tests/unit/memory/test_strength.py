"""How memories fade: the formulas written out, then properties of any values."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.decay import (
    STABILITY_MAX_DAYS,
    effective_confidence,
    latest,
    stability_after,
    stability_grown,
    strength,
)

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
UNIT = st.floats(0, 1)
AGES = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=40_000))
DAYS = st.floats(0.01, 10_000)


def days(number: float) -> datetime:
    return NOW - timedelta(days=number)


@given(UNIT, AGES, DAYS)
def test_effective_confidence_is_the_specs_formula(confidence: float, age: timedelta, half_life: float) -> None:
    sure = effective_confidence(confidence, NOW - age, NOW, half_life_days=half_life)
    assert sure == pytest.approx(confidence * 0.5 ** (age.total_seconds() / 86_400 / half_life))
    assert 0.0 <= sure <= confidence


@given(UNIT, AGES, DAYS)
def test_strength_is_the_specs_formula(left: float, age: timedelta, stability: float) -> None:
    now = strength(left, NOW - age, NOW, stability_days=stability)
    assert now == pytest.approx(left * math.exp(-age.total_seconds() / 86_400 / stability))
    assert 0.0 <= now <= left


def test_the_specs_numbers() -> None:
    assert effective_confidence(0.8, days(180), NOW, half_life_days=180) == pytest.approx(0.4)
    assert strength(1.0, days(14), NOW, stability_days=14) == pytest.approx(1 / math.e)
    assert stability_grown(14, growth=1.5) == 21
    assert stability_after(2, first_days=14, growth=1.5) == pytest.approx(31.5)


@given(AGES, AGES, UNIT)
def test_a_recall_never_weakens_and_slows_the_forgetting(age: timedelta, later: timedelta, left: float) -> None:
    """At the recall 1 is left, and from then on every day takes less than before."""
    before = strength(left, NOW - age, NOW + later, stability_days=14)
    recalled = strength(1.0, NOW, NOW + later, stability_days=stability_grown(14, growth=1.5))
    assert recalled >= before


@given(st.integers(-3, 10_000), DAYS, st.floats(1, 10))
def test_stability_is_that_many_recalls_one_by_one_and_has_an_end(recalls: int, first: float, growth: float) -> None:
    built = stability_after(recalls, first_days=first, growth=growth)
    assert first <= built <= STABILITY_MAX_DAYS
    step = first
    for _ in range(min(recalls, 50)):
        step = stability_grown(step, growth=growth)
    if recalls <= 50:
        assert built == pytest.approx(step, rel=1e-6)


def test_what_lies_ahead_is_fresh() -> None:
    assert strength(0.5, days(-3), NOW, stability_days=1) == 0.5
    assert effective_confidence(0.5, days(-3), NOW, half_life_days=1) == 0.5


def test_the_last_of_the_times_there_are() -> None:
    assert latest(days(3), None) == days(3)
    assert latest(days(3), days(5), None, days(1)) == days(1)

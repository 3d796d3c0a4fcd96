"""What the janitor culls and flags: each bound from both sides, and the clock that counts turns."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import HygienePolicy
from memstream.memory.upkeep.hygiene import (
    MARKS,
    TurnClock,
    current_strength,
    is_doubtful,
    is_forgotten,
    is_over_age,
    is_stale,
)
from tests.support.record_builders import NOW, episode, stored_fact

POLICY = HygienePolicy()
SECOND = timedelta(seconds=1)


def days(number: float) -> datetime:
    return NOW - timedelta(days=number)


class TestEpisodes:
    @pytest.mark.parametrize("late", [0, 1], ids=["in time", "over"])
    def test_a_persistent_one_lives_90_days(self, late: int) -> None:
        old = episode("Ran", occurred_at=days(90) + SECOND * (1 - late))
        assert is_over_age(old, now=NOW, old=None, policy=POLICY) == bool(late)

    @pytest.mark.parametrize("late", [0, 1], ids=["in time", "over"])
    def test_or_500_turns(self, late: int) -> None:
        one = episode("Ran", recorded_at=days(3))
        assert is_over_age(one, now=NOW, old=days(3) - SECOND * (1 - late), policy=POLICY) == bool(late)

    @pytest.mark.parametrize(("aged", "turned"), [(True, True), (True, False), (False, True), (False, False)])
    def test_one_bound_or_both_as_is_set(self, aged: bool, turned: bool) -> None:
        one = episode("Ran", occurred_at=days(100 if aged else 10), recorded_at=days(5))
        old = days(4) if turned else days(6)
        assert is_over_age(one, now=NOW, old=old, policy=POLICY) == (aged or turned)
        both = HygienePolicy(episode_bounds="and")
        assert is_over_age(one, now=NOW, old=old, policy=both) == (aged and turned)

    def test_a_bound_of_0_is_none(self) -> None:
        ancient = episode("Ran", occurred_at=days(5_000), recorded_at=days(5_000))
        for bounds in ("or", "and"):
            none = HygienePolicy(episode_days=0, episode_turns=0, episode_bounds=bounds)
            assert not is_over_age(ancient, now=NOW, old=NOW, policy=none)
            assert is_over_age(ancient, now=NOW, old=None, policy=HygienePolicy(episode_turns=0, episode_bounds="and"))

    @given(st.floats(0, 20_000), st.booleans())
    def test_a_permanent_one_is_never_culled_and_stale_from_180_days_on(self, age: float, turned: bool) -> None:
        one = episode("Ran", durability="permanent", occurred_at=days(age), recorded_at=days(age), strength=0.0)
        assert not is_over_age(one, now=NOW, old=NOW if turned else None, policy=POLICY)
        assert not is_forgotten(one, now=NOW, policy=POLICY)
        assert is_stale(one, now=NOW, policy=POLICY) == (NOW - one.occurred_at >= timedelta(days=180))
        assert not is_stale(one, now=NOW, policy=HygienePolicy(stale_days=0))

    def test_a_persistent_one_is_not_stale_but_gone(self) -> None:
        assert not is_stale(episode("Ran", occurred_at=days(400)), now=NOW, policy=POLICY)

    def test_too_faint_is_below_005(self) -> None:
        edge = 14 * math.log(20)  # days until 0.05
        assert not is_forgotten(episode("Ran", occurred_at=days(edge - 0.01)), now=NOW, policy=POLICY)
        assert is_forgotten(episode("Ran", occurred_at=days(edge + 0.01)), now=NOW, policy=POLICY)

    def test_a_recall_begins_the_forgetting_anew(self) -> None:
        one = episode("Ran", occurred_at=days(60), last_accessed_at=days(21), stability=21)
        assert current_strength(one, now=NOW) == pytest.approx(1 / math.e)


class TestFacts:
    def test_sure_enough_is_at_least_01(self) -> None:
        edge = 180 * math.log2(0.8 / 0.1)  # days until 0.1
        young = stored_fact(changes={"confidence": 0.8, "recorded_at": days(edge - 0.1)})
        old = stored_fact(changes={"confidence": 0.8, "recorded_at": days(edge + 0.1)})
        assert is_doubtful(young, now=NOW, half_life_days=180, policy=POLICY) is None
        assert is_doubtful(old, now=NOW, half_life_days=180, policy=POLICY) == pytest.approx(0.1, abs=1e-3)

    def test_the_last_reinforcement_counts_not_the_record(self) -> None:
        fact = stored_fact(changes={"recorded_at": days(3_000), "last_reinforced_at": days(1)})
        assert is_doubtful(fact, now=NOW, half_life_days=180, policy=POLICY) is None

    def test_a_pinned_fact_stays(self) -> None:
        fact = stored_fact(changes={"confidence": 0.0, "pinned_at": NOW})
        assert is_doubtful(fact, now=NOW, half_life_days=180, policy=POLICY) is None

    def test_a_floor_of_0_culls_none(self) -> None:
        fact = stored_fact(changes={"confidence": 0.0})
        assert is_doubtful(fact, now=NOW, half_life_days=180, policy=HygienePolicy(confidence_floor=0)) is None


class TestTurnClock:
    @given(st.integers(1, 700), st.integers(0, 900))
    def test_an_episode_lives_its_turns_and_at_most_a_step_more(self, span: int, turns: int) -> None:
        """Turn n is reflected in second n."""
        clock = TurnClock()
        for turn in range(1, turns + 1):
            clock = clock.ticked(turn * 1_000, span=span)
        assert clock.turns == turns
        assert len(clock.marks) <= MARKS + 2
        before = clock.before(span=span)
        youngest = turns - span  # of the turns that are over
        step = -(-span // MARKS)
        if before is None:
            assert youngest < 1 + step
        else:
            assert youngest - step < round(before.timestamp()) <= youngest

    def test_without_a_bound_it_only_counts(self) -> None:
        clock = TurnClock().ticked(1_000, span=0).ticked(2_000, span=0)
        assert (clock.turns, clock.marks, clock.before(span=0)) == (2, (), None)

    def test_it_tells_times_in_utc(self) -> None:
        clock = TurnClock().ticked(1_000, span=1).ticked(2_000, span=1)
        assert clock.before(span=1) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "bad",
    [
        {"janitor": "often"},
        {"every_hours": 0},
        {"confidence_floor": 1.5},
        {"strength_floor": -0.1},
        {"merge_similarity": 2},
        {"episode_turns": -1},
        {"episode_days": math.inf},
        {"episode_bounds": "xor"},
        {"stale_days": -1},
        {"looked_at": 0},
        {"at_once": 0},
        {"link_step": 2},
        {"links_together": 100},
        {"links_kept": -1},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"hygiene.{next(iter(bad))}"):
        HygienePolicy(**bad)

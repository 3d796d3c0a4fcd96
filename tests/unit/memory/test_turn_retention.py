"""Where a message is kept, and when its period is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.turn_retention import AHEAD, EARLIEST, TurnRetention, log_time, recorded_at
from memstream.schemas.collections import TURNS, spec_of
from memstream.schemas.periods import Period, parse_period, period_collection

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
Q4 = Period(2026, 4)
times = st.integers(1, 7_000 * 365).map(lambda days: datetime(1970, 1, 1, 7, tzinfo=UTC) + timedelta(days=days))
periods = st.builds(Period, st.integers(1971, 8999), st.integers(1, 4))


# ------------------------------------------------------------------------------------------------ periods
@given(times)
def test_each_time_lies_in_exactly_one_period(at: datetime) -> None:
    period = Period.of(at)
    assert period.begins <= at < period.ends
    assert period.next.begins == period.ends
    assert period < period.next


@given(periods)
def test_a_name_says_its_period(period: Period) -> None:
    assert parse_period(period_collection("turns", period)) == ("turns", period)


@pytest.mark.parametrize("name", ["turns", "turns_2026q5", "turns_26q4", "turns_v1", "turns__hashing_v1", "facts_v1"])
def test_another_name_says_none(name: str) -> None:
    assert parse_period(name) is None


def test_the_collection_of_a_period_is_made_as_the_whole_is() -> None:
    whole, part = spec_of(TURNS), spec_of("turns_2026q4")
    assert whole is not None
    assert part is not None
    assert (part.fields, part.has_windows, part.by_period) == (whole.fields, True, False)
    assert part.physical_name("hashing") == "turns_2026q4__hashing_v1"
    assert spec_of("facts_2026q4") is None


def test_a_period_is_that_of_utc() -> None:
    east = datetime.fromisoformat("2027-01-01T01:00:00+02:00")
    assert (str(Period.of(east)), str(Period.of(NOW))) == ("2026q4", "2026q4")


# ------------------------------------------------------------------------------------------------ placing
def test_a_turn_is_kept_by_its_records_time() -> None:
    written = NOW - timedelta(days=300)
    assert recorded_at(written, now=NOW, standing=(Q4,)) == written


@pytest.mark.parametrize("written", [None, datetime(1970, 1, 1, tzinfo=UTC), NOW + timedelta(days=400)])
def test_a_time_that_cannot_be_is_now(written: datetime | None) -> None:
    assert recorded_at(written, now=NOW, standing=()) == NOW


def test_a_worker_whose_clock_is_behind_keeps_a_turn_in_the_newest_period() -> None:
    behind = NOW - timedelta(days=365)
    assert Period.of(recorded_at(NOW, now=behind, standing=(Period(2025, 4), Q4))) == Q4


@given(st.none() | times, times, st.lists(periods, max_size=4))
def test_no_turn_is_kept_far_after_every_clock_and_period(
    written: datetime | None, now: datetime, standing: list[Period]
) -> None:
    at = recorded_at(written, now=now, standing=standing)
    assert min(EARLIEST, now) <= at <= max([now + AHEAD, *(each.begins for each in standing)])


# ------------------------------------------------------------------------------------------------ the end
def test_periods_end_by_the_log_and_never_after_the_workers_clock() -> None:
    year = timedelta(days=365)
    assert log_time(None, now=NOW, opened=()) is None
    assert log_time(NOW, now=NOW + year, opened=(Q4,)) == NOW  # this worker is ahead
    assert log_time(NOW + year, now=NOW, opened=(Q4,)) == NOW  # a producer is ahead
    assert log_time(NOW - year, now=NOW, opened=(Q4,)) == Q4.begins  # an old log is read again
    assert log_time(None, now=NOW + year, opened=(Q4,)) == Q4.begins  # nothing was read yet


def test_a_period_is_over_so_many_days_after_its_end() -> None:
    kept = TurnRetention(days=400)
    over = Q4.ends + timedelta(days=400)
    assert not kept.is_over(Q4, at=over - timedelta(seconds=1))
    assert kept.is_over(Q4, at=over)
    assert kept.dropped_before(over) == Q4.ends - timedelta(days=1)  # a day later than nothing is written to it
    assert not TurnRetention(days=0).is_over(Q4, at=NOW.replace(year=8999))
    assert TurnRetention(days=0).dropped_before(NOW) is None


@given(periods, times, st.floats(1, 4_000))
def test_what_is_dropped_was_over_before(period: Period, at: datetime, days: float) -> None:
    kept = TurnRetention(days=days)
    before = kept.dropped_before(at) if at.year > 1990 else None
    if before is not None and period.ends <= before:
        assert kept.is_over(period, at=at - timedelta(hours=23))

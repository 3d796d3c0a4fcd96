"""Times that a cue names, in English and German."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memstream.memory.language.locales import locales
from memstream.memory.recall.cue_times import OUTSIDE, CueTime, find_cue_time

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
"""A Friday."""


def days(cue: str, names: str = "en,de", *, now: datetime = NOW) -> tuple[str | None, str | None] | None:
    """Return the first day and the day after the last one."""
    found = find_cue_time(cue, locales(names), now=now)
    if found is None:
        return None
    return tuple(None if each is None else each.date().isoformat() for each in (found.start, found.end))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("cue", "start", "end"),
    [
        ("What did I eat yesterday?", "2026-11-19", "2026-11-20"),
        ("Vorgestern?", "2026-11-18", "2026-11-19"),
        ("the day before yesterday", "2026-11-18", "2026-11-19"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("letztes Wochenende", "2026-11-14", "2026-11-16"),
        ("in the last three weeks", "2026-10-30", "2026-11-21"),
        ("vor fünf Wochen", "2026-10-12", "2026-10-19"),
        ("a month ago", "2026-10-01", "2026-11-01"),
        ("2 years ago", "2024-01-01", "2025-01-01"),
        ("recently", "2026-11-06", "2026-11-21"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("im Dezember", "2025-12-01", "2026-01-01"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("last November", "2025-11-01", "2025-12-01"),
        ("in August last year", "2025-08-01", "2025-09-01"),
        ("March 12, 2025", "2025-03-12", "2025-03-13"),
        ("am 3. Mai", "2026-05-03", "2026-05-04"),
        ("on 2025-08-05", "2025-08-05", "2025-08-06"),
        ("on Friday", "2026-11-13", "2026-11-14"),
        ("am Montag", "2026-11-16", "2026-11-17"),
        ("since 2024", "2024-01-01", "2026-11-21"),
        ("seit März", "2026-03-01", "2026-11-21"),
        ("before 2025", None, "2025-01-01"),
        ("bis Ende 2024", None, "2025-01-01"),
        ("after last week", "2026-11-16", "2026-11-21"),
        ("since May until July", "2026-05-01", "2026-08-01"),
        ("Wo war ich 2024?", "2024-01-01", "2025-01-01"),
        ("Was hat sie 2024 gekocht?", "2024-01-01", "2025-01-01"),
    ],
)
def test_a_time_in_words(cue: str, start: str | None, end: str | None) -> None:
    assert days(cue) == (start, end)


@pytest.mark.parametrize(
    "cue",
    [
        "May I march on?",
        "before I moved",
        "Was mache ich morgen?",
        "room 2024",
        "Was war 2090?",
        "Habe ich 2000 Euro?",
        "Bin ich 2000 Schritte gegangen?",
        "Raum 2024",
        "three days of rain",
        "on 31 February 2026",
        "last 99999 years",
        "vor 9999 Jahren",
        "since 2090",
        "",
        "yesterdays",
    ],
)
def test_no_time_in_words(cue: str) -> None:
    assert days(cue) is None


def test_only_the_given_packs_are_read() -> None:
    assert days("gestern", "en") is None
    assert days("yesterday", "de") is None


def test_a_day_begins_at_midnight_of_the_reader() -> None:
    late = datetime(2026, 3, 29, 23, 30, tzinfo=UTC)  # 30 March in Berlin; the clocks changed on the 29th
    found = find_cue_time("yesterday", locales("en"), now=late, zone=ZoneInfo("Europe/Berlin"))
    assert found == CueTime(datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_the_ends_of_the_calendar(now: datetime) -> None:
    for cue in ("yesterday", "last year", "since yesterday", "vor drei Wochen", "this month"):
        find_cue_time(cue, locales("en,de"), now=now, zone=ZoneInfo("Asia/Tokyo"))


def test_closeness_is_one_inside_and_falls_with_the_distance() -> None:
    midnight = datetime.combine(date(2026, 11, 19), datetime.min.time(), tzinfo=UTC)
    day = CueTime(midnight, midnight + timedelta(days=1))
    assert day.closeness(midnight) == day.closeness(midnight + timedelta(hours=23)) == 1
    assert day.closeness(midnight + timedelta(days=1)) == OUTSIDE
    assert day.closeness(midnight - timedelta(days=1)) == pytest.approx(OUTSIDE / 2)
    assert day.closeness(midnight - timedelta(days=400)) == pytest.approx(0)
    assert CueTime(None, midnight).closeness(midnight - timedelta(days=9_999)) == 1


def test_a_long_cue_takes_linear_time() -> None:
    def seconds(cue: str) -> float:
        begun = time.process_time()
        find_cue_time(cue, locales("en,de"), now=NOW)
        return time.process_time() - begun

    for part in ("in the ", "last ", "vor ", "1 ", "since in the year of ", "1", "1x", "1."):
        assert seconds(part * 4_000) < 8 * max(0.02, min(seconds(part * 1_000) for _ in range(3)))

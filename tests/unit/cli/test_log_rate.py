"""Lines of a fault: the first at once, then few, and the number of what was left out."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from memstream.cli.output import logs
from memstream.cli.output.log_rate import LEFT_OUT, EventKind, LibraryLines, LogRate, OurLines, RatePolicy

POLICY = RatePolicy(seconds=30.0, warnings=1, records=5, kinds=4)
AWAY = EventKind("component_away", "store")


class Clock:
    """Time and its timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.due.append((self.now + seconds, call))

    def passes(self, seconds: float) -> None:
        self.now += seconds
        ready = [each for each in self.due if each[0] <= self.now]
        self.due = [each for each in self.due if each[0] > self.now]
        for _, call in ready:
            call()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told() -> list[tuple[EventKind, int]]:
    return []


@pytest.fixture
def rate(clock: Clock, told: list[tuple[EventKind, int]]) -> LogRate:
    return LogRate(POLICY, lambda kind, lines: told.append((kind, lines)), clock.later, lambda: clock.now)


def test_the_first_goes_through_and_the_rest_of_the_window_is_counted(
    rate: LogRate, clock: Clock, told: list[tuple[EventKind, int]]
) -> None:
    assert [rate.admits(AWAY, 1) for _ in range(100)] == [True] + [False] * 99
    assert told == []
    clock.passes(30)  # the fault is over, nobody logs any more
    assert told == [(AWAY, 99)]
    assert clock.due == []
    assert rate.admits(AWAY, 1)


def test_a_fault_that_lasts_shows_a_line_and_a_number_in_each_window(
    rate: LogRate, clock: Clock, told: list[tuple[EventKind, int]]
) -> None:
    shown = 0
    for _ in range(600):  # a minute, ten a second
        shown += rate.admits(AWAY, 1)
        clock.passes(0.1)
    clock.passes(60)
    assert shown == 2
    assert shown + sum(lines for _, lines in told) == 600
    assert len(told) == 2


def test_another_part_is_another_kind(rate: LogRate) -> None:
    assert rate.admits(AWAY, 1)
    assert not rate.admits(AWAY, 1)
    assert rate.admits(EventKind("component_away", "model"), 1)
    assert rate.admits(EventKind("breaker_opened", "store"), 1)


def test_kinds_are_forgotten_with_their_number_told(rate: LogRate, told: list[tuple[EventKind, int]]) -> None:
    rate.admits(AWAY, 1), rate.admits(AWAY, 1)
    for n in range(POLICY.kinds):
        rate.admits(EventKind(f"other-{n}"), 1)
    assert told == [(AWAY, 1)]


def lines(rate: LogRate, method: str, **event: Any) -> int:
    """How many of 30 such lines go through."""
    shown = 0
    for _ in range(30):
        try:
            OurLines(rate)(None, method, dict(event))
            shown += 1
        except structlog.DropEvent:
            pass
    return shown


def test_how_many_by_what_they_say(rate: LogRate) -> None:
    assert lines(rate, "warning", event="component_away", component="store") == POLICY.warnings
    assert lines(rate, "error", event="record_kills_worker") == POLICY.records
    assert lines(rate, "info", event="turn_deferred") == POLICY.records
    assert lines(rate, "info", event="fact_new") == 30, "what was done is not a fault"
    assert lines(rate, "critical", event="worker_stopped") == 30
    assert lines(rate, "warning", event=LEFT_OUT) == 30


def test_a_thousand_tenants_of_one_dead_model_are_one_kind(rate: LogRate) -> None:
    for n in range(1000):
        try:
            OurLines(rate)(None, "warning", {"event": "component_away", "component": f"model:tenant-{n}"})
        except structlog.DropEvent:
            continue
        assert n == 0


def test_refused_records_are_told_by_reason(rate: LogRate) -> None:
    for reason in ("invalid", "undecodable"):
        assert lines(rate, "warning", event="record_refused", stage="observer", topic="t", reason=reason) == (
            POLICY.records
        ), reason


def test_a_librarys_lines_are_told_apart_before_their_arguments_are_put_in(rate: LogRate) -> None:
    def record(level: int, message: str, *args: object) -> logging.LogRecord:
        return logging.LogRecord("aiokafka", level, "", 0, message, args, None)

    keep = LibraryLines(rate)
    shown = [keep(record(logging.ERROR, "no connection to node %s", n)) for n in range(10)]
    assert shown == [True] + [False] * 9
    assert keep(record(logging.ERROR, "heartbeat failed"))
    assert all(keep(record(logging.CRITICAL, "the end")) for _ in range(10))


@pytest.fixture
def log_file() -> Iterator[io.StringIO]:
    before, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    stream = io.StringIO()
    logs.configure(stream=stream, level=logging.INFO)
    yield stream
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_the_configured_log_is_held_to_it(log_file: io.StringIO) -> None:
    for n in range(500):
        structlog.get_logger().warning("component_away", component="store", why=f"refused {n}", remedy="look at it")
        logging.getLogger("aiokafka.cluster").error("Topic %s is not available", n)
    written = [json.loads(line) for line in log_file.getvalue().splitlines()]
    assert [line["event"] for line in written] == ["component_away", "Topic 0 is not available"]
    assert (written[0]["why"], written[0]["remedy"], written[0]["level"]) == ("refused 0", "look at it", "warning")

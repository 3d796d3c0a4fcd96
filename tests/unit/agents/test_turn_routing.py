"""The time of a turn: its own, the record's, and what a clock that runs ahead may claim."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstream.agents.common.turn_routing import decode_turn, occurred_at
from memstream.memory.policies import RoutingPolicy
from memstream.streams.log.port import Position, Record

WRITTEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def record(at: str | None, *, timestamp: int | None = None) -> Record:
    turn: dict[str, Any] = {
        "tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1", "occurred_at": at,
        "messages": [{"role": "user", "content": "I moved to Lyon."}],
    }  # fmt: skip
    milliseconds = round(WRITTEN.timestamp() * 1000) if timestamp is None else timestamp
    return Record(Position("memory.turns", 0, 0), b"acme/u1/s1", json.dumps(turn).encode(), (), milliseconds)


@pytest.mark.parametrize(
    ("own", "at", "ahead"),
    [
        (None, WRITTEN, False),
        (WRITTEN - timedelta(days=20_000), WRITTEN - timedelta(days=20_000), False),
        (WRITTEN + timedelta(seconds=300), WRITTEN + timedelta(seconds=300), False),
        (WRITTEN + timedelta(seconds=301), WRITTEN, True),
        (datetime(9999, 1, 1, tzinfo=UTC), WRITTEN, True),
    ],
)
def test_a_turn_dated_too_far_ahead_counts_as_said_when_it_was_written(
    own: datetime | None, at: datetime, ahead: bool
) -> None:
    given = record(None if own is None else own.isoformat())
    routed = decode_turn(given, RoutingPolicy(), now=WRITTEN)
    assert (occurred_at(routed.turn, given), routed.reading.clock_ahead) == (at, ahead)


def test_the_policy_says_how_far() -> None:
    given = record((WRITTEN + timedelta(days=1)).isoformat())
    assert not decode_turn(given, RoutingPolicy(clock_ahead=86_400), now=WRITTEN).reading.clock_ahead
    assert decode_turn(given, RoutingPolicy(clock_ahead=86_399), now=WRITTEN).reading.clock_ahead


@pytest.mark.parametrize("timestamp", [-1, 0, 2**62])
def test_a_record_without_a_usable_timestamp_says_nothing_about_the_clock(timestamp: int) -> None:
    routed = decode_turn(record("2030-01-01T00:00:00Z", timestamp=timestamp), RoutingPolicy(), now=WRITTEN)
    assert not routed.reading.clock_ahead

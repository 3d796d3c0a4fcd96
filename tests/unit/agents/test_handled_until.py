"""Marks recognise redelivered events, and never a new one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from memstream.agents.common.handled_until import CLOCK_AHEAD_MS, HandledUntil
from memstream.agents.common.seen_ids import SEEN_KEPT, SeenIds
from memstream.streams.log.port import Position, Record

NOW = datetime(2026, 11, 26, tzinfo=UTC)
MS = int(NOW.timestamp() * 1000)


class Key:
    """The ids and marks of one key, as a row keeps them."""

    def __init__(self) -> None:
        self.ids, self.until = SeenIds(), HandledUntil()

    def is_new(self, name: str, record: Record) -> bool:
        return name not in self.ids and not self.until.has(record)

    def handle(self, name: str, record: Record, *, now: datetime = NOW + timedelta(days=1)) -> bool:
        """Handle an event; return whether it was new."""
        if not self.is_new(name, record):
            return False
        self.ids, self.until = self.ids.add(name), self.until.add(record, now=now)
        return True


def at(offset: int, ms: int = 0, *, partition: int = 3) -> Record:
    return Record(Position("memory.turns", partition, offset), b"k", b"v", timestamp=MS + ms)


@pytest.mark.parametrize("events", [10, SEEN_KEPT, SEEN_KEPT + 1, 2 * SEEN_KEPT + 77])
def test_events_of_two_partitions_that_all_come_again_are_known(events: int) -> None:
    """The partitions' offsets have holes, and their times go back and forth."""
    rng, key = random.Random(events), Key()
    sent = [(f"t{n}", at(7 * n, rng.randrange(10**6), partition=rng.choice((3, 3, 3, 9)))) for n in range(events)]
    assert all(key.handle(*event) for event in sent)
    key.until = HandledUntil.model_validate_json(key.until.model_dump_json())
    rng.shuffle(sent)
    assert not any(key.handle(*event) for event in sent)


def test_events_of_a_topic_that_was_created_again_are_new_and_are_known_afterwards() -> None:
    key = Key()
    for n in range(3 * SEEN_KEPT):
        key.handle(f"t{n}", at(n, n))
    again = [(f"a{n}", at(n, 10**6 + n)) for n in range(3 * SEEN_KEPT)]
    assert all(key.handle(*event) for event in again)
    assert not any(key.handle(*event) for event in again)


def test_an_event_put_back_is_new_though_its_time_is_old() -> None:
    key = Key()
    for n in range(3 * SEEN_KEPT):
        key.handle(f"t{n}", at(n, n))
    assert key.handle("letter", at(3 * SEEN_KEPT, 5))


def test_a_log_that_lost_its_tail_and_uses_offsets_again_loses_no_event() -> None:
    key = Key()
    for n in range(3 * SEEN_KEPT):
        key.handle(f"t{n}", at(n, n))
    for n in range(5 * SEEN_KEPT // 2, 3 * SEEN_KEPT):
        assert key.handle(f"other{n}", at(n, n))


def test_one_time_far_ahead_covers_no_topic_that_is_created_again() -> None:
    key = Key()
    for n in range(3 * SEEN_KEPT):
        key.handle(f"t{n}", at(n, 10**9 if n == 5 else n), now=NOW + timedelta(seconds=n))
    assert key.handle("new", at(0, 3 * SEEN_KEPT * 1000 + CLOCK_AHEAD_MS + 1))


def test_a_key_without_events_has_no_marks() -> None:
    assert not HandledUntil()
    assert HandledUntil().model_dump_json() == "{}"
    assert not HandledUntil().has(at(0))

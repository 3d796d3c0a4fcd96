"""`memstream doctor` reports what retention deleted before a stage had read it: before and after a worker went on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import cast

from memstream.cli.commands.doctor import _stage, _unread
from memstream.schemas.parking import UnreadDeleted
from memstream.schemas.topics import PARKED, TURNS
from memstream.streams.engine.unread import UNREAD
from memstream.streams.log.port import Log, Position, Record


class FakeLog:
    """Topics of two partitions from 10 to 20, and notes on memory-parked."""

    def __init__(self, *committed: int | None, notes: tuple[UnreadDeleted, ...] = ()) -> None:
        self._committed, self._notes = committed, notes

    async def partitions(self, topic: str) -> int | None:
        return 2 if topic in (TURNS.name, PARKED.name) else None

    async def starts(self, topic: str) -> tuple[int, ...]:
        return (10, 10)

    async def ends(self, topic: str) -> tuple[int, ...]:
        return (20, 20)

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        return self._committed

    async def members(self, group: str) -> int:
        return 0

    async def read(self, topic: str) -> AsyncIterator[Record]:
        for n, note in enumerate(self._notes):
            yield Record(Position(topic, 0, n), UNREAD + b"%d" % n, note.to_bytes())


async def test_a_stage_whose_unread_records_are_gone_fails() -> None:
    for whole in ((10, 20), (None, 15)):  # a new group has lost nothing
        assert (await _stage(cast(Log, FakeLog(*whole)), "recorder")).ok
    check = await _stage(cast(Log, FakeLog(7, 20)), "recorder")
    assert not check.ok
    assert check.detail == "0 workers, 10 records behind; retention deleted 3 before it had read them"
    assert "retention.ms" in check.fix


async def test_what_a_worker_has_passed_over_is_reported_for_a_month() -> None:
    now = datetime.now(UTC)
    notes = [
        UnreadDeleted(stage="observer", topic=TURNS.name, partition=n, first=3, until=10, at=at)
        for n, at in enumerate((now, now, now - timedelta(days=31)))
    ]
    assert (await _unread(cast(Log, FakeLog(notes=())))).ok
    check = await _unread(cast(Log, FakeLog(notes=tuple(notes))))
    assert not check.ok
    assert check.detail == "retention deleted in the last 30 days: observer 14 of memory.turns"

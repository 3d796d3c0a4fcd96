"""Records that retention deleted before a stage had read them: told from other holes, logged, counted, noted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
import structlog
from prometheus_client import CollectorRegistry

from memstream.schemas.errors import Relinquished, StageError, Transient
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.parking import UnreadDeleted
from memstream.schemas.topics import PARKED, TURNS
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.parking import read_parked_keys
from memstream.streams.engine.unread import KEPT, UnreadNotes, read_unread
from memstream.streams.log.port import Log, Position, Record

NOW = datetime(2026, 11, 26, tzinfo=UTC)


class FakeLog:
    """memory.turns that begins at `begins`, and memory-parked."""

    def __init__(self, begins: int, failure: StageError | None = None) -> None:
        self.begins, self.failure = begins, failure
        self.records: list[OutRecord] = []

    async def starts(self, topic: str) -> tuple[int, ...]:
        assert topic == TURNS.name
        if self.failure is not None:
            raise self.failure
        return (0, self.begins)

    async def partitions(self, topic: str) -> int | None:
        return 1 if self.records else None

    async def read(self, topic: str) -> AsyncIterator[Record]:
        assert topic == PARKED.name
        for offset, each in enumerate(self.records):
            yield Record(Position(topic, 0, offset), each.key, each.value)

    async def send(self, record: OutRecord) -> None:
        self.records.append(record)


class Reported:
    """What one worker reports of a hole from 5 up to 20."""

    def __init__(self, fake: FakeLog, now: datetime = NOW) -> None:
        self.fake = fake
        self.registry = CollectorRegistry()
        self.notes = UnreadNotes(
            stage="observer",
            log_client=cast(Log, fake),
            send=fake.send,
            metrics=StageMetrics(Metrics(self.registry), "observer"),
            now=lambda: now,
        )

    async def hole(self) -> Sequence[UnreadDeleted]:
        await self.notes.passed_over(TURNS.name, 1, 5, 20)
        return await read_unread(cast(Log, self.fake), now=NOW)

    def counted(self) -> float:
        labels = {"stage": "observer", "topic": TURNS.name}
        return self.registry.get_sample_value("memstream_unread_deleted_total", labels) or 0.0


@pytest.mark.parametrize(("begins", "lost"), [(0, 0), (5, 0), (6, 1), (20, 15), (99, 15)])
async def test_only_what_lies_before_the_start_of_the_log_is_lost(begins: int, lost: int) -> None:
    """What lies behind it was compacted, or is a marker of a transaction."""
    reported = Reported(FakeLog(begins))
    with structlog.testing.capture_logs() as logs:
        notes = await reported.hole()
    assert reported.counted() == lost
    assert [note.count for note in notes] == [lost] * bool(lost)
    told = [line for line in logs if line["event"] == "unread_records_deleted"]
    assert [(line["topic"], line["partition"], line["count"]) for line in told] == [(TURNS.name, 1, lost)] * bool(lost)


async def test_a_note_that_comes_again_replaces_itself_and_an_old_one_ends() -> None:
    fake = FakeLog(begins=10)
    await Reported(fake, now=NOW - KEPT - timedelta(seconds=1)).hole()
    assert await read_unread(cast(Log, fake), now=NOW) == []
    await Reported(fake).hole()
    (note,) = await Reported(fake).hole()
    assert (note.stage, note.topic, note.partition, note.first, note.until) == ("observer", TURNS.name, 1, 5, 10)


async def test_notes_are_no_parked_keys() -> None:
    fake = FakeLog(begins=10)
    await Reported(fake).hole()
    with structlog.testing.capture_logs() as logs:
        assert await read_parked_keys(cast(Log, fake)) == {}
    assert logs == []


async def test_a_log_that_does_not_answer_holds_up_nothing() -> None:
    assert list(await Reported(FakeLog(10, Transient("broker", "away"))).hole()) == []
    fake = FakeLog(10)
    reported = Reported(fake)

    async def refuse(record: OutRecord) -> None:
        raise Relinquished("partitions are revoked")

    reported.notes._send = refuse
    assert list(await reported.hole()) == []
    assert reported.counted() == 5

"""Deaths by a record are counted over all workers: one that moves between them ends no more than one that stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from memstream.schemas.errors import Poison, Transient
from memstream.schemas.outcomes import OutRecord
from memstream.streams.engine.error_boundary import CRASHES_MAX, CrashCounter, ErrorBoundary
from memstream.streams.engine.failures import HUNG, DecisionFailed
from memstream.streams.engine.parking import read_parked_keys
from memstream.streams.engine.shared_deaths import SharedDeaths
from memstream.streams.log.port import Log, Position, Record

HERE = Position("memory.turns", 3, 17)
NOW = datetime(2026, 11, 24, tzinfo=UTC)


class Topic:
    """memory-parked in memory."""

    def __init__(self) -> None:
        self.records: list[OutRecord] = []
        self.failure: Exception | None = None
        self.stuck = False
        self.exists = True

    async def partitions(self, topic: str) -> int | None:
        return 1 if self.exists else None

    async def read(self, topic: str) -> AsyncIterator[Record]:
        if self.stuck:
            await asyncio.Event().wait()
        for offset, each in enumerate(list(self.records)):
            yield Record(Position(topic, 0, offset), each.key, each.value)

    async def send(self, record: OutRecord) -> None:
        if self.failure is not None:
            raise self.failure
        self.records.append(record)

    def last(self) -> dict[bytes | None, bytes | None]:
        return {each.key: each.value for each in self.records}


class Worker:
    """A worker with a folder of its own, which is lost with it if `lose` is called."""

    def __init__(self, topic: Topic, folder: Path, *, stage: str = "observer", now: datetime = NOW) -> None:
        self.topic, self.folder, self.stage, self.now = topic, folder, stage, now
        self.letters: list[tuple[str, int]] = []
        self.start()

    def start(self) -> None:
        shared = SharedDeaths(
            stage=self.stage,
            log_client=cast(Log, self.topic),
            send=self.topic.send,
            now=lambda: self.now,
            patience=0.05 if self.topic.stuck else 10,
        )
        self.boundary = ErrorBoundary(crashes=CrashCounter(self.folder), shared=shared)

    async def dies(self, position: Position = HERE) -> bool:
        """Handle the record. Return whether it ends this worker."""

        async def handle() -> None:
            failed = DecisionFailed("odd")
            failed.__cause__ = RuntimeError("odd")
            raise failed

        async def refuse(poison: Poison, attempts: int) -> None:
            self.letters.append((poison.reason, attempts))

        try:
            await self.boundary.run(position, handle, refuse)
        except DecisionFailed:
            self.start()
            return True
        return False


@pytest.fixture
def topic() -> Topic:
    return Topic()


def workers(topic: Topic, folder: Path, count: int = 3, **options: Any) -> list[Worker]:
    return [Worker(topic, folder / str(n), **options) for n in range(count)]


@pytest.mark.parametrize("order", ["abc", "aba", "aab", "cba", "aaa"])
async def test_the_third_death_counts_whoever_dies(topic: Topic, tmp_path: Path, order: str) -> None:
    team = dict(zip("abc", workers(topic, tmp_path), strict=True))
    died = [await team[name].dies() for name in order]
    assert died == [True, True, False]
    assert team[order[-1]].letters == [("fatal", CRASHES_MAX)]
    # the worker may end before it commits the record, and any other may get it
    assert not await team["b"].dies()
    assert team["b"].letters[-1][0] == "fatal"


async def test_hangs_are_known_to_all_workers_and_crashes_are_none(topic: Topic, tmp_path: Path) -> None:
    """A record that hangs a process is refused before anybody looks at it, so the count has to be known before."""

    def shared() -> SharedDeaths:
        return SharedDeaths(stage="observer", log_client=cast(Log, topic), send=topic.send, now=lambda: NOW)

    other = Position("memory.turns", 3, 18)
    for _ in range(CRASHES_MAX):
        await shared().add(HERE, f"{HUNG} 30 s in one step", own=1)
        await shared().add(other, "RuntimeError: odd", own=1)
    assert await shared().hung() == {HERE: CRASHES_MAX}
    (late,) = workers(topic, tmp_path, 1)
    late.boundary.learn_hung(await shared().hung())
    assert not await late.dies()
    assert late.letters == [("fatal", CRASHES_MAX)]


async def test_records_are_counted_by_themselves(topic: Topic, tmp_path: Path) -> None:
    a, b, _ = workers(topic, tmp_path)
    assert await a.dies()
    assert await b.dies(Position("memory.turns", 3, 18))
    assert await b.dies()
    assert not await a.dies()
    assert await b.dies(Position("memory.turns", 3, 18))


@pytest.mark.parametrize("stages", ["ror", "rro", "orr", "oor"])
async def test_the_deaths_of_all_stages_count_for_a_stage_that_fails(topic: Topic, tmp_path: Path, stages: str) -> None:
    names = {"r": "recorder", "o": "observer"}
    team = {short: workers(topic, tmp_path / short, 1, stage=name)[0] for short, name in names.items()}
    assert [await team[short].dies() for short in stages] == [True, True, False]
    assert team[stages[-1]].letters == [("fatal", CRASHES_MAX)]
    for worker in team.values():  # the worker may end before it commits the record
        assert not await worker.dies()


async def test_a_hang_of_one_stage_refuses_nothing_in_another(topic: Topic) -> None:
    recorder, observer = (
        SharedDeaths(stage=stage, log_client=cast(Log, topic), send=topic.send, now=lambda: NOW)
        for stage in ("recorder", "observer")
    )
    for _ in range(CRASHES_MAX):
        await recorder.add(HERE, f"{HUNG} 30 s in one step", own=1)
    assert await observer.hung() == {}
    assert await observer.add(HERE, f"{HUNG} 30 s in one step", own=1) == CRASHES_MAX + 1
    assert await observer.hung() == await recorder.hung() == {HERE: CRASHES_MAX + 1}


@pytest.mark.parametrize("failure", [Transient("broker", "away"), None])
async def test_without_the_broker_the_workers_own_count_holds(
    topic: Topic, tmp_path: Path, failure: Exception | None
) -> None:
    topic.failure, topic.stuck = failure, failure is None
    [worker] = workers(topic, tmp_path, 1)
    assert [await worker.dies() for _ in range(3)] == [True, True, False]
    assert topic.records == []


async def test_what_was_not_told_is_told_with_the_next_death(topic: Topic, tmp_path: Path) -> None:
    a, b, _ = workers(topic, tmp_path)
    topic.failure = Transient("broker", "away")
    assert await a.dies()
    topic.failure = None
    assert await a.dies()
    assert not await b.dies()


async def test_a_topic_that_is_not_there_is_not_written(topic: Topic, tmp_path: Path) -> None:
    topic.exists = False
    [worker] = workers(topic, tmp_path, 1)
    assert [await worker.dies() for _ in range(3)] == [True, True, False]
    assert topic.records == []


async def test_an_old_count_is_forgotten_and_deleted(topic: Topic, tmp_path: Path) -> None:
    a, b, c = workers(topic, tmp_path)
    assert await a.dies()
    assert await a.dies(Position("memory.turns", 0, 1))
    b.now = c.now = NOW + timedelta(days=7)
    assert await b.dies()
    assert await c.dies()
    assert not await b.dies()
    assert sum(value is not None for value in topic.last().values()) == 1


async def test_counts_are_no_parked_keys_and_a_broken_one_is_passed_over(topic: Topic, tmp_path: Path) -> None:
    a, b, _ = workers(topic, tmp_path)
    assert await a.dies()
    assert await read_parked_keys(cast(Log, topic)) == {}
    topic.records.append(OutRecord(topic="memory-parked", key=topic.records[0].key, value=b"{"))
    assert await b.dies()

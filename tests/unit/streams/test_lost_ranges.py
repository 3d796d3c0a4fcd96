"""Records that the log lost before they were committed: the range is durable before the group's offset passes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry

from memstream.schemas.topics import TURNS, changelog_of, group_of
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.retry import Calls
from memstream.streams.engine.unread import read_unread
from memstream.streams.faust.app import AppSettings
from memstream.streams.faust.runner import RunnerSettings, StageRunner
from memstream.streams.faust.worker import run_worker
from memstream.streams.log import sqlite_tables, topic_admin
from memstream.streams.log.markers import LOST_KEPT, Growth, Marker, some_marker
from memstream.streams.log.port import Log
from tests.support.counting_stage import Counting
from tests.support.logs import log_at
from tests.support.polling import wait_for

MARKER = Marker(identity="a", whole_from=0, written_at=0, partitions=1)


def test_a_marker_keeps_lost_ranges_and_one_of_an_earlier_version_has_none() -> None:
    marker = MARKER.with_lost("t", (3, 7)).with_lost("t", (9, 10))
    assert Marker.of(marker.to_bytes()) == marker
    assert marker.passed_over("t", 0) == ((3, 7), (9, 10))
    assert Marker.of(MARKER.to_bytes()) == MARKER
    assert b"lost" not in MARKER.to_bytes()
    assert MARKER.passed_over("t", 0) == ()


def test_many_lost_ranges_become_one_with_all_between_them() -> None:
    marker = MARKER
    for n in range(LOST_KEPT + 2):
        marker = marker.with_lost("t", (10 * n, 10 * n + 1))
    ranges = marker.passed_over("t", 0)
    assert len(ranges) == LOST_KEPT
    assert ranges[:2] == ((0, 21), (30, 31))


def test_records_that_a_growth_sent_again_were_passed_over() -> None:
    growth = Growth(partitions=2, until={"t": (5, 8)}, sent_again={"t": (6, 8)})
    marker = MARKER.model_copy(update={"growths": (growth,)})
    assert marker.passed_over("t", 0) == ((5, 6),)
    assert marker.passed_over("t", 2) == ()


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Log]:
    """A log in a folder, with all topics."""
    client = log_at(f"embedded://{folder / 'log'}")
    await client.start()
    try:
        await topic_admin.create(client, deployment=topic_admin.Deployment(partitions=1, replication=1))
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def counting(client: Log, folder: Path) -> AsyncIterator[StageRunner]:
    """Run a worker of the stage Counting in this process."""
    stage = StageRunner(
        name="observer",
        settings=RunnerSettings(
            broker=f"embedded://{folder / 'log'}", datadir=folder / "w", app=AppSettings(partitions=1)
        ),
        log_client=client,
        calls=Calls(),
        metrics=StageMetrics(Metrics(CollectorRegistry()), "observer"),
        build_stage=lambda runner: Counting(),
    )
    stopping = asyncio.Event()
    running = asyncio.create_task(run_worker([stage], stopping=stopping))
    try:
        yield stage
        stopping.set()
        assert await running == 0
    finally:
        running.cancel()


def delete_before(folder: Path, offset: int) -> None:
    with closing(sqlite_tables.connect(folder / "log")) as conn:
        (part,) = conn.execute(
            "SELECT part.id FROM part JOIN topic ON topic.id = part.topic WHERE topic.name = ?", (TURNS.name,)
        ).fetchone()
        with conn:
            low, high = sqlite_tables.row_id(part, 0), sqlite_tables.row_id(part, offset)
            conn.execute("DELETE FROM record WHERE at >= ? AND at < ?", (low, high))
            conn.execute("UPDATE part SET first = ? WHERE id = ?", (offset, part))


async def test_a_lost_range_is_in_the_marker_before_the_offset_has_passed_it(tmp_path: Path) -> None:
    changelog = changelog_of("observer")
    assert changelog is not None
    async with opened(tmp_path) as client:

        async def committed() -> int:
            return (await client.committed(group_of("observer"), TURNS.name))[0] or 0

        async def say(n: int) -> None:
            await client.append(TURNS.name, key=b"k", value=json.dumps({"id": f"t{n}", "value": "x"}).encode())

        async def lost() -> tuple[tuple[int, int], ...]:
            marker = await some_marker(client, changelog.name)
            return () if marker is None else marker.passed_over(TURNS.name, 0)

        async def unread() -> list[tuple[int, int]]:
            return [(note.first, note.until) for note in await read_unread(client, now=datetime.now(UTC))]

        await say(0)
        async with counting(client, tmp_path):
            await wait_for(committed, "the first record", until=lambda offset: offset == 1)
        assert await lost() == ()
        for n in (1, 2, 3):
            await say(n)
        delete_before(tmp_path, 3)
        async with counting(client, tmp_path):
            await wait_for(committed, "the record behind the hole", until=lambda offset: offset == 4)
        assert await lost() == ((1, 3),)
        assert await unread() == [(1, 3)]
        await say(4)
        await say(5)
        delete_before(tmp_path, 6)
        async with counting(client, tmp_path) as stage:  # no record follows
            await wait_for(committed, "the end of the log", until=lambda offset: offset == 6)
            known = stage.handler.applied
            assert [known.hole_before(TURNS.name, 0, 6)] == [(4, 6)]
        assert await lost() == ((1, 3), (4, 6))
        assert await unread() == [(1, 3), (4, 6)]

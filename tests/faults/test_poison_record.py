"""A record at which every worker fails goes from one worker to the next, and the third failure is its dead letter."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.streams.engine.error_boundary import CRASHES_MAX
from memstream.streams.engine.process_exit import BROKEN
from memstream.streams.log.port import Record
from tests.support.counting_run import LETTERS, CountingRun
from tests.support.kafka import Broker
from tests.support.tables import counting

pytestmark = [pytest.mark.timeout(240)]
WORKERS = ("a", "b", "c")
KILLED = "record_kills_worker"


async def letters(run: CountingRun, odd: Record) -> list[dict[str, bytes]]:
    return [dict(each.headers) for each in await run.records(LETTERS) if each.value == odd.value]


async def handled_to_the_end(run: CountingRun, odd: Record) -> None:
    """Check that the record is a dead letter, once, and that all others were counted once."""
    (letter,) = await letters(run, odd)
    assert letter["memstream-reason"] == b"fatal"
    assert letter["memstream-attempts"] == b"%d" % CRASHES_MAX
    await run.check()


@pytest.mark.kafka
@pytest.mark.fault(
    broken="a poisonous record, three workers, each started again when it ends",
    holds="two ends in all, then the letter `fatal`; everything else once",
)
async def test_a_poisonous_record_that_moves_between_workers_ends_three_at_most(
    own_kafka: Broker, tmp_path: Path
) -> None:
    async with counting(f"kafka://{own_kafka.bootstrap}", tmp_path) as run:
        done = asyncio.Event()
        ends: list[str] = []

        async def supervised(name: str) -> None:
            while not done.is_set():
                code = await run.ended(run.start(name), timeout=120)
                if code == BROKEN:
                    ends.append(name)

        tasks = [asyncio.ensure_future(supervised(name)) for name in WORKERS]
        await run.wait_for(lambda: run.log.members("memory-observer"), "all are in the group", until=lambda n: n == 3)
        await run.produce(24)
        odd = await run.send("k0", "odd", "odd")
        await run.produce(24)
        await run.wait_for(lambda: letters(run, odd), "the dead letter", deadline=120)
        await run.drained(timeout=60)
        done.set()
        for task in tasks:
            task.cancel()
        told = [name for name in WORKERS for line in run.output(name).splitlines() if KILLED in line]
        assert len(told) == CRASHES_MAX - 1, (told, ends)
        await handled_to_the_end(run, odd)


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def run(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CountingRun]:
    if request.param == "kafka":
        own: Broker = request.getfixturevalue("own_kafka")
        broker = f"kafka://{own.bootstrap}"
    else:
        broker = f"embedded://{tmp_path / 'log'}"
    async with counting(broker, tmp_path) as run:
        yield run


@pytest.mark.fault(
    broken="a poisonous record, and a worker whose disk is lost each time it ends",
    holds="two ends, then the letter `fatal`; everything else once",
)
async def test_a_poisonous_record_is_counted_although_each_worker_loses_its_disk(run: CountingRun) -> None:
    await run.produce(24)
    odd = await run.send("k0", "odd", "odd")
    await run.produce(24)
    for _ in range(CRASHES_MAX - 1):
        assert await run.ended(run.start()) == BROKEN, run.output()
        assert await letters(run, odd) == []
        shutil.rmtree(run.folder / "w")
    worker = run.start()
    await run.wait_for(lambda: letters(run, odd), "the dead letter", until=lambda found: found or worker.poll())
    await run.drained()
    await run.stop(worker)
    await handled_to_the_end(run, odd)

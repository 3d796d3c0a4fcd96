"""What happens to a worker in the middle of a restore: it is killed, its broker goes away. The table that comes
out is the changelog's, and what was handled was handled once."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.streams.exits import UNREACHABLE
from tests.support.counting_run import CountingRun
from tests.support.kafka import Broker
from tests.support.tables import counting, local_rows, make_big, restored

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
ROWS = 12_000
#: seconds that a batch takes: the restore of such a table goes on for some seconds
SLOW = "0.4"


@pytest.fixture
async def on_kafka(own_kafka: Broker, tmp_path: Path) -> AsyncIterator[CountingRun]:
    async with counting(f"kafka://{own_kafka.bootstrap}", tmp_path) as run:
        yield run


async def half_restored(run: CountingRun, worker: str = "w") -> None:
    """One partition is there, of the other one a part."""

    def half() -> bool:
        lines = run.output(worker).splitlines()
        done = [n for n, line in enumerate(lines) if "table_restored" in line]
        return bool(done) and sum("restore_batch" in line for line in lines[done[0] :]) >= 2

    await run.until(half, "half of the table is restored")


async def all_there(
    run: CountingRun, made: dict[bytes, bytes], process: subprocess.Popen[bytes], worker: str = "w"
) -> None:
    """New records are counted, each once, and the local table has every row of the changelog."""
    await run.produce(24)
    await run.drained(timeout=90)
    await run.stop(process)
    rows = local_rows(run, worker)
    assert {key: rows.get(key) for key in made} == made
    await run.check()


async def supervised(run: CountingRun, first: subprocess.Popen[bytes], stop: asyncio.Event) -> subprocess.Popen[bytes]:
    """As in a deployment: what ends because a server is away is started again. The last process."""
    process = first
    while not stop.is_set():
        if process.poll() is not None:
            assert process.returncode == UNREACHABLE, run.output()[-3000:]
            process = run.start(slow_restore=SLOW)
        await asyncio.sleep(0.2)
    return process


@pytest.mark.fault(
    broken="kill -9 of a worker in the middle of a restore",
    holds="the next one goes on; every row is there",
    always=True,
)
async def test_a_worker_killed_in_the_middle_of_a_restore_goes_on(on_kafka: CountingRun) -> None:
    run = on_kafka
    made = await make_big(run, rows=ROWS)
    process = run.start(slow_restore=SLOW)
    await half_restored(run)
    await run.kill(process)
    before = restored(run)
    process = run.start()
    await all_there(run, made, process)
    assert len(before) == 1, "one partition was through"
    again = [each for each in restored(run)[1:] if each["partition"] == before[0]["partition"]]
    assert again == [], "it is not read again"


@pytest.mark.fault(broken="broker killed and started in the middle of a restore", holds="every row is there; I1")
async def test_a_broker_that_goes_away_in_the_middle_of_a_restore(on_kafka: CountingRun, own_kafka: Broker) -> None:
    run = on_kafka
    made = await make_big(run, rows=ROWS)
    process, stop = run.start(slow_restore=SLOW), asyncio.Event()
    await half_restored(run)
    await asyncio.to_thread(own_kafka.kill)
    supervising = asyncio.create_task(supervised(run, process, stop))
    await asyncio.to_thread(own_kafka.start)
    await run.produce(24)
    await run.drained(timeout=120)
    stop.set()
    await all_there(run, made, await supervising)

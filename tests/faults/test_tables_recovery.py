"""What happens to a worker in the middle of a restore: it is killed, frozen, its broker goes away. The table that comes
out is the changelog's, and what was handled was handled once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from memstream.streams.engine.process_exit import UNREACHABLE
from tests.support.counting_run import CHANGELOG, CountingRun
from tests.support.kafka import Broker
from tests.support.tables import PARTITIONS, counting, local_rows, make_big, restored

pytestmark = [pytest.mark.timeout(240)]
ROWS = 12_000
#: seconds that a batch takes: the restore of such a table goes on for some seconds
SLOW = "0.4"


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "kafka":
        yield f"kafka://{request.getfixturevalue('own_kafka').bootstrap}"
    else:
        yield f"embedded://{tmp_path / 'log'}"


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

    await run.wait_for(half, "half of the table is restored")


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
    often=True,
)
async def test_a_worker_killed_in_the_middle_of_a_restore_goes_on(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
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


@pytest.mark.kafka
@pytest.mark.parametrize(
    "away",
    [
        pytest.param(
            0.0,
            marks=pytest.mark.fault(
                broken="broker killed and started in the middle of a restore", holds="every row is there; I1"
            ),
        ),
        pytest.param(
            60.0,
            marks=pytest.mark.fault(
                broken="broker down for 60 s in the middle of a restore", holds="every row is there; I1"
            ),
        ),
    ],
)
async def test_a_broker_that_goes_away_in_the_middle_of_a_restore(
    on_kafka: CountingRun, own_kafka: Broker, away: float
) -> None:
    run = on_kafka
    made = await make_big(run, rows=ROWS)
    process, stop = run.start(slow_restore=SLOW), asyncio.Event()
    await half_restored(run)
    await asyncio.to_thread(own_kafka.kill)
    supervising = asyncio.create_task(supervised(run, process, stop))
    await asyncio.sleep(away)  # how long it is away; nothing can be waited for
    await asyncio.to_thread(own_kafka.start)
    await run.produce(24)
    await run.drained(timeout=120)
    stop.set()
    await all_there(run, made, await supervising)


@pytest.mark.kafka
@pytest.mark.fault(
    broken="SIGSTOP beyond the session time-out in the middle of a restore, then SIGCONT",
    holds="the frozen worker writes nothing and ends; the other one has every row; I1",
)
async def test_a_worker_frozen_in_the_middle_of_a_restore_writes_nothing_when_it_wakes(on_kafka: CountingRun) -> None:
    run = on_kafka
    made = await make_big(run, rows=ROWS)
    frozen = run.start("w", slow_restore=SLOW)
    await half_restored(run)
    frozen.send_signal(signal.SIGSTOP)
    other = run.start("other")
    await run.produce(24)
    await run.drained(timeout=60)
    before = await run.log.ends(CHANGELOG)
    frozen.send_signal(signal.SIGCONT)
    assert await run.ended(frozen) == UNREACHABLE, run.output()[-3000:]
    assert await run.log.ends(CHANGELOG) == before
    await all_there(run, made, other, "other")


@pytest.mark.kafka
@pytest.mark.fault(
    broken="a changelog that ends in transaction markers",
    holds="the restore ends; every row is there",
)
async def test_a_changelog_that_ends_in_transaction_markers_is_restored(on_kafka: CountingRun) -> None:
    run = on_kafka
    made = await make_big(run, rows=200)
    producer = AIOKafkaProducer(bootstrap_servers=run.broker.removeprefix("kafka://"), transactional_id="changelog-gap")
    await producer.start()
    for partition in range(PARTITIONS):
        async with producer.transaction():
            await producer.send_and_wait(CHANGELOG, key=b"last#%d" % partition, value=b"1", partition=partition)
            made[b"last#%d" % partition] = b"1"
    await producer.stop()
    process = run.start()
    await all_there(run, made, process)
    assert sum(int(each["entries"]) for each in restored(run)) == 200 + 2 * PARTITIONS


@pytest.mark.fault(
    broken="a worker ends and starts again on its own tables, others having worked meanwhile",
    holds="it reads what is new and nothing else",
)
async def test_a_warm_worker_reads_only_what_is_new(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
        made = await make_big(run, rows=500)
        await all_there(run, made, run.start("w"), "w")
        first, ends = restored(run), await run.log.ends(CHANGELOG)
        await all_there(run, made, run.start("other"), "other")
        new = sum(await run.log.ends(CHANGELOG)) - sum(ends)
        await all_there(run, made, run.start("w"), "w")
        assert sum(int(each["entries"]) for each in restored(run)[len(first) :]) == new

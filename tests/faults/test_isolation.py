"""What one key, one event or one tenant takes from others: a hot key, a long event at a partition's head, a flood."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.log.partitioner import partition_for
from tests.support.counting_run import GROUP, CountingRun
from tests.support.tables import PARTITIONS, counting

pytestmark = [pytest.mark.timeout(240)]
MIB = 1 << 20


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "kafka":
        yield f"kafka://{request.getfixturevalue('own_kafka').bootstrap}"
    else:
        yield f"embedded://{tmp_path / 'log'}"


def keys_on(partition: int, count: int, *, prefix: str) -> list[str]:
    """Return keys of one partition."""
    names = (f"{prefix}{n}" for n in range(100_000))
    found = (name for name in names if partition_for(name.encode(), PARTITIONS) == partition)
    return [next(found) for _ in range(count)]


def resident(process: subprocess.Popen[bytes]) -> int:
    """Return the bytes of memory that a process has."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


async def order_of_output(run: CountingRun) -> list[str]:
    """Return the keys that were handled, in the order of the output's timestamps."""
    records = await run.records(OBSERVATIONS.name)
    return [(record.key or b"").decode() for record in sorted(records, key=lambda record: record.timestamp)]


@pytest.mark.fault(
    broken="a hot key: one session has 300 records waiting, and the first is long",
    holds="other keys of its partition and of others are handled meanwhile; order per key; I1",
    often=True,
)
async def test_a_hot_key_holds_up_no_other(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
        (hot,) = keys_on(0, 1, prefix="hot/")
        others = [key for partition in range(PARTITIONS) for key in keys_on(partition, 30, prefix="calm/")]
        (run.folder / "hold").touch()
        for _ in range(300):
            await run.add(hot, value="hold")
        for key in others:
            await run.add(key)
        worker = run.start()
        await run.handled(len(others))
        assert hot not in await order_of_output(run)
        (run.folder / "hold").unlink()
        await run.drained(timeout=90)
        await run.stop(worker)
        await run.check()


@pytest.mark.fault(
    broken="a long event at a partition's head, 150 MiB of its key and 60 MiB of others behind it",
    holds="the partition pauses alone and the worker's memory stays bounded; a kill -9 in between loses nothing",
    often=True,
)
async def test_a_long_event_pauses_its_partition_alone_and_memory_stays_bounded(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
        (long,) = keys_on(0, 1, prefix="long/")
        behind = keys_on(0, 20, prefix="behind/")
        elsewhere = keys_on(1, 20, prefix="calm/")
        (run.folder / "hold").touch()
        await run.add(long, value="hold")
        worker = run.start()
        ready = "worker_ready"
        await run.wait_for(lambda: ready in run.output(), "the worker to be ready")
        before = resident(worker)
        for key in behind:  # done, and not acknowledged
            for _ in range(4):
                await run.add(key, padding=3 * MIB // 4)
        for _ in range(200):  # not done
            await run.add(long, padding=3 * MIB // 4)
        for key in elsewhere:
            await run.add(key)
        await run.handled(len(elsewhere) + 4 * len(behind))
        grown = resident(worker) - before
        print(f"grown by {grown / MIB:.0f} MiB")
        assert grown < 100 * MIB
        committed = await run.log.committed(GROUP, TURNS.name)
        assert not committed[0], "nothing of the partition is committed past its head"
        await run.kill(worker)
        (run.folder / "hold").unlink()
        worker = run.start()
        await run.drained(timeout=120)
        await run.stop(worker)
        await run.check()


@pytest.mark.fault(
    broken="a flood: a tenant has 200 keys waiting before another tenant's four, and the worker two slots",
    holds="the other tenant is served before a quarter of the flood is; order per key; I1",
    often=True,
)
async def test_a_flood_of_one_tenant_costs_another_a_few_turns(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
        for n in range(200):
            await run.add(f"flood/{n}")
        calm = [f"calm/{n}" for n in range(4)]
        for key in calm:
            await run.add(key)
        worker = run.start(in_flight="2", pause="0.2")
        await run.drained(timeout=90)
        await run.stop(worker)
        await run.check()
        order = await order_of_output(run)
        assert max(order.index(key) for key in calm) < 50

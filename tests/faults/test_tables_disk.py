"""A disk that is full under the local tables, or under the whole folder: nothing is committed that is not durable, the
worker says which folder, and with room again nothing was lost."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstream.schemas.topics import TURNS
from memstream.streams.engine.process_exit import UNREACHABLE
from tests.support.counting_run import GROUP, CountingRun
from tests.support.kafka import Broker
from tests.support.tables import counting, local_rows, make_big

pytestmark = [pytest.mark.timeout(240)]
#: bytes: what log and tables leave free, what RocksDB sets aside for two partitions, and some more
DISK = 160 << 20
#: bytes; what a table of `ROWS` rows makes of itself on a disk is several times that
FILE = 256 << 10
ROWS = 8000
#: a row that grows with each record: a thousand records of one key are more than RocksDB's write buffer
RECORDS = 1000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Take all room but `leave` bytes; delete the file and there is room again. A process that writes may take the last
    of it first."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    with ballast.open("wb", buffering=0) as file:
        for _ in range((room.f_bavail * room.f_frsize - leave) // 4096):
            try:
                file.write(b"x" * 4096)
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise
                break
    return ballast


def says_what_to_do(run: CountingRun, *folders: Path) -> bool:
    """The last words of the worker that ended last: one of these folders, and what helps."""
    last = [line for line in run.output().splitlines() if "worker_stopped" in line][-1]
    return any(str(folder) in last for folder in folders) and "free some space" in last


@pytest.mark.kafka
@pytest.mark.fault(
    broken="no room for the local tables in the middle of a restore",
    holds="exit 3 naming the folder, nothing committed, no death counted; with room every row is there",
    often=True,
)
async def test_a_restore_without_room_ends_and_goes_on_when_there_is_some(own_kafka: Broker, tmp_path: Path) -> None:
    async with counting(f"kafka://{own_kafka.bootstrap}", tmp_path) as run:
        made = await make_big(run, rows=ROWS)
        await run.send("k0", "waits")
        for _ in range(2):
            assert await run.ended(run.start(file_limit=str(FILE))) == UNREACHABLE, run.output()[-3000:]
        assert says_what_to_do(run, run.folder / "w" / "tables"), run.output()[-3000:]
        assert await run.log.committed(GROUP, TURNS.name) == (None, None)
        assert not list((run.folder / "w" / "attempts").glob("*.json"))
        process = run.start()
        await run.drained()
        await run.stop(process)
        rows = local_rows(run)
        assert {key: rows.get(key) for key in made} == made
        await run.check()


@pytest.mark.kafka
@pytest.mark.fault(
    broken="no room for the local tables of a worker that runs",
    holds="the worker waits and says for what, no death counted; with room it goes on, nothing lost or doubled",
)
async def test_a_worker_without_room_waits_and_goes_on_when_there_is_some(
    own_kafka: Broker, tmp_path: Path, small_disk: Path
) -> None:
    (tmp_path / "w").symlink_to(small_disk)
    async with counting(f"kafka://{own_kafka.bootstrap}", tmp_path) as run:
        process = run.start()
        await run.produce(12)
        await run.drained()
        ballast = fill(small_disk)
        await run.produce(RECORDS, keys=1, duplicates=False)

        def refused() -> bool:
            failed = [line for line in run.output().splitlines() if "table_write_failed" in line]
            return len(failed) > 3 and all("/w/tables" in line and "free some space" in line for line in failed)

        await run.wait_for(refused, "the table has refused some writes")
        assert process.poll() is None, run.output()[-3000:]
        assert await run.lag() > 0
        assert not list((run.folder / "w" / "attempts").glob("*.json"))
        ballast.unlink()
        await run.drained(90)
        await run.stop(process)
        await run.check()


@pytest.mark.fault(
    broken="no room for the embedded log and the tables beside it",
    holds="exit 3 naming the folder, no death counted; with room nothing was lost or doubled",
)
async def test_an_embedded_folder_without_room_goes_on_when_there_is_some(tmp_path: Path, small_disk: Path) -> None:
    (tmp_path / "w").symlink_to(small_disk)
    async with counting(f"embedded://{small_disk / 'log'}", tmp_path) as run:
        process = run.start()
        await run.produce(12)
        await run.drained()
        await run.stop(process)
        await run.produce(400, keys=1, duplicates=False)
        ballast = fill(small_disk)
        process = run.start()
        assert await run.ended(process) == UNREACHABLE, run.output()[-3000:]
        assert says_what_to_do(run, run.folder / "w" / "tables", small_disk / "log"), run.output()[-3000:]
        assert await run.lag() > 0
        assert not list((run.folder / "w" / "attempts").glob("*.json"))
        ballast.unlink()
        process = run.start()
        await run.drained(90)
        await run.stop(process)
        await run.check()


@pytest.mark.fault(
    broken="no room for the embedded log alone",
    holds="the worker waits and says for what, no death counted; with room it goes on, nothing lost or doubled",
)
async def test_an_embedded_log_without_room_is_waited_for(tmp_path: Path, small_disk: Path) -> None:
    async with counting(f"embedded://{small_disk / 'log'}", tmp_path) as run:
        process = run.start()
        await run.produce(12)
        await run.drained()
        await run.stop(process)
        await run.produce(60, keys=1, duplicates=False)
        ballast = fill(small_disk)
        process = run.start()

        def refused() -> bool:
            failed = [line for line in run.output().splitlines() if "log_write_failed" in line]
            return len(failed) > 3 and all(f"{small_disk}/log" in line and "free some space" in line for line in failed)

        await run.wait_for(refused, "the log has refused some writes")
        assert await run.lag() > 0
        ballast.unlink()
        await run.drained(90)
        await run.stop(process)
        assert not list((run.folder / "w" / "attempts").glob("*.json"))
        assert "never retrieved" not in run.output()
        await run.check()

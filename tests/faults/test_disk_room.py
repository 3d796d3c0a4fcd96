"""A full disk under a folder: nothing is begun that the disk has no room for, everybody hears why, and with room again
the work goes on by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memstream.schemas.errors import Transient
from memstream.schemas.topics import STAGES
from tests.faults.test_tables_disk import fill
from tests.support.faults import check_all_remembered, said_by
from tests.support.health import watched
from tests.support.loop_disk import NoLoopDisk, loop_disk
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import Place
from tests.support.polling import wait_for

pytestmark = [pytest.mark.timeout(300)]
EXT4 = 320 << 20
TMPFS = 800 << 20
"""bytes; there a read of a mapped hole takes room, too, and each collection has 64 MiB of them"""
BELOW_STORE, BELOW_LOG = 100 << 20, 40 << 20
"""bytes left; the store wants 128 MiB, log and tables 64"""


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own."""
    if request.param == "ext4":
        try:
            with loop_disk(tmp_path, size=EXT4) as loop:
                yield loop.folder
        except NoLoopDisk as why:
            pytest.skip(f"no disk of its own here: {why}")
        return
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def on(disk: Path, place: Place, model: ModelServer) -> Pipeline:
    """A pipeline whose log, tables and store are on this disk. Its output is not."""
    made = Place(place.folder, f"embedded://{disk / 'log'}").pipeline(model)
    made.use(MEMSTREAM_QDRANT=f"embedded://{disk / 'store'}", MEMSTREAM_DATADIR=str(disk / "data"))
    return made


@pytest.mark.fault(
    broken="no room for the embedded store of a worker that runs",
    holds="no SIGBUS; not ready and why; what is sent waits; reads go on; with room all of it is handled once",
    often=True,
)
@pytest.mark.parametrize("left", [BELOW_STORE, 0], ids=["below the reserve", "nothing left"])
async def test_a_store_without_room_is_waited_for(in_folder: Place, model: ModelServer, disk: Path, left: int) -> None:
    pipeline = in_folder.pipeline(model)
    pipeline.use(MEMSTREAM_QDRANT=f"embedded://{disk / 'store'}")
    async with running(pipeline), watched() as health:
        worker = pipeline.spawn(*STAGES, **health.env)
        await health.becomes(True, deadline=60)
        await pipeline.produce(*said_by("u1"))
        await pipeline.settled()
        before = pipeline.stored()
        ballast = fill(disk, leave=left)
        await pipeline.produce(*said_by("u2"))
        await health.becomes(False, part="disk", why=str(disk / "store"))
        look = await health.becomes(False, part="recorder", why="a write needs 128 MiB")
        assert "MiB left" in look.why["disk"]
        assert worker.poll() is None, "the process lives"
        assert pipeline.stored() == before, "reads go on"
        doctor = "".join(pipeline.cli("doctor", expect=1).split())  # the table wraps long paths
        assert "freesomespace" in doctor
        assert f"thediskof{disk / 'store'}has" in doctor
        assert (await pipeline.lags("recorder"))["recorder:memory.turns"] > 0
        ballast.unlink()
        await health.becomes(True, deadline=60)
        await pipeline.settled()
        await check_all_remembered(pipeline, ["u1", "u2"])
        await pipeline.verified()
        health.always_alive()
        pipeline.stop()


def says_why(output: str) -> bool:
    """Whether a start that found no byte names the disk's remedy."""
    started = output.rpartition("--- worker-1")[2]
    return "free some space" in started


@pytest.mark.fault(
    broken="no room for a whole folder: first for the store, then for the log, then at a start",
    holds="turns are taken until the log has no room, then refused; a start says why; with room all is handled once",
)
async def test_a_folder_without_room_takes_turns_as_long_as_it_can(
    in_folder: Place, model: ModelServer, disk: Path
) -> None:
    async with running(on(disk, in_folder, model)) as pipeline, watched() as health:
        worker = pipeline.spawn(*STAGES, **health.env)
        await health.becomes(True, deadline=60)
        await pipeline.produce(*said_by("u1"))
        await pipeline.settled()
        store_full = fill(disk, leave=BELOW_STORE)
        await pipeline.produce(*said_by("u2"))
        await health.becomes(False, part="recorder", why="a write needs 128 MiB")
        store_full.rename(disk / "store-full")
        log_full = fill(disk, leave=BELOW_LOG)
        with pytest.raises(Transient, match="a write needs 64 MiB") as refused:
            await pipeline.produce(said_by("u3")[0])
        assert "free some space" in refused.value.remedy
        log_full.rename(disk / "log-full")
        with suppress(OSError):  # a mapped hole that was read may have taken the rest
            fill(disk)
        assert worker.poll() is None, "it waits at a disk without a byte"
        pipeline.kill()
        pipeline.spawn(*STAGES)  # its supervisor starts it again and again
        await wait_for(lambda: pipeline.logs().lower(), "why it does not start", until=says_why, deadline=60)
        for each in ("store-full", "log-full", "ballast"):
            (disk / each).unlink()
        await pipeline.produce(*said_by("u3"))
        await pipeline.settled()
        await check_all_remembered(pipeline, ["u1", "u2", "u3"])
        await pipeline.verified()
        pipeline.stop()

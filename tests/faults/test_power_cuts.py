"""Power cuts under a folder: a file system on a loop device is shut down without its journal."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.engine_writer import COLLECTION, INSERTED, LANES
from tests.support.loop_disk import LoopDisk, NoLoopDisk, loop_disk
from tests.support.polling import wait_for_blocking
from tests.support.power_cuts import survive

CUTS = 2
ENGINE_CUTS = 4
READER = f"""
import asyncio, json, sys
from pathlib import Path
from memstream.adapters.vectors.embedded.edge import EdgeEngine

async def main(folder):
    engine, rows, more = EdgeEngine(folder=folder), {{}}, None
    while True:
        page, more = await engine.scroll({COLLECTION!r}, limit=1000, offset=more)
        rows |= {{each.id: each.payload["version"] for each in page}}
        if more is None:
            break
    print(json.dumps(rows))

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.timeout(900)
@pytest.mark.fault(
    broken="the power, at random moments, under a worker of all stages on a folder",
    holds="no exit 4; each acknowledged turn observed once; log, tables and store agree; nobody has an old job",
)
async def test_a_power_cut_loses_nothing_and_doubles_nothing(tmp_path: Path, fault_seed: int) -> None:
    try:
        await survive(tmp_path, cuts=CUTS, seed=fault_seed)
    except NoLoopDisk as why:
        pytest.skip(f"no power can be cut here: {why}")


@pytest.mark.timeout(600)
@pytest.mark.fault(
    broken="the power, at random moments, under the embedded engine while it writes, flushes and changes shards",
    holds="it opens; no answered write is missing or old",
)
def test_the_engine_has_each_answered_write_after_a_power_cut(tmp_path: Path, fault_seed: int) -> None:
    try:
        with loop_disk(tmp_path) as disk:
            answered: dict[int, int] = {}
            for round_ in range(ENGINE_CUTS):
                _write_until_the_cut(disk, answered, random.Random(f"{fault_seed}/{round_}"), tmp_path / "errors")
                rows = _rows(disk)
                old = {
                    id_: (version, rows.get(id_)) for id_, version in answered.items() if rows.get(id_, -1) < version
                }
                assert not old, f"after cut {round_ + 1}, of {len(answered)}: {list(old.items())[:5]}"
    except NoLoopDisk as why:
        pytest.skip(f"no power can be cut here: {why}")


def _write_until_the_cut(disk: LoopDisk, answered: dict[int, int], random_: random.Random, errors: Path) -> None:
    """Let a process write, cut the power, and note what it was told before."""
    first = max((version for id_, version in answered.items() if id_ < INSERTED), default=0) + 1000
    with errors.open("ab") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.engine_writer", str(disk.folder / "engine"), str(first)],
            stdout=subprocess.PIPE, stderr=err, text=True,
        )  # fmt: skip
    lines: list[str] = []
    assert process.stdout is not None
    reading = threading.Thread(target=lines.extend, args=(process.stdout,))
    reading.start()
    wanted = random_.randrange(1, 800)
    wait_for_blocking(
        lambda: len(lines), f"{wanted} answers", until=lambda seen: seen > wanted or process.poll() is not None,
        deadline=120, detail=errors.read_text,
    )  # fmt: skip
    assert process.poll() is None, errors.read_text()[-3000:]
    if random_.random() < 0.7:
        disk.scatter(random_)
    before = len(lines)
    disk.cut()
    process.kill()
    reading.join()
    process.wait()
    for line in lines[:before]:
        if line[0].isdigit():
            id_, version = map(int, line.split())
            answered[id_] = max(answered.get(id_, 0), version)
    assert len([id_ for id_ in answered if id_ < INSERTED]) <= LANES
    disk.unmount()
    disk.mount()


def _rows(disk: LoopDisk) -> dict[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(disk.folder / "engine")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"it does not open after a power cut: {done.stderr[-3000:]}"
    return {int(id_): version for id_, version in json.loads(done.stdout).items()}

"""An append to the log on disk is answered when the disk has it: the order of the system calls."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memstream.streams.log import sqlite_tables

PRODUCER = """
import asyncio, os, sys
from pathlib import Path
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec

async def main(folder):
    log = EmbeddedLog(folder=folder)
    await log.start()
    await log.create([TopicSpec(name="memory.turns", partitions=1, replication=1, config={})])
    for number in range(3):
        os.write(1, b"send %d" % number)
        await log.append("memory.turns", key=b"k", value=b"turn %d" % number)
        os.write(1, b"answered %d" % number)
    await log.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_each_connection_syncs_at_each_commit(tmp_path: Path) -> None:
    conn = sqlite_tables.connect(tmp_path / "new" / "folder")
    assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
    assert conn.execute("PRAGMA fullfsync").fetchone() == (1,)
    conn.close()


def test_an_append_is_synced_before_it_is_answered(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    trace = tmp_path / "trace"
    command = [strace or "", "-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o", str(trace)]
    if strace is None or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs strace, and the right to trace")
    subprocess.run([*command, sys.executable, "-c", PRODUCER, str(tmp_path / "log")], check=True, capture_output=True)
    calls = [
        line for line in trace.read_text().splitlines() if "sqlite3-wal" in line or "send" in line or "answ" in line
    ]
    for number in range(3):
        first, last = (_index(calls, f'"{what} {number}"') for what in ("send", "answered"))
        between = [re.split(r"[ (]+", call)[1] for call in calls[first + 1 : last]]
        assert "pwrite64" in between, calls
        assert between[-1] in ("fsync", "fdatasync"), f"written and not synced: {between}"


def _index(calls: list[str], text: str) -> int:
    [found] = [place for place, call in enumerate(calls) if text in call]
    return found

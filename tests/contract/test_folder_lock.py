"""The folder lock: one process holds a folder, `kill -9` frees it, its holder can be named, and files are never seen
half-written."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memstream.adapters.durable_files import write_atomically
from memstream.adapters.folder_lock import FolderLock, holder_of

HOLD = """
import sys
from pathlib import Path
from memstream.adapters.folder_lock import FolderLock
lock = FolderLock(folder=Path(sys.argv[1]), purpose="worker all")
print(lock.try_acquire(), flush=True)
sys.stdin.read()
lock.release()
"""


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the folder until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.mark.parametrize("before", [None, "empty", "an earlier version's"])
def test_a_folder_is_its_owners_alone(before: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if before is not None:
        folder.mkdir(mode=0o755)
        if before != "empty":
            (folder / ".lock").touch()
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_with_other_things_keeps_its_mode(tmp_path: Path) -> None:
    """MEMSTREAM_DATADIR=. is somebody's project."""
    tmp_path.chmod(0o755)
    (tmp_path / "code.py").touch()
    with FolderLock(folder=tmp_path) as lock:
        assert lock.try_acquire()
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_free_folder_is_made_and_taken_and_given_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with FolderLock(folder=folder) as lock:
        assert not lock.held
        assert lock.try_acquire()
        assert lock.held
        assert holder_of(folder) == f"pid {os.getpid()}"
        assert not FolderLock(folder=folder).try_acquire(), "a second instance in this process does not get it"
        assert lock.try_acquire(), "taking it again changes nothing"
    assert not lock.held
    assert holder_of(folder) == "another process"
    lock.release()
    assert FolderLock(folder=folder).try_acquire()


@pytest.mark.slow
async def test_another_process_is_named_and_waited_for(tmp_path: Path) -> None:
    with another_process(tmp_path) as holder:
        lock = FolderLock(folder=tmp_path)
        assert not lock.try_acquire()
        assert lock.holder() == f"pid {holder.pid} (worker all)"
        began = time.monotonic()
        assert not await lock.acquire(timeout=0.3)
        assert 0.25 < time.monotonic() - began < 5

        waiting = asyncio.create_task(lock.acquire(timeout=30))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert holder.stdin is not None
        holder.stdin.close()
        assert await waiting
        assert holder_of(tmp_path) == f"pid {os.getpid()}"
        lock.release()


@pytest.mark.slow
async def test_kill_9_frees_it_and_leaves_nothing_to_clean_up(tmp_path: Path) -> None:
    with another_process(tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert holder_of(tmp_path).startswith(f"pid {holder.pid} "), "a killed process leaves its name"
        with FolderLock(folder=tmp_path) as lock:
            assert await lock.acquire(timeout=5)
            assert holder_of(tmp_path) == f"pid {os.getpid()}"


def test_a_folder_that_cannot_be_made_is_an_error_not_a_wait(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError):
        FolderLock(folder=tmp_path / "file" / "folder").try_acquire()


def test_a_file_is_replaced_whole_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "qdrant.endpoint"
    contents = (b"a" * 50_000, b"b" * 70_000)
    write_atomically(path, contents[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    seen: set[bytes] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        write_atomically(path, contents[number % 2])
    stop.set()
    reader.join()
    assert seen <= set(contents)
    assert [each.name for each in tmp_path.iterdir()] == ["qdrant.endpoint"]

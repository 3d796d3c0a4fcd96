"""Syncs of the embedded engine's log: who waits for what, and in which order files reach the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from memstream.adapters import durable_files
from memstream.adapters.vectors.embedded import edge_collection, edge_sync
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.embedded.edge_sync import GroupSync, WriteAheadLog
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.errors import Fatal
from tests.support.polling import wait_for
from tests.support.vector_backends import EMBEDDER

COSINE = models.VectorParams(size=2, distance=models.Distance.COSINE)
ONE = models.Filter(must=[models.HasIdCondition(has_id=[1])])


def point(number: int) -> models.PointStruct:
    return models.PointStruct(id=number, vector={"dense": [1.0, 0.5]}, payload={"n": number})


class HeldSync:
    """A sync that ends when it is told to, and counts how often it began."""

    def __init__(self) -> None:
        self.began = 0
        self.may_end = threading.Semaphore(0)
        self.error: OSError | None = None

    def __call__(self) -> None:
        self.began += 1
        assert self.may_end.acquire(timeout=20)
        if self.error is not None:
            raise self.error


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


async def test_all_that_wait_share_the_next_sync_and_none_takes_one_that_began_before_it(
    threads: ThreadPoolExecutor,
) -> None:
    held = HeldSync()
    group = GroupSync(held, threads=threads)
    first = asyncio.create_task(group.synced())
    await wait_for(lambda: held.began, "the first sync", until=lambda began: began == 1)
    later = [asyncio.create_task(group.synced()) for _ in range(50)]
    await asyncio.sleep(0)
    held.may_end.release()
    await first
    await wait_for(lambda: held.began, "the second sync", until=lambda began: began == 2)
    assert not any(each.done() for each in later)
    held.may_end.release()
    await asyncio.gather(*later)
    assert held.began == 2


async def test_a_caller_that_is_cancelled_takes_nobody_with_it(threads: ThreadPoolExecutor) -> None:
    held = HeldSync()
    group = GroupSync(held, threads=threads)
    gone, other = (asyncio.create_task(group.synced()) for _ in range(2))
    await wait_for(lambda: held.began, "the sync", until=lambda began: began == 1)
    gone.cancel()
    held.may_end.release()
    await other
    assert gone.cancelled()


async def test_after_a_sync_that_failed_nothing_is_called_durable(threads: ThreadPoolExecutor) -> None:
    held = HeldSync()
    held.error = OSError("I/O error")
    group = GroupSync(held, threads=threads)
    held.may_end.release()
    with pytest.raises(Fatal, match="I/O error"):
        await group.synced()
    held.error = None  # the kernel reports a page that it could not write once
    with pytest.raises(Fatal, match="check the disk"):
        await group.synced()
    with pytest.raises(Fatal):
        group.check()


def test_each_open_file_of_the_log_is_synced_and_a_closed_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(edge_sync, "sync_file", lambda path: synced.append(path.name))
    monkeypatch.setattr(edge_sync, "sync_folder", lambda path: synced.append("names"))
    folder = tmp_path / "wal"
    folder.mkdir()
    for name in ("open-1", "open-2", "first-index"):
        (folder / name).touch()
    log = WriteAheadLog(tmp_path)

    def sync() -> list[str]:
        synced.clear()
        log.sync()
        return sorted(synced)

    assert sync() == ["names", "open-1", "open-2"]
    assert sync() == ["open-1", "open-2"]
    (folder / "open-1").rename(folder / "closed-7")
    assert sync() == ["closed-7", "names", "open-2"]
    assert sync() == ["open-2"]


async def test_the_next_file_of_the_log_is_synced_once_until_it_has_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the engine's own files: `open-2` stands before `open-1` is full, which takes 32 MiB."""
    engine = EdgeEngine(folder=tmp_path)
    await engine.create_collection("facts", {"dense": COSINE})
    synced: list[str] = []
    monkeypatch.setattr(edge_sync, "sync_file", lambda path: synced.append(path.name))
    await engine.upsert("facts", [point(1)])
    assert synced == ["open-1"], "both were synced when the collection was opened"
    large = "x" * 6_000_000
    for number in range(2, 8):
        filled = models.PointStruct(id=number, vector={"dense": [1.0, 0.5]}, payload={"n": large})
        await engine.upsert("facts", [filled], wait=False)
    synced.clear()
    await engine.synced("facts")
    assert {name for name in synced if name.startswith("closed-")}
    assert "open-2" in synced
    await engine.close()


async def test_a_write_that_does_not_wait_is_on_the_disk_after_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EdgeEngine(folder=tmp_path)
    await engine.create_collection("facts", {"dense": COSINE})
    synced: list[str] = []
    monkeypatch.setattr(edge_sync, "sync_file", lambda path: synced.append(path.name))
    writes: list[Any] = [
        lambda: engine.upsert("facts", [point(1)], wait=False),
        lambda: engine.set_payload("facts", {"seen": True}, ONE, wait=False),
        lambda: engine.update_vectors("facts", [models.PointVectors(id=1, vector={"dense": [0.0, 1.0]})], wait=False),
        lambda: engine.delete("facts", ONE, wait=False),
    ]
    for write in writes:
        await write()
    assert not synced
    await engine.synced("facts")
    assert synced == ["open-1"]
    await engine.close()


async def test_writes_together_share_one_sync_of_each_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EdgeEngine(folder=tmp_path)
    store = QdrantStore(engine=engine, embedder=EMBEDDER)
    await store.ensure("facts", "working")
    synced: list[str] = []
    monkeypatch.setattr(edge_sync, "sync_file", lambda path: synced.append(path.parents[2].name))

    async def write() -> None:
        for collection in ("facts", "working", "facts"):
            await store.set_payload(
                collection, tenant_id="acme", ids=["3f333df6-90a4-4fda-8dd3-9485d27cee36"], fields={"seen": 1}
            )

    await write()
    assert [name.partition("_")[0] for name in synced] == ["facts", "working", "facts"]
    synced.clear()
    async with store.writes_together():
        await write()
        assert not synced
    assert sorted(name.partition("_")[0] for name in synced) == ["facts", "working"]
    with pytest.raises(Fatal):
        async with store.writes_together():
            await store.set_payload("nothing", tenant_id="acme", ids=[], fields={})
    synced.clear()
    await write()
    assert synced, "after a block that failed writes wait again"
    await store.close()


async def test_who_waits_for_a_sync_while_the_shard_is_replaced_gets_that_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EdgeEngine(folder=tmp_path)
    await engine.create_collection("facts", {"dense": COSINE})
    [(_, collection)] = engine.collections()
    copy = await collection.copy_shard()
    await engine.upsert("facts", [point(1)], wait=False)
    loop, sync, waiting, old = asyncio.get_running_loop(), WriteAheadLog.sync, list[asyncio.Task[None]](), list[str]()

    def while_it_is_replaced(log: WriteAheadLog) -> None:
        if log._folder.parent == copy and not waiting:
            loop.call_soon_threadsafe(lambda: waiting.append(asyncio.create_task(engine.synced("facts"))))
            for _ in range(20):  # time enough for it to begin
                went_on = threading.Event()
                loop.call_soon_threadsafe(went_on.set)
                assert went_on.wait(20)
        elif waiting and log._folder.parent != copy:
            old.append("the old log may be gone")
        sync(log)

    monkeypatch.setattr(WriteAheadLog, "sync", while_it_is_replaced)
    collection._sync = GroupSync(
        lambda: while_it_is_replaced(WriteAheadLog(tmp_path / "facts" / "shard")), threads=engine._threads
    )
    await collection.replace_shard(copy)
    await asyncio.gather(*waiting)
    assert waiting
    assert not old
    await engine.close()


def test_a_log_file_that_is_renamed_meanwhile_is_synced_under_its_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wal"
    folder.mkdir()
    for name in ("open-1", "open-2"):
        (folder / name).touch()
    synced: list[str] = []

    def sync(path: Path) -> None:
        if (folder / "open-1").exists():
            (folder / "open-1").rename(folder / "closed-1")
        path.stat()
        synced.append(path.name)

    monkeypatch.setattr(edge_sync, "sync_file", sync)
    WriteAheadLog(tmp_path).sync()
    assert "closed-1" in synced


def test_a_shard_without_a_log_is_no_shard_that_we_can_sync(tmp_path: Path) -> None:
    (tmp_path / "wal").mkdir()
    with pytest.raises(OSError, match="no log"):
        WriteAheadLog(tmp_path).sync()
    (tmp_path / "wal").rmdir()
    with pytest.raises(FileNotFoundError):
        WriteAheadLog(tmp_path).sync()


async def test_each_write_is_answered_when_its_log_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EdgeEngine(folder=tmp_path / "engine")
    await engine.create_collection("facts", {"dense": COSINE})
    wal = tmp_path / "engine" / "facts" / "shard" / "wal"
    synced: list[Path] = []

    def sync(path: Path) -> None:
        synced.append(path)
        durable_files.sync_file(path)

    monkeypatch.setattr(edge_sync, "sync_file", sync)
    writes: list[Any] = [
        lambda: engine.upsert("facts", [point(1)]),
        lambda: engine.set_payload("facts", {"seen": True}, ONE),
        lambda: engine.update_vectors("facts", [models.PointVectors(id=1, vector={"dense": [0.0, 1.0]})]),
        lambda: engine.delete("facts", ONE),
    ]
    for write in writes:
        synced.clear()
        await write()
        assert wal / "open-1" in synced
    synced.clear()
    await engine.close()
    again = EdgeEngine(folder=tmp_path / "engine")
    assert wal / "open-1" in synced, "a killed process may have left writes that only the kernel has"
    await again.close()


async def test_a_new_collection_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(edge_collection, "sync_tree", lambda folder: steps.append(f"tree of {folder.name}"))
    engine = EdgeEngine(folder=tmp_path)
    monkeypatch.setattr("memstream.adapters.vectors.embedded.edge.sync_folder", lambda folder: steps.append("name"))
    await engine.create_collection("facts", {"dense": COSINE})
    assert steps == ["tree of .creating-facts", "name"]
    await engine.close()


async def test_a_copy_counts_when_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EdgeEngine(folder=tmp_path)
    await engine.create_collection("facts", {"dense": COSINE})
    await engine.upsert("facts", [point(1)])
    [(_, collection)] = engine.collections()
    steps: list[str] = []

    def noted(name: str, real: Any) -> Any:
        def call(path: Path, *rest: Any) -> None:
            steps.append(f"{name} {path.relative_to(tmp_path / 'facts')}")
            real(path, *rest)

        return call

    monkeypatch.setattr(edge_collection, "sync_tree", noted("tree", durable_files.sync_tree))
    monkeypatch.setattr(edge_collection, "write_atomically", noted("write", durable_files.write_atomically))
    monkeypatch.setattr(edge_sync, "sync_file", noted("sync", durable_files.sync_file))
    copy = await collection.copy_shard()
    await engine.upsert("facts", [point(2)])
    steps.clear()
    await collection.replace_shard(copy)
    written = steps.index("write shard.json")
    assert steps.index("tree shard-1") < steps.index("sync shard-1/wal/open-1") < written
    assert "sync shard/wal/open-1" in steps[:written], "who waits for the old log has it before its files go"

    await collection.discard_copy(copy)  # a stop that comes while the old files are deleted
    assert copy.is_dir()
    await engine.upsert("facts", [point(3)])
    assert steps[-1].startswith("sync shard-1/wal/")
    await engine.close()
    again = EdgeEngine(folder=tmp_path)
    assert (await again.count("facts")).count == 3
    await again.close()


def test_a_tree_is_synced_with_each_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    synced: list[Path] = []
    monkeypatch.setattr(durable_files, "_synced", lambda path, sync: synced.append(path))
    durable_files.sync_tree(tmp_path)
    assert set(synced) == {tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "file"}
    synced.clear()
    durable_files.make_folder(tmp_path / "c" / "d", mode=0o700)
    assert set(synced) == {tmp_path / "c", tmp_path}

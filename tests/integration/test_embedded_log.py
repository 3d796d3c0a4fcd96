"""The log on disk alone: kill -9, several processes, a full disk, clean-up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from memstream.schemas.errors import Fatal, Transient
from memstream.streams.log import group_lock, sqlite_cleaner, sqlite_tables
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.log_registry import close_log, open_log
from memstream.streams.log.port import TopicSpec
from memstream.streams.log.sqlite_log import SqliteLog

ROOT = Path(__file__).resolve().parents[2]
DAY = 86_400_000


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def core(log: EmbeddedLog, tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """The same open log, from below."""
    opened = await open_log(tmp_path / "log")
    yield opened
    await close_log(opened)


def writer(folder: Path, **options: object) -> subprocess.Popen[str]:
    fields = {name: str(value) for name, value in {"folder": folder, **options}.items()}
    command = [sys.executable, "-m", "tests.support.log_writer", json.dumps(fields)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def values(log: EmbeddedLog, topic: str) -> list[bytes | None]:
    return [record.value async for record in log.read(topic)]


async def make(log: EmbeddedLog, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    await log.create([TopicSpec(topic, partitions, 1, config or {})])


# -------------------------------------------------------------------------------------------------------- durability


async def test_an_append_is_synced_before_it_is_answered_and_a_commit_alone_by_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, done = sqlite_tables.connect, list[str]()

    def traced(folder: Path, *, shared: bool = False) -> sqlite3.Connection:
        conn = connect(folder, shared=shared)

        def note(statement: str) -> None:
            if statement.startswith(("PRAGMA synchronous", "COMMIT")):
                done.append(statement)

        conn.set_trace_callback(note)
        return conn

    monkeypatch.setattr(sqlite_tables, "connect", traced)
    opened = SqliteLog(folder=tmp_path)
    opened.start()
    try:
        await opened.create([("t", 1, {})])
        topic = opened.topic("t")
        assert topic is not None
        [part] = topic.parts
        unsynced, synced = ["PRAGMA synchronous = NORMAL", "COMMIT"], ["PRAGMA synchronous = FULL", "COMMIT"]
        done.clear()
        await opened.append(part, key=b"k", value=b"v")
        assert done == synced
        done.clear()
        await opened.commit("group", {part: 1})
        assert done == unsynced
        done.clear()
        await asyncio.gather(opened.commit("group", {part: 1}), opened.append(part, key=b"k", value=b"v"))
        assert done in (synced, unsynced + synced)
        done.clear()
        await opened.add_partitions("t", 2)
        assert done == synced
        assert opened.committed("group", [part]) == [1]
    finally:
        opened.stop()


async def test_a_writer_killed_in_the_middle_has_lost_nothing_it_was_told_is_there(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    await make(log, "t", 3)
    told: list[tuple[int, int, int, int, int]] = []
    for life in range(3):
        process = await asyncio.to_thread(writer, tmp_path / "log", topic="t", name=life, writers=16)
        assert process.stdout is not None
        lines: list[str] = []
        while len(lines) < 400:
            lines.append(await asyncio.to_thread(process.stdout.readline))
        process.send_signal(signal.SIGKILL)
        rest, _ = await asyncio.to_thread(process.communicate)
        lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        for line in lines:
            number, count, partition, offset = map(int, line.split())
            told.append((life, number, count, partition, offset))
    found = {(r.position.partition, r.position.offset): r.value async for r in log.read("t")}
    for life, number, count, partition, offset in told:
        assert found[partition, offset] == f"{life} {number} {count}".encode()
    for partition, end in enumerate(await log.ends("t")):
        assert sorted(offset for p, offset in found if p == partition) == list(range(end))
    place = await log.append("t", key=None, value=b"after", partition=0)
    assert place.offset == sum(p == 0 for p, _ in found)


async def test_two_processes_append_at_once_and_a_third_reads_along(log: EmbeddedLog, tmp_path: Path) -> None:
    await make(log, "t")
    seen: list[bytes] = []

    async def follow() -> None:
        async for record in log.read("t", follow=True):
            seen.append(record.value or b"")
            if len(seen) == 1200:
                return

    follower = asyncio.create_task(follow())
    processes = [
        await asyncio.to_thread(writer, tmp_path / "log", topic="t", name=name, writers=4, count=150) for name in "ab"
    ]
    try:
        outputs = [await asyncio.to_thread(process.communicate) for process in processes]
        assert [len(out.splitlines()) for out, _ in outputs] == [600, 600]
        await asyncio.wait_for(follower, 30)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert await log.ends("t") == (1200,)
    for name in "ab":
        for number in range(4):
            mine = [value for value in seen if value.startswith(f"{name} {number} ".encode())]
            assert mine == [f"{name} {number} {n}".encode() for n in range(150)]


async def test_a_foreign_append_wakes_a_reader_soon(log: EmbeddedLog, tmp_path: Path) -> None:
    """Well below what a slow machine could blur: without the poll it would never come."""
    await make(log, "t")
    arrived = asyncio.Event()

    async def follow() -> None:
        async for _ in log.read("t", follow=True):
            arrived.set()
            return

    task = asyncio.create_task(follow())
    process = await asyncio.to_thread(writer, tmp_path / "log", topic="t", name="x", count=1)
    await asyncio.wait_for(arrived.wait(), 10)
    await asyncio.to_thread(process.communicate)
    await task


async def test_a_topic_made_by_another_process_is_known_at_the_first_append(log: EmbeddedLog, tmp_path: Path) -> None:
    other = sqlite_tables.connect(tmp_path / "log")  # what another process does, without this one's writing thread
    with other:
        other.execute("BEGIN IMMEDIATE")
        sqlite_tables.create(other, "foreign", 2, {})
    other.close()
    assert await log.partitions("foreign") == 2
    assert (await log.append("foreign", key=None, value=b"v", partition=1)).offset == 0


async def test_offsets_go_on_after_a_restart(tmp_path: Path) -> None:
    for life in range(3):
        log = EmbeddedLog(folder=tmp_path / "log")
        await log.start()
        await make(log, "t")
        for n in range(10):
            assert (await log.append("t", key=b"k", value=b"%d" % n)).offset == 10 * life + n
        await log.close()


async def test_appends_that_wait_at_the_close_are_done_or_refused(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    await make(log, "t")
    appends = [asyncio.create_task(log.append("t", key=b"k", value=b"%d" % n)) for n in range(200)]
    await asyncio.sleep(0)
    await log.close()
    results = await asyncio.wait_for(asyncio.gather(*appends, return_exceptions=True), 10)
    await log.start()
    done = sum(not isinstance(result, BaseException) for result in results)
    assert len(await values(log, "t")) == done
    await log.close()


async def test_a_full_disk_is_transient_and_nothing_is_lost_when_there_is_room_again(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    await make(log, "t")
    process = await asyncio.to_thread(writer, tmp_path / "log", topic="t", name="x", writers=4, limit=1_000_000)
    out, _ = await asyncio.wait_for(asyncio.to_thread(process.communicate), 60)
    lines = out.splitlines()
    told = [line.split() for line in lines if line[0].isdigit()]
    assert any(line.startswith("full") for line in lines)
    (again,) = (line for line in lines if line.startswith("again"))
    found = {r.position.offset: r.value async for r in log.read("t")}
    assert len(told) > 50
    for number, count, _, offset in told:
        assert found[int(offset)] == f"x {number} {count}".encode()
    assert sorted(found) == list(range(len(found)))
    assert found[int(again.split()[2])] == b"room again"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_broken_writing_thread_refuses_instead_of_hanging(
    core: SqliteLog, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(log, "t")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(sqlite_tables, "insert", broken)
    for _ in range(2):
        with pytest.raises(Transient, match="closed"):
            await asyncio.wait_for(log.append("t", key=b"k", value=b"v"), 10)


# ----------------------------------------------------------------------------------------------------- wrong folders


async def test_a_file_that_is_no_log_is_fatal_and_named(tmp_path: Path) -> None:
    (tmp_path / sqlite_tables.FILE).write_bytes(b"this is no database" * 100)
    with pytest.raises(Fatal, match=str(tmp_path)):
        await EmbeddedLog(folder=tmp_path).start()


async def test_a_folder_of_another_version_is_fatal(tmp_path: Path) -> None:
    conn = sqlite3.connect(tmp_path / sqlite_tables.FILE)
    conn.execute("PRAGMA user_version = 99")
    conn.close()
    with pytest.raises(Fatal, match="another version"):
        await EmbeddedLog(folder=tmp_path).start()


async def test_a_file_where_the_folder_should_be_is_fatal(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    with pytest.raises(Fatal, match="another folder"):
        await EmbeddedLog(folder=tmp_path / "log").start()


# ------------------------------------------------------------------------------------------------------------ groups


async def test_a_group_is_held_until_its_process_dies(log: EmbeddedLog, tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, pathlib\n"
        "from memstream.streams.log import group_lock\n"
        "async def main():\n"
        "    await group_lock.hold(pathlib.Path(sys.argv[1]), 'memory-observer')\n"
        "    print('held', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", code, str(log._opened().folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "held\n"
    assert await log.members("memory-observer") == 1
    with pytest.raises(Fatal, match=str(process.pid)):
        await group_lock.hold(tmp_path / "log", "memory-observer", wait=0.2)
    process.kill()
    await asyncio.to_thread(process.wait)
    assert await log.members("memory-observer") == 0
    release = await group_lock.hold(tmp_path / "log", "memory-observer", wait=5)
    assert await log.members("memory-observer") == 1
    release()


async def test_commands_that_ask_for_members_at_once_find_no_worker(log: EmbeddedLog, tmp_path: Path) -> None:
    folder = log._opened().folder
    (await group_lock.hold(folder, "memory-observer"))()
    other = group_lock._lock(group_lock.lock_file(folder, "memory-observer"))
    other.acquire(blocking=False)  # the other command, in the middle of its look
    asked = asyncio.create_task(log.members("memory-observer"))
    await asyncio.sleep(0)
    other.release()
    assert await asked == 0


async def test_only_its_owner_may_read_who_holds_a_group(log: EmbeddedLog) -> None:
    release = await group_lock.hold(log._opened().folder, "memory-observer")
    path = group_lock.lock_file(log._opened().folder, "memory-observer")
    for file in (path, path.with_suffix(".pid")):
        assert file.stat().st_mode & 0o077 == 0
    assert path.with_suffix(".pid").read_text() == f"{os.getpid()}\n"
    release()


async def test_a_command_that_asks_for_members_keeps_no_worker_out(log: EmbeddedLog, tmp_path: Path) -> None:
    release = await group_lock.hold(tmp_path / "log", "g" * 300)
    release()
    assert await log.members("g" * 300) == 0
    (await group_lock.hold(tmp_path / "log", "g" * 300, wait=0))()


# ---------------------------------------------------------------------------------------------------------- clean-up


async def fill(log: EmbeddedLog, topic: str, rows: list[tuple[bytes, bytes | None]], *, at: int = 1) -> None:
    for key, value in rows:
        await log.append(topic, key=key, value=value, timestamp=at)


async def kept(log: EmbeddedLog, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.position.offset, r.key, r.value) async for r in log.read(topic)]


async def test_compaction_keeps_the_last_of_each_key_and_the_offsets(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 2, {"cleanup.policy": "compact"})
    for n in range(2000):
        await log.append("t", key=b"k%d" % (n % 10), value=b"%d" % n, timestamp=1, partition=n % 2)
    await fill(log, "t", [(b"end", b"")])
    ends = await log.ends("t")
    assert await core.clean(["t"], now=DAY) > 1900
    last = {r.key: r.value async for r in log.read("t")}
    assert last == {**{b"k%d" % n: b"%d" % (1990 + n) for n in range(10)}, b"end": b""}
    assert len(await kept(log, "t")) <= 12  # a partition's last record stays even when it is alone
    assert await log.ends("t") == ends
    assert await core.clean(["t"], now=DAY) == 0
    assert (await log.append("t", key=b"k0", value=b"new", partition=0)).offset == ends[0]


async def test_compaction_spares_what_is_younger_than_the_lag(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(DAY)})
    await fill(log, "t", [(b"a", b"1"), (b"a", b"2")], at=1000)
    await fill(log, "t", [(b"a", b"3"), (b"a", b"4"), (b"b", b"5")], at=DAY)
    assert await core.clean(["t"], now=DAY) == 0
    await core.clean(["t"], now=DAY + 2000)
    assert [value for _, _, value in await kept(log, "t")] == [b"2", b"3", b"4", b"5"]
    await core.clean(["t"], now=3 * DAY)
    assert [value for _, _, value in await kept(log, "t")] == [b"4", b"5"]


async def test_a_tombstone_stays_for_a_day_after_compaction_met_it(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact"})
    await fill(log, "t", [(b"a", b"1"), (b"b", b"2"), (b"a", None), (b"end", b"")], at=1000)
    await core.clean(["t"], now=100 * DAY)
    assert [(k, v) for _, k, v in await kept(log, "t")] == [(b"b", b"2"), (b"a", None), (b"end", b"")]
    await core.clean(["t"], now=101 * DAY - 1)
    assert len(await kept(log, "t")) == 3
    await core.clean(["t"], now=101 * DAY)
    assert [(k, v) for _, k, v in await kept(log, "t")] == [(b"b", b"2"), (b"end", b"")]


async def test_a_tombstone_at_the_very_end_stays_so_that_no_reader_waits_for_its_offset(
    log: EmbeddedLog, core: SqliteLog
) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact"})
    await fill(log, "t", [(b"a", b"1"), (b"b", b"2"), (b"a", None)])
    for day in range(100, 105):
        await core.clean(["t"], now=day * DAY)
    assert await log.first_at_or_after("t", 0, 2) == 2


async def test_a_deleted_topic_takes_its_records_and_commits_with_it(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 2)
    await make(log, "other")
    await fill(log, "t", [(b"k%d" % n, b"v") for n in range(20)])
    await fill(log, "other", [(b"k", b"v")])
    await core.commit("g", dict.fromkeys(core.topics()["t"].parts, 1))
    await log.delete(["t"])
    with sqlite3.connect(core.folder / sqlite_tables.FILE) as conn:
        assert conn.execute("SELECT count(*) FROM record").fetchone() == (1,)
        assert conn.execute("SELECT count(*) FROM committed").fetchone() == (0,)
    conn.close()


async def test_a_second_tombstone_waits_for_a_horizon_of_its_own(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact"})
    await fill(log, "t", [(b"a", b"1"), (b"a", None), (b"x", b"")])
    await core.clean(["t"], now=DAY)
    await fill(log, "t", [(b"b", b"1"), (b"b", None), (b"x", b"")])
    await core.clean(["t"], now=DAY + 1000)
    await core.clean(["t"], now=2 * DAY)  # due for a, one second old for b
    assert [k for _, k, v in await kept(log, "t") if v is None] == [b"b"]
    await core.clean(["t"], now=3 * DAY)
    assert [k for _, k, v in await kept(log, "t") if v is None] == []


async def test_retention_takes_the_old_ones_and_never_what_a_group_has_not_read(
    log: EmbeddedLog, core: SqliteLog
) -> None:
    await make(log, "t", 1, {"retention.ms": "1000"})
    await fill(log, "t", [(b"k", b"%d" % n) for n in range(10)], at=1000)
    (part,) = core.topics()["t"].parts
    await core.commit("memory-observer", {part: 4})
    assert await core.clean(["t"], now=DAY) == 4
    assert await log.starts("t") == (4,)
    assert [offset for offset, _, _ in await kept(log, "t")] == [4, 5, 6, 7, 8, 9]
    assert await log.first_at_or_after("t", 0, 0) == 4
    await core.commit("memory-observer", {part: 10})
    await core.clean(["t"], now=DAY)
    assert [offset for offset, _, _ in await kept(log, "t")] == [9]
    assert (await log.append("t", key=b"k", value=b"", timestamp=DAY)).offset == 10


async def test_what_is_deleted_is_in_no_file(log: EmbeddedLog, core: SqliteLog, tmp_path: Path) -> None:
    await make(log, "t", 1, {"retention.ms": "1000"})
    await make(log, "c", 1, {"cleanup.policy": "compact"})
    await fill(log, "t", [(b"k", b"canary-" + b"x" * 20_000), (b"k", b"canary-short")])
    await fill(log, "c", [(b"k", b"canary-short"), (b"k", b"last"), (b"end", b"")])
    await log.append("t", key=b"k", value=b"young", timestamp=DAY)

    def found() -> bool:
        with closing(sqlite3.connect(tmp_path / "log" / sqlite_tables.FILE)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return any(b"canary-" in path.read_bytes() for path in (tmp_path / "log").glob(f"{sqlite_tables.FILE}*"))

    assert found()
    await core.clean(["t", "c"], now=DAY)
    assert not found()
    assert [value for _, _, value in await kept(log, "t")] == [b"young"]


async def test_retention_stops_at_the_first_young_record(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"retention.ms": "1000"})
    await fill(log, "t", [(b"k", b"old")], at=1)
    await fill(log, "t", [(b"k", b"young")], at=DAY)
    await fill(log, "t", [(b"k", b"old, but behind"), (b"k", b"last")], at=1)
    await core.clean(["t"], now=DAY + 500)
    assert [value for _, _, value in await kept(log, "t")] == [b"young", b"old, but behind", b"last"]
    await make(log, "forever", 1, {"retention.ms": "-1"})
    await fill(log, "forever", [(b"k", b""), (b"k", b"")], at=1)
    assert await core.clean(["forever"], now=1000 * DAY) == 0


async def test_cleaning_goes_on_between_appends_and_readers(
    log: EmbeddedLog, core: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_cleaner, "STEP", 20)
    await make(log, "t", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
    state: dict[bytes, bytes] = {}

    async def write() -> None:
        for n in range(1500):
            key, value = b"k%d" % (n % 40), b"%d" % n
            await log.append("t", key=key, value=value)
            state[key] = value

    writing = asyncio.create_task(write())
    while not writing.done():
        await core.clean(["t"])
        await asyncio.sleep(0.01)
    await writing
    await core.clean(["t"], now=int(time.time() * 1000) + 10)
    assert {key: value for _, key, value in await kept(log, "t")} == state
    assert len(await kept(log, "t")) <= 41


@pytest.mark.parametrize("ahead", ["first", "middle", "several"])
async def test_records_of_a_clock_ahead_stop_no_retention(log: EmbeddedLog, core: SqliteLog, ahead: str) -> None:
    """A log may hold records that were written while the machine's clock was ten years ahead."""
    await make(log, "t", 1, {"retention.ms": str(DAY)})
    future = {"first": [0], "middle": [5], "several": [0, 1, 5, 6, 8]}[ahead]
    for n in range(10):
        await append_at(core, "t", b"k", b"%d" % n, at=3650 * DAY if n in future else 100 * DAY + n)
    await append_at(core, "t", b"k", b"young", at=109 * DAY + 1)
    await append_at(core, "t", b"k", b"last", at=110 * DAY)
    assert await core.clean(["t"], now=110 * DAY) == 10
    assert [value for _, _, value in await kept(log, "t")] == [b"young", b"last"]


async def test_a_record_of_a_clock_ahead_is_as_old_as_the_next_one(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"retention.ms": str(DAY)})
    await append_at(core, "t", b"k", b"old", at=100 * DAY)
    await append_at(core, "t", b"k", b"unknown", at=3650 * DAY)
    await append_at(core, "t", b"k", b"young", at=109 * DAY + 1)
    await append_at(core, "t", b"k", b"last", at=109 * DAY + 2)
    await core.clean(["t"], now=110 * DAY)
    assert [value for _, _, value in await kept(log, "t")] == [b"unknown", b"young", b"last"]


@pytest.mark.parametrize("lag", [0, DAY])
async def test_records_of_a_clock_ahead_stop_no_compaction(log: EmbeddedLog, core: SqliteLog, lag: int) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(lag)})
    await append_at(core, "t", b"ahead", b"1", at=3650 * DAY)
    for n in range(100):
        await append_at(core, "t", b"k%d" % (n % 3), b"%d" % n, at=3650 * DAY if n % 10 == 5 else 100 * DAY + n)
    await append_at(core, "t", b"end", b"", at=110 * DAY)
    await core.clean(["t"], now=110 * DAY)
    assert [value for _, _, value in await kept(log, "t")] == [b"1", b"97", b"98", b"99", b""]


async def test_a_pass_of_a_clock_ahead_keeps_no_tombstone_for_years(log: EmbeddedLog, core: SqliteLog) -> None:
    await make(log, "t", 1, {"cleanup.policy": "compact"})
    await fill(log, "t", [(b"a", b"1"), (b"a", None), (b"end", b"")], at=1000)
    await core.clean(["t"], now=3650 * DAY)
    await core.clean(["t"], now=100 * DAY)
    await core.clean(["t"], now=101 * DAY - 1)
    assert [k for _, k, v in await kept(log, "t") if v is None] == [b"a"]
    await core.clean(["t"], now=101 * DAY)
    assert [k for _, k, v in await kept(log, "t") if v is None] == []


async def append_at(core: SqliteLog, topic: str, key: bytes, value: bytes | None, *, at: int) -> None:
    """Append without the check of the timestamp, as a machine does whose own clock is wrong."""
    await core.append(core.topics()[topic].parts[0], key=key, value=value, timestamp=at)

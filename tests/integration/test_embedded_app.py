"""Stage apps over the log on disk: kill -9, topics that come later, give-back, recovery after a clean-up."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from faust.types import TP
from yarl import URL

from memstream.schemas.errors import Fatal
from memstream.streams.faust.transports.embedded import EmbeddedTransport
from memstream.streams.log import group_lock
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.log_registry import close_log, open_log
from memstream.streams.log.markers import OWN_KEYS
from memstream.streams.log.port import TopicSpec
from tests.support.polling import at_least, wait_for
from tests.support.small_app import WITHIN, SmallApp

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "max.message.bytes": str(4 << 20)}


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    await made.create(
        [TopicSpec(n, 2, 1, {}) for n in ("in", "out")] + [TopicSpec("app-count-changelog", 2, 1, CHANGELOG)]
    )
    yield made
    await made.close()


@pytest.fixture
async def apps(log: EmbeddedLog) -> AsyncIterator[list[SmallApp]]:
    started: list[SmallApp] = []
    yield started
    await asyncio.gather(*(app.stop() for app in started))


def make(apps: list[SmallApp], folder: Path, *, datadir: str = "data", **options: Any) -> SmallApp:
    fields: dict[str, Any] = {"name": "app", "reads": ["in"], "writes": "out", **options}
    app = SmallApp(broker=f"embedded://{folder}/log", datadir=folder / datadir, **fields)
    apps.append(app)
    return app


async def lag(log: EmbeddedLog, group: str, topic: str) -> int:
    committed, ends = await log.committed(group, topic), await log.ends(topic)
    return sum(end - (at or 0) for at, end in zip(committed, ends, strict=True))


# ------------------------------------------------------------------------------------------------------------ kill -9


@pytest.mark.timeout(180)
@pytest.mark.long
async def test_a_worker_killed_again_and_again_loses_nothing(log: EmbeddedLog, tmp_path: Path) -> None:
    """The worker notes per key how many events it saw, in which order, in its table; no kill may show there."""
    options = {
        "broker": f"embedded://{tmp_path}/log",
        "name": "app",
        "partitions": 2,
        "datadir": str(tmp_path / "data"),
        "note": str(tmp_path / "notes"),
    }
    counts: Counter[str] = Counter()
    done = asyncio.Event()

    async def feed() -> None:
        while not done.is_set():
            key = f"k{random.randrange(20)}"
            await log.append("app-in", key=key.encode(), value=str(counts[key]).encode())
            counts[key] += 1
            await asyncio.sleep(0.004)

    await log.create([TopicSpec(n, 2, 1, {}) for n in ("app-in", "app-out")])
    feeding = asyncio.create_task(feed())
    (tmp_path / "data").mkdir()
    process: subprocess.Popen[bytes] | None = None
    try:
        for _ in range(4):
            before = sum(await log.ends("app-out"))
            process = await asyncio.to_thread(
                subprocess.Popen, [sys.executable, "-m", "tests.support.kafka_worker", json.dumps(options)], cwd=ROOT
            )
            for _ in range(400):
                if sum(await log.ends("app-out")) > before + random.randrange(50, 200):
                    break
                await asyncio.sleep(0.05)
            assert process.poll() is None
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        done.set()
        await feeding
        process = await asyncio.to_thread(
            subprocess.Popen, [sys.executable, "-m", "tests.support.kafka_worker", json.dumps(options)], cwd=ROOT
        )
        for _ in range(600):
            if not await lag(log, "app", "app-in"):
                break
            await asyncio.sleep(0.05)
        assert await lag(log, "app", "app-in") == 0
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 30) == 0
    finally:
        feeding.cancel()
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
    assert sum(counts.values()) > 300
    firsts: dict[str, list[int]] = {}
    async for record in log.read("app-out"):
        seen = firsts.setdefault((record.key or b"").decode(), [])
        if int(record.value or b"") not in seen:
            seen.append(int(record.value or b""))
    assert firsts == {key: list(range(n)) for key, n in counts.items()}
    rows: dict[str, dict[str, int]] = {}
    async for record in log.read("app-count-changelog"):
        if not (record.key or b"").startswith(OWN_KEYS.encode()):
            rows[(record.key or b"").decode()] = json.loads(record.value or b"")
    assert {key: (row["n"], row["wrong"]) for key, row in rows.items()} == {key: (n, 0) for key, n in counts.items()}


# --------------------------------------------------------------------------------------------------------- assignment


async def test_a_topic_that_comes_later_is_read_without_a_restart(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path
) -> None:
    app = make(apps, tmp_path, reads=["in", "later"])
    await app.start()
    await log.append("in", key=b"k", value=b"1")
    await wait_for(lambda: len(app.seen) == 1, "the first topic's record", deadline=WITHIN)
    await log.create([TopicSpec("later", 2, 1, {})])
    await log.append("later", key=b"k", value=b"2")
    await wait_for(lambda: len(app.seen), "the later topic's record", until=at_least(2), deadline=WITHIN)
    assert app.values() == [b"1", b"2"]
    assert app.table() == {"k": 2}


async def test_a_second_worker_of_a_group_is_refused_by_pid(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedTransport.Consumer, "group_wait", 0.1)
    release = await group_lock.hold(tmp_path / "log", "app")
    app = make(apps, tmp_path)
    with pytest.raises(Fatal, match="already works for app"):
        await asyncio.wait_for(app.app.start(), 20)
    release()


@pytest.mark.parametrize("url", ["embedded://log", "embedded:///", "embedded://host/log"])
def test_an_address_without_an_absolute_folder_is_refused(url: str) -> None:
    with pytest.raises(Fatal, match="embedded:///folder"):
        _ = EmbeddedTransport([URL(url)], app=None).folder


async def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "ü #1; 50%41, a?b"
    log = EmbeddedLog(folder=folder / "log")
    await log.start()
    await log.create([TopicSpec(name, 2, 1, {}) for name in ("in", "app-count-changelog")])
    app = make([], folder, writes=None)
    await app.start()
    await log.append("in", key=b"k", value=b"v")
    await wait_for(lambda: app.seen, "the record", deadline=WITHIN)
    await app.stop()
    await log.close()


# ----------------------------------------------------------------------------------------------------------- delivery


async def test_records_of_a_paused_partition_come_once_and_in_order_afterwards(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path
) -> None:
    app = make(apps, tmp_path)
    await app.start()
    consumer = app.app.consumer
    total = 1500

    async def pause_and_resume() -> None:
        while len(app.seen) < total:
            tps = random.sample([TP("in", 0), TP("in", 1)], random.randint(1, 2))
            consumer.pause_partitions(tps)
            await asyncio.sleep(random.uniform(0, 0.01))
            consumer.resume_partitions(tps)
            await asyncio.sleep(random.uniform(0, 0.01))

    pausing = asyncio.create_task(pause_and_resume())
    await asyncio.gather(*(log.append("in", key=b"k", value=b"%d" % n, partition=n % 2) for n in range(total)))
    await wait_for(lambda: len(app.seen), "all records", until=at_least(total), deadline=WITHIN)
    await pausing
    for partition in range(2):
        offsets = [seen.offset for seen in app.seen if seen.partition == partition]
        assert offsets == list(range(total // 2))


async def test_getmany_gives_back_what_was_not_delivered(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path
) -> None:
    app = make(apps, tmp_path)
    await app.start()
    consumer = app.app.consumer
    await app.app._stop_fetcher()  # this test fetches itself
    for n in range(10):
        await log.append("in", key=None, value=b"%d" % n, partition=n % 2)

    async def fetch(until_offset: int | None) -> list[tuple[int, int]]:
        got = []
        async for tp, message in consumer.getmany(timeout=2.0):
            got.append((tp.partition, message.offset))
            if until_offset is not None and message.offset >= until_offset:
                consumer.stop_flow()
        return got

    first = await fetch(1)
    assert len(first) < 10
    consumer.resume_flow()
    rest = await fetch(None)
    assert sorted(first + rest) == [(partition, offset) for partition in range(2) for offset in range(5)]


async def test_a_seek_is_where_the_next_fetch_begins(log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path) -> None:
    app = make(apps, tmp_path)
    await app.start()
    consumer = app.app.consumer
    await app.app._stop_fetcher()
    for n in range(10):
        await log.append("in", key=None, value=b"%d" % n, partition=0)
    tp = TP("in", 0)
    fetching = asyncio.create_task(consumer._getmany(frozenset({TP("in", 1)}), 5.0))
    await asyncio.sleep(0)  # it waits for a partition with nothing in it
    await consumer.seek(tp, 7)
    assert await asyncio.wait_for(fetching, 2) == {}
    records = await consumer._getmany(frozenset({tp}), 2.0)
    assert [(row.offset, follows) for row, follows in records[tp]] == [(7, 7), (8, 8), (9, 9)]
    assert await consumer.position(tp) == 10


# ----------------------------------------------------------------------------------------------------------- recovery


@pytest.mark.parametrize("datadir", ["data", "empty"])
async def test_the_table_is_whole_after_its_changelog_was_compacted(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path, datadir: str
) -> None:
    first = make(apps, tmp_path)
    await first.start()
    for n in range(300):
        await log.append("in", key=b"k%d" % (n % 15), value=b"%d" % n)
    await log.append("in", key=b"k0", value=b"del k0")
    await wait_for(lambda: len(first.seen), "all records", until=at_least(301), deadline=WITHIN)
    kept = first.table()
    assert len(kept) == 14
    await first.stop()
    core = await open_log(tmp_path / "log")
    before = sum(await log.ends("app-count-changelog"))
    assert await core.clean(["app-count-changelog"]) > 200
    await close_log(core)
    second = make(apps, tmp_path, datadir=datadir)
    await second.start()
    assert second.table() == kept
    await log.append("in", key=b"k1", value=b"again")
    await wait_for(lambda: second.seen, "a new record", deadline=WITHIN)
    assert second.table() == {**kept, "k1": kept["k1"] + 1}
    assert sum(await log.ends("app-count-changelog")) == before + 1


async def test_the_consumer_cleans_its_changelog_while_it_works(
    log: EmbeddedLog, apps: list[SmallApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedTransport.Consumer, "clean_interval", 0.2)
    app = make(apps, tmp_path)
    await app.start()
    for n in range(200):
        await log.append("in", key=b"k%d" % (n % 4), value=b"%d" % n)
    await wait_for(lambda: len(app.seen), "all records", until=at_least(200), deadline=WITHIN)
    for _ in range(200):
        rows = [record async for record in log.read("app-count-changelog")]
        if len(rows) < 100:
            break
        await asyncio.sleep(0.05)
    assert len(rows) < 100
    kept = {record.key: record.value for record in rows if not (record.key or b"").startswith(OWN_KEYS.encode())}
    assert kept == {b"k%d" % n: b"50" for n in range(4)}

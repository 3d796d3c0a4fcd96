"""The contract of memstream's Faust transports: the same small app over the folder and over a real broker."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import Log, TopicSpec
from tests.support.polling import at_least, wait_for
from tests.support.small_app import WITHIN, SmallApp

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 2


@dataclass
class World:
    """Log, topics and apps of one test."""

    log: Log
    broker: str
    prefix: str
    folder: Path
    apps: list[SmallApp]

    def name(self, topic: str) -> str:
        return self.prefix + topic

    async def make(self, *topics: str) -> None:
        changelogs = [
            TopicSpec(self.name(t), PARTITIONS, 1, {"cleanup.policy": "compact"})
            for t in ("app-count-changelog", "next-count-changelog")
        ]
        await self.log.create([*(TopicSpec(self.name(t), PARTITIONS, 1, {}) for t in topics), *changelogs])

    def app(
        self,
        *,
        name: str = "app",
        datadir: str = "data",
        reads: Sequence[str] = ("in",),
        writes: str | None = "out",
        **options: Any,
    ) -> SmallApp:
        made = SmallApp(
            broker=self.broker,
            name=self.name(name),
            datadir=self.folder / datadir / name,
            reads=[self.name(topic) for topic in reads],
            writes=self.name(writes) if writes else None,
            partitions=PARTITIONS,
            **options,
        )
        self.apps.append(made)
        return made

    async def feed(self, numbers: range, *, topic: str = "in", keys: int = 5) -> list[bytes]:
        for n in numbers:
            await self.log.append(self.name(topic), key=b"k%d" % (n % keys), value=b"%d" % n)
        return [b"%d" % n for n in numbers]

    async def lag(self, *, name: str = "app", topic: str = "in") -> int:
        committed = await self.log.committed(self.name(name), self.name(topic))
        ends = await self.log.ends(self.name(topic))
        return sum(end - (at or 0) for at, end in zip(committed, ends, strict=True))

    async def drained(self, *, name: str = "app", topic: str = "in") -> None:
        deadline = asyncio.get_running_loop().time() + 30
        while await self.lag(name=name, topic=topic):
            assert asyncio.get_running_loop().time() < deadline, "the lag does not become 0"
            await asyncio.sleep(0.05)

    async def passed_on(self, topic: str = "out") -> list[bytes | None]:
        return [record.value async for record in self.log.read(self.name(topic))]


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def world(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> AsyncIterator[World]:
    log: Log
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka_broker")
        log, broker = KafkaLog(servers=[servers], timeout=30), f"kafka://{servers}"
    else:
        log, broker = EmbeddedLog(folder=tmp_path / "log"), f"embedded://{tmp_path}/log"
    await log.start()
    made = World(log, broker, topic_prefix, tmp_path, [])
    try:
        yield made
        await asyncio.gather(*(app.stop() for app in made.apps))
        await log.delete([name for name in await log.topics() if name.startswith(topic_prefix)])
    finally:
        await log.close()


def in_order(app: SmallApp) -> bool:
    """Tell whether the offsets of each partition came in order, each once."""
    partitions: dict[tuple[str, int], list[int]] = {}
    for seen in app.seen:
        partitions.setdefault((seen.topic, seen.partition), []).append(seen.offset)
    return all(offsets == list(range(offsets[0], offsets[0] + len(offsets))) for offsets in partitions.values())


async def test_every_record_comes_once_in_order_and_is_counted_and_passed_on(world: World) -> None:
    await world.make("in", "out")
    before = await world.feed(range(50))
    app = world.app()
    await app.start()
    after = await world.feed(range(50, 300))
    await wait_for(lambda: len(app.seen), "all records", until=at_least(300), deadline=WITHIN)
    await world.drained()
    assert sorted(app.values()) == sorted(before + after)
    assert in_order(app)
    assert app.table() == {f"k{n}": 60 for n in range(5)}
    assert sorted(v or b"" for v in await world.passed_on()) == sorted(before + after)


async def test_headers_and_timestamps_reach_the_handler_and_go_out_again(world: World) -> None:
    await world.make("in", "out")
    headers = (("ce_id", b"\x00\xff"), ("traceparent", b"00-1"))
    await world.log.append(world.name("in"), key=b"k", value=b"v", headers=headers, timestamp=1_700_000_000_123)
    app = world.app()
    await app.start()
    await wait_for(lambda: app.seen, "the record", deadline=WITHIN)
    assert app.seen[0].headers == headers
    assert app.seen[0].timestamp == pytest.approx(1_700_000_000.123)
    await world.drained()
    (out,) = [record async for record in world.log.read(world.name("out"))]
    assert (out.key, out.value, out.headers) == (b"k", b"v", headers)


async def test_a_restart_goes_on_where_the_commits_stopped(world: World) -> None:
    await world.make("in", "out")
    await world.feed(range(40))
    first = world.app()
    await first.start()
    await wait_for(lambda: len(first.seen), "the first part", until=at_least(40), deadline=WITHIN)
    await first.stop()
    assert await world.lag() == 0  # committed at the stop, not only at the next interval
    more = await world.feed(range(40, 60))
    second = world.app()
    await second.start()
    await wait_for(lambda: len(second.seen), "the second part", until=at_least(20), deadline=WITHIN)
    await world.drained()
    assert sorted(second.values()) == sorted(more)
    assert second.table() == {f"k{n}": 12 for n in range(5)}


async def test_what_was_not_acknowledged_comes_again(world: World) -> None:
    await world.make("in", "out")
    for n in range(10):
        await world.log.append(world.name("in"), key=b"k", value=b"%d" % n, partition=0)
    first = world.app(holds_from=6)
    await first.start()
    await wait_for(lambda: len(first.seen), "all records", until=at_least(10), deadline=WITHIN)
    await first.stop()
    assert await world.log.committed(world.name("app"), world.name("in")) == (6, None)
    second = world.app()
    await second.start()
    await wait_for(lambda: len(second.seen), "the rest", until=at_least(4), deadline=WITHIN)
    await world.drained()
    assert second.values() == [b"6", b"7", b"8", b"9"]


async def test_the_table_comes_back_from_the_changelog_on_an_empty_disk(world: World) -> None:
    await world.make("in", "out")
    await world.feed(range(200), keys=20)
    for partition in range(PARTITIONS):  # only the partition that has the key deletes a row
        await world.log.append(world.name("in"), key=b"x", value=b"del k3", partition=partition)
    first = world.app()
    await first.start()
    await wait_for(lambda: len(first.seen), "all records", until=at_least(202), deadline=WITHIN)
    await world.drained()
    kept = first.table()
    assert kept == {f"k{n}": 10 for n in range(20) if n != 3}
    await first.stop()
    second = world.app(datadir="empty")
    await second.start()
    assert second.table() == kept
    await world.feed(range(1), keys=20)
    await wait_for(lambda: second.seen, "a new record", deadline=WITHIN)
    assert second.table()["k0"] == 11


async def test_one_agent_reads_several_topics(world: World) -> None:
    await world.make("in", "also", "out")
    app = world.app(reads=("in", "also"))
    await app.start()
    expected = Counter(await world.feed(range(30))) + Counter(await world.feed(range(100, 130), topic="also"))
    await wait_for(lambda: len(app.seen), "all records", until=at_least(60), deadline=WITHIN)
    await world.drained()
    await world.drained(topic="also")
    assert Counter(app.values()) == expected
    assert in_order(app)


async def test_small_buffers_slow_nothing_down_for_ever(world: World) -> None:
    await world.make("in", "out")
    await world.feed(range(600))
    app = world.app(buffer_maxsize=4)
    await app.start()
    await wait_for(lambda: len(app.seen), "all records", until=at_least(600), deadline=WITHIN)
    await world.drained()
    assert in_order(app)


async def test_the_group_has_members_only_while_a_worker_runs(world: World) -> None:
    await world.make("in", "out")
    assert await world.log.members(world.name("app")) == 0
    app = world.app()
    await app.start()
    assert await world.log.members(world.name("app")) == 1
    await app.stop()
    assert await world.log.members(world.name("app")) == 0


async def test_two_chained_apps_run_in_one_faust_worker(world: World) -> None:
    await world.make("in", "middle", "out")
    await world.feed(range(60))
    options = {
        "broker": world.broker,
        "datadir": str(world.folder / "worker"),
        "apps": [
            {"name": world.name("app"), "reads": [world.name("in")], "writes": world.name("middle")},
            {"name": world.name("next"), "reads": [world.name("middle")], "writes": world.name("out")},
        ],
    }
    process = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-m", "tests.support.small_app", json.dumps(options)], cwd=ROOT
    )
    try:
        more = await world.feed(range(60, 100))
        seen: list[bytes | None] = []

        async def arrive() -> None:
            async for record in world.log.read(world.name("out"), follow=True):
                seen.append(record.value)
                if len(seen) == 100:
                    return

        await asyncio.wait_for(arrive(), 60)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 40) == 0
    finally:
        process.kill()
        process.wait()
    assert sorted(v or b"" for v in seen) == sorted([b"%d" % n for n in range(60)] + more)
    assert await world.lag() == 0
    assert await world.lag(name="next", topic="middle") == 0

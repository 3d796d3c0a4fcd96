"""Faults under load on a real broker: joins, a frozen worker, a broker that goes away. Nothing is lost."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memstream.streams.log.kafka import KafkaLog
from tests.support.kafka import Broker
from tests.support.kafka_workers import (
    NOTHING_WRONG,
    PARTITIONS,
    Workers,
    audit,
    drained,
    feed,
    make_topics,
    without_doubles,
)
from tests.support.polling import TimedOut, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
IN_HAND = 4.0
"""Seconds that a worker has an event in hand while another one waits to be let in: had that one been given partitions,
it would begin within half of it."""


@asynccontextmanager
async def running(broker: str, folder: Path, name: str, **options: object) -> AsyncIterator[tuple[KafkaLog, Workers]]:
    log = KafkaLog(servers=[broker], timeout=60)
    await log.start()
    workers = Workers(folder=folder, broker=broker, name=name, **options)
    try:
        await make_topics(log, name)
        yield log, workers
    finally:
        workers.close()
        await log.close()


async def owned(workers: Workers, worker: str, n: int) -> None:
    """Wait until the worker says that it is ready with `n` partitions."""
    what = f"worker {worker} with {n} partitions"
    await wait_for(
        lambda: [len(ready["partitions"]) for ready in workers.readies(worker)][-1:],
        what,
        until=[n].__eq__,
        deadline=60,
    )


async def trickle(log: KafkaLog, name: str, counts: Counter[str], stop: asyncio.Event) -> None:
    """A few events at a time until told to stop."""
    while not stop.is_set():
        await feed(log, name, counts, 10)
        await asyncio.sleep(0.05)


@pytest.mark.fault(
    broken="a worker joins and another leaves, under load (machinery alone)", holds="no loss, no double, order kept"
)
@pytest.mark.parametrize("table", [True, False])
async def test_joins_and_leaves(kafka_broker: str, tmp_path: Path, topic_prefix: str, table: bool) -> None:
    async with running(kafka_broker, tmp_path, f"{topic_prefix}app", table=table) as (log, workers):
        counts, stop = Counter[str](), asyncio.Event()
        feeding = asyncio.create_task(trickle(log, workers.name, counts, stop))
        workers.start("a")
        await owned(workers, "a", PARTITIONS)
        workers.start("b")
        await owned(workers, "a", PARTITIONS // 2)
        await owned(workers, "b", PARTITIONS // 2)
        workers.signal("a", signal.SIGTERM)
        assert await workers.ended("a") == 0, workers.errors("a")
        await owned(workers, "b", PARTITIONS)
        stop.set()
        await feeding
        await drained(log, workers.name)
        found = await audit(log, workers.name, counts, table=table)
        assert found == {**NOTHING_WRONG, "doubles": 0}


@pytest.mark.fault(
    broken="a worker joins while another one, told to end, has events in hand (machinery alone)",
    holds="it waits for them to be done and committed; exit 0, no loss, no double",
)
@pytest.mark.parametrize("static", [False, True])
async def test_who_joins_waits_for_who_ends(kafka_broker: str, tmp_path: Path, topic_prefix: str, static: bool) -> None:
    gate = tmp_path / "gate"
    options = {"session": 6, "gate": str(gate), "static": static}
    async with running(kafka_broker, tmp_path, f"{topic_prefix}app", **options) as (log, workers):
        counts = Counter[str]()
        workers.start("a")
        await owned(workers, "a", PARTITIONS)
        await feed(log, workers.name, counts, 100)
        await wait_for(lambda: workers.of("a", "begun"), "an event in hand", deadline=30)
        workers.signal("a", signal.SIGTERM)
        workers.start("b")
        await wait_for(lambda: "because it is rebalancing" in workers.errors("a"), "a rebalance", deadline=30)
        with pytest.raises(TimedOut, match="what another one has in hand"):
            await wait_for(lambda: workers.of("b", "begun"), "what another one has in hand", deadline=IN_HAND)
        gate.touch()
        assert await workers.ended("a") == 0, workers.errors("a")
        await owned(workers, "b", PARTITIONS)
        await drained(log, workers.name)
        assert await audit(log, workers.name, counts) == {**NOTHING_WRONG, "doubles": 0}


@pytest.mark.fault(
    broken="a worker stopped beyond its session, under load (machinery alone)", holds="it writes nothing when it wakes"
)
async def test_a_frozen_worker_writes_nothing_when_it_wakes(
    kafka_broker: str, tmp_path: Path, topic_prefix: str
) -> None:
    async with running(kafka_broker, tmp_path, f"{topic_prefix}app") as (log, workers):
        counts, stop = Counter[str](), asyncio.Event()
        feeding = asyncio.create_task(trickle(log, workers.name, counts, stop))
        workers.start("a")
        workers.start("b")
        await owned(workers, "a", PARTITIONS // 2)
        await owned(workers, "b", PARTITIONS // 2)
        workers.signal("a", signal.SIGSTOP)
        await owned(workers, "b", PARTITIONS)
        workers.signal("a", signal.SIGCONT)
        assert await workers.ended("a") == 3, workers.errors("a")
        stop.set()
        await feeding
        await drained(log, workers.name)
        assert without_doubles(await audit(log, workers.name, counts)) == NOTHING_WRONG


@pytest.mark.fault(
    broken="the broker stopped or killed for seconds, under load (machinery alone)", holds="no loss, order kept"
)
@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_broker_that_goes_away_and_comes_back(
    own_kafka: Broker, tmp_path: Path, topic_prefix: str, how: str
) -> None:
    async with running(own_kafka.bootstrap, tmp_path, f"{topic_prefix}app", session=10) as (log, workers):
        counts, stop = Counter[str](), asyncio.Event()
        feeding = asyncio.create_task(trickle(log, workers.name, counts, stop))
        workers.start("a")
        workers.start("b")
        await owned(workers, "a", PARTITIONS // 2)
        await owned(workers, "b", PARTITIONS // 2)
        await asyncio.to_thread(own_kafka.stop if how == "stop" else own_kafka.kill)
        await asyncio.sleep(3)  # how long it is away; nothing can be waited for
        await asyncio.to_thread(own_kafka.start)
        stop.set()
        await feeding
        over = asyncio.Event()
        supervising = asyncio.create_task(workers.supervise(over))
        await drained(log, workers.name, timeout=90)
        over.set()
        await supervising
        assert without_doubles(await audit(log, workers.name, counts)) == NOTHING_WRONG


@pytest.mark.fault(broken="SIGTERM while the broker is away", holds="the worker ends all the same; no loss afterwards")
async def test_a_worker_ends_although_the_broker_is_away(own_kafka: Broker, tmp_path: Path, topic_prefix: str) -> None:
    async with running(own_kafka.bootstrap, tmp_path, f"{topic_prefix}app", stop_grace=5) as (log, workers):
        counts = Counter[str]()
        workers.start("a")
        await owned(workers, "a", PARTITIONS)
        await asyncio.to_thread(own_kafka.kill)
        before = time.monotonic()
        workers.signal("a", signal.SIGTERM)
        assert await workers.ended("a", timeout=30) in (0, 3), workers.errors("a")
        assert time.monotonic() - before < 15
        await asyncio.to_thread(own_kafka.start)
        await feed(log, workers.name, counts, 50)
        workers.start("a")
        await drained(log, workers.name)
        assert without_doubles(await audit(log, workers.name, counts)) == NOTHING_WRONG

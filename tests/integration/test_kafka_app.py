"""StageApp, DurableTable and the Kafka transport on a real broker: what a worker loses when it dies (nothing)."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memstream.streams.log.kafka import KafkaLog
from tests.support.kafka_workers import (
    NOTHING_WRONG,
    Workers,
    audit,
    drained,
    feed,
    make_topics,
    without_doubles,
)
from tests.support.polling import at_least, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture
async def log(kafka_broker: str) -> AsyncIterator[KafkaLog]:
    log = KafkaLog(servers=[kafka_broker], timeout=30)
    await log.start()
    yield log
    await log.close()


@pytest.fixture
def workers(kafka_broker: str, tmp_path: Path, topic_prefix: str) -> Iterator[Workers]:
    workers = Workers(folder=tmp_path, broker=kafka_broker, name=f"{topic_prefix}app")
    yield workers
    workers.close()


@pytest.mark.long
async def test_kill_and_restart_recovers_the_table_and_loses_nothing(log: KafkaLog, workers: Workers) -> None:
    name, counts = workers.name, Counter[str]()
    await make_topics(log, name)
    await feed(log, name, counts, 200)
    workers.start("a")
    await wait_for(lambda: len(workers.of("a", "done")), "some events handled", until=at_least(30), deadline=60)
    workers.signal("a", signal.SIGKILL)
    assert await workers.ended("a") == -signal.SIGKILL
    await feed(log, name, counts, 100)
    workers.start("a")
    await drained(log, name)
    ready = workers.readies("a")[-1]
    assert sum(row["n"] for row in ready["rows"].values()) >= 30, "the table was there before the first event"
    workers.signal("a", signal.SIGTERM)
    assert await workers.ended("a") == 0, workers.errors("a")
    assert without_doubles(await audit(log, name, counts)) == NOTHING_WRONG


@pytest.mark.long
async def test_a_new_folder_recovers_from_the_changelog(log: KafkaLog, workers: Workers) -> None:
    name, counts = workers.name, Counter[str]()
    await make_topics(log, name)
    await feed(log, name, counts, 200)
    workers.start("a")
    await drained(log, name)
    workers.signal("a", signal.SIGTERM)
    assert await workers.ended("a") == 0, workers.errors("a")
    workers.start("b")
    await wait_for(lambda: workers.readies("b"), "b ready", deadline=60)
    rows = workers.readies("b")[-1]["rows"]
    assert {key: row["n"] for key, row in rows.items()} == dict(counts)
    workers.signal("b", signal.SIGTERM)
    assert await workers.ended("b") == 0, workers.errors("b")


MAX_POLL = 1.5
"""Seconds for which nobody may fetch, by aiokafka's rule."""


@pytest.mark.fault(
    broken="a worker without partitions, and one whose window is full, for three poll intervals without a fetch",
    holds="both stay in the group, which does not rebalance; then everything is handled once",
)
async def test_a_spare_and_a_full_worker_stay_in_the_group(
    log: KafkaLog, kafka_broker: str, tmp_path: Path, topic_prefix: str
) -> None:
    name, counts, room = f"{topic_prefix}idle", Counter[str](), tmp_path / "room"
    workers = Workers(folder=tmp_path, broker=kafka_broker, name=name, partitions=1, room=str(room), max_poll=MAX_POLL)
    try:
        await make_topics(log, name, partitions=1)
        await feed(log, name, counts, 20)
        workers.start("full")
        await wait_for(lambda: workers.readies("full"), "the first worker ready", deadline=60)
        workers.start("spare")
        await wait_for(lambda: log.members(name), "two members", until=at_least(2), deadline=60)
        await wait_for(lambda: workers.readies("spare"), "the spare ready", deadline=60)
        assert workers.readies("spare")[-1]["partitions"] == []
        await wait_for(
            lambda: len(workers.readies("full")), "the first again", until=lambda times: times == 2, deadline=60
        )
        joined, since = 2, time.monotonic()

        def alive() -> float:
            assert [process.poll() for process in workers.running.values()] == [None, None], workers.errors("full")
            return time.monotonic() - since

        await wait_for(alive, "three intervals without a fetch", until=lambda waited: waited > 3 * MAX_POLL)
        assert len(workers.readies("full")) == joined, "the group has rebalanced"
        assert await log.members(name) == 2
        room.touch()
        await drained(log, name)
        assert await audit(log, name, counts) == {**NOTHING_WRONG, "doubles": 0}
    finally:
        workers.close()

"""The machinery as processes on a real broker, twelve partitions: crash points, two workers of which one is killed, a
table from its changelog alone, SIGTERM, an odd record. One broker, one log and one table for the whole file: each test
goes on where the one before it ended, and everything is checked each time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memstream.schemas.topics import OBSERVATIONS
from memstream.streams.engine.crash_points import CRASHED
from memstream.streams.engine.process_exit import BROKEN
from memstream.streams.log.kafka import KafkaLog
from tests.support.counting_run import LETTERS, CountingRun
from tests.support.kafka import Broker, own_broker
from tests.support.kafka_fixtures import or_skip

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

Sent = dict[str, list[str]]
PATIENT = "10"
"""Seconds of a session: a broker that is slow to begin with throws nobody out, and who comes back under his name does
not wait for it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counting")


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    broker = or_skip(own_broker(folder / "kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.fixture(scope="module")
def sent() -> Sent:
    return defaultdict(list)


@pytest.fixture
async def run(broker: Broker, folder: Path, sent: Sent) -> AsyncIterator[CountingRun]:
    log = KafkaLog(servers=[broker.bootstrap], timeout=30)
    await log.start()
    run = CountingRun(log=log, broker=f"kafka://{broker.bootstrap}", folder=folder, partitions=12)
    run.sent = sent
    await run.prepare()
    yield run
    run.close()
    await log.close()


@pytest.mark.long
async def test_crash_points(run: CountingRun) -> None:
    await run.produce(96, keys=24)
    for step in ("table:2", "store:3", "publish:2"):
        ended = run.start(worker_id="static", crash=f"observer:{step}")
        assert await run.ended(ended) == CRASHED, run.output()
    worker = run.start(worker_id="static")
    await run.drained()
    await run.stop(worker)
    await run.check()


@pytest.mark.long
async def test_two_workers_share_the_partitions_and_one_is_killed(run: CountingRun) -> None:
    before = sum(await run.log.ends(OBSERVATIONS.name))
    a, b = run.start("a", pause="0.05"), run.start("b", pause="0.05")

    async def both() -> bool:
        return (
            all("worker_ready" in run.output(name) for name in "ab") and await run.log.members("memory-observer") == 2
        )

    await run.wait_for(both, "both are in the group")
    await run.produce(600, keys=24)
    await run.handled(before + 60)
    await run.kill(a)
    killed_at = sum(await run.log.ends(OBSERVATIONS.name))
    assert killed_at < before + 600, "it was killed in the middle"
    await run.drained()
    await run.stop(b)
    await run.check()


@pytest.mark.long
async def test_the_table_comes_back_from_the_changelog_alone_and_sigterm_commits(run: CountingRun) -> None:
    """The counts of keys that were counted before go on; no process of this folder has ever seen them."""
    before = sum(await run.log.ends(OBSERVATIONS.name))
    await run.produce(240, keys=24)
    worker = run.start("empty folder", pause="0.05")
    await run.handled(before + 24)
    await run.stop(worker)
    assert await run.lag() > 0, "it was stopped in the middle"
    worker = run.start("another empty folder")
    await run.drained()
    await run.stop(worker)
    after = sum(await run.log.ends(OBSERVATIONS.name))
    assert before + 240 <= after <= before + 240 + 64, "nothing but what was in flight came again"
    await run.check()


@pytest.mark.long
async def test_a_backlog_of_large_records_keeps_nobody_waiting(run: CountingRun) -> None:
    await run.a_backlog_keeps_nobody_waiting()


@pytest.mark.long
async def test_an_odd_record_ends_the_worker_at_once_and_becomes_a_dead_letter(run: CountingRun) -> None:
    await run.produce(24, keys=24)
    odd = await run.send("k0", "odd", "odd")
    for _ in range(2):
        seen = run.output().count("record_kills_worker")
        worker = run.start(worker_id="static", session=PATIENT)
        await run.wait_for(lambda: run.output().count("record_kills_worker") > seen, "the record kills it")  # noqa: B023
        began = time.monotonic()
        assert await run.ended(worker) == BROKEN, run.output()
        assert time.monotonic() - began < 10, "it does not wait for its own cut-off"
    worker = run.start(worker_id="static", session=PATIENT)
    await run.drained()
    await run.stop(worker)
    (letter,) = [each for each in await run.records(LETTERS) if each.value == odd.value]
    assert dict(letter.headers)["memstream-reason"] == b"fatal"
    assert dict(letter.headers)["memstream-attempts"] == b"3"
    await run.check()


@pytest.mark.fault(
    broken="a worker whose clock is two hours ahead of the broker's",
    holds="it ends with 4 and names the clock and the remedy; with the right clock everything is handled once",
)
async def test_a_worker_with_a_wrong_clock_ends_with_the_remedy_and_nothing_is_lost(run: CountingRun) -> None:
    await run.produce(12, keys=6)
    worker = run.start("ahead", clock_ahead="7200")
    assert await run.ended(worker) == BROKEN, run.output("ahead")
    last = run.output("ahead").strip().splitlines()[-1]
    assert "worker_stopped" in last
    assert "InvalidTimestamp" in last
    assert "memstream doctor" in last
    worker = run.start("on time")
    await run.drained()
    await run.stop(worker)
    await run.check()

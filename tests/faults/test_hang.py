"""A record at which the event loop never goes on. It counts as a crash, and becomes a dead letter like any other."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.schemas.topics import STAGES
from memstream.streams.engine.error_boundary import CRASHES_MAX
from memstream.streams.engine.process_exit import BROKEN
from memstream.streams.log.port import Record
from tests.support.counting_run import LETTERS, CountingRun
from tests.support.fork_server import HANGS_IN
from tests.support.hanging import HANGS
from tests.support.kafka import Broker, free_port
from tests.support.pipeline import running, turn, wait_for
from tests.support.pipeline_places import Place
from tests.support.polling import has_ended
from tests.support.supervisor import Supervised
from tests.support.tables import counting

pytestmark = [pytest.mark.timeout(300)]
STILL = "3"
"""Seconds without a move of the loop that end a worker of these tests."""


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def run(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CountingRun]:
    if request.param == "kafka":
        own: Broker = request.getfixturevalue("own_kafka")
        broker = f"kafka://{own.bootstrap}"
    else:
        broker = f"embedded://{tmp_path / 'log'}"
    async with counting(broker, tmp_path) as run:
        yield run


async def letters(run: CountingRun, record: Record) -> list[dict[str, bytes]]:
    return [dict(each.headers) for each in await run.records(LETTERS) if each.value == record.value]


@pytest.mark.fault(
    broken="a record at which the event loop hangs: a match that holds Python's lock, and a Python loop",
    holds="the worker ends by itself and names the record; the third time it is a letter `fatal`; everything else once",
)
@pytest.mark.parametrize(("value", "code"), [("match", -signal.SIGVTALRM), ("spin", BROKEN)])
async def test_a_record_that_hangs_the_loop_is_a_dead_letter_after_three_deaths(
    run: CountingRun, value: str, code: int
) -> None:
    await run.produce(24)
    hanging = await run.send("k0", "hangs", value)
    await run.produce(24)
    for _ in range(CRASHES_MAX):
        assert await run.ended(run.start(still=STILL), timeout=60) == code
    run.start(still=STILL)
    await run.drained(timeout=60)
    (letter,) = await letters(run, hanging)
    assert letter["memstream-reason"] == b"fatal"
    assert letter["memstream-attempts"] == b"%d" % CRASHES_MAX
    assert run.output().count("record_kills_worker") == CRASHES_MAX
    assert ("event_loop_hangs" in run.output()) == (code == BROKEN)
    await run.check()


@pytest.mark.kafka
@pytest.mark.fault(
    broken="a record at which the event loop hangs, three workers, each started again when it ends",
    holds="three ends, and one more of each further worker at most, then the letter `fatal`; everything else once",
)
async def test_a_hanging_record_that_moves_between_workers_ends_few_of_them(own_kafka: Broker, tmp_path: Path) -> None:
    async with counting(f"kafka://{own_kafka.bootstrap}", tmp_path) as run:
        done = asyncio.Event()
        ends: list[str] = []

        async def supervised(name: str) -> None:
            while not done.is_set():
                if await run.ended(run.start(name, still=STILL), timeout=200) == BROKEN:
                    ends.append(name)

        tasks = [asyncio.ensure_future(supervised(name)) for name in "abc"]
        await run.wait_for(lambda: run.log.members("memory-observer"), "all are in the group", until=lambda n: n == 3)
        await run.produce(24)
        hanging = await run.send("k0", "hangs", "spin")
        await run.produce(24)
        await run.wait_for(lambda: letters(run, hanging), "the dead letter", deadline=200)
        await run.drained(timeout=60)
        done.set()
        for task in tasks:
            task.cancel()
        (letter,) = await letters(run, hanging)
        assert letter["memstream-reason"] == b"fatal"
        # a death is told at the next start, and another worker may have the record before that
        assert CRASHES_MAX <= len(ends) <= CRASHES_MAX + len("bc")
        await run.check()


@pytest.mark.fault(
    broken="a worker is stopped (SIGSTOP) for longer than a hang takes",
    holds="it goes on when it is continued",
)
async def test_a_worker_that_was_stopped_does_not_count_as_one_that_hangs(tmp_path: Path) -> None:
    async with counting(f"embedded://{tmp_path / 'log'}", tmp_path) as run:
        worker = run.start(still=STILL)
        await run.produce(24)
        await run.drained(timeout=60)
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2 * float(STILL))
        worker.send_signal(signal.SIGCONT)
        await run.produce(24)
        await run.drained(timeout=60)
        assert worker.poll() is None
        assert "event_loop_hangs" not in run.output()
        await run.check()


@pytest.mark.fault(
    broken="a turn that hangs the observer, or recorder and observer, of `serve --with-stages`",
    holds="the server ends by itself; after three or four ends the turn is a letter `fatal`; everything else once",
)
@pytest.mark.parametrize("stages", ["observer", "recorder observer"])
async def test_a_turn_that_hangs_stages_of_a_server_is_a_dead_letter(in_folder: Place, stages: str) -> None:
    async with running(in_folder.pipeline()) as pipeline:
        said = [turn(text, n, user=f"u{n}") for n, text in enumerate(("I live in Leeds.", HANGS, "I like tea."))]
        await pipeline.produce(*said)
        servers: list[Supervised] = []

        async def ended_or_done() -> bool:
            return has_ended(servers[-1].poll()) or not any((await pipeline.lags(*STAGES)).values())

        while not servers or has_ended(servers[-1].poll()):
            assert {server.returncode for server in servers} <= {BROKEN}, pipeline.logs()
            servers.append(
                Supervised(
                    ["serve", "--with-stages", "--port", str(free_port())],
                    cwd=pipeline.folder,
                    env=pipeline.environment(**{HANGS_IN: stages}),
                    log=pipeline.folder / "worker-server.log",
                )
            )
            pipeline.workers[:] = servers[-1:]
            await wait_for(ended_or_done, "its end, or that of its work", deadline=60, detail=pipeline.logs)
        await pipeline.settled()
        pipeline.stop()
        deaths = len(servers) - 1
        assert deaths == CRASHES_MAX or (stages != "observer" and deaths == CRASHES_MAX + 1)
        letters = await pipeline.dead_letters()
        assert letters
        refusing: list[str] = []
        for letter in letters:  # of the stage that reads the turn first after the last end, and perhaps of the other
            assert HANGS in (letter.value or b"").decode()
            headers = dict(letter.headers)
            refusing.append(headers["memstream-stage"].decode())
            assert headers["memstream-reason"] == b"fatal"
            assert int(headers["memstream-attempts"]) in (CRASHES_MAX, deaths)
        assert set(refusing) <= set(stages.split())
        recorded = {row["turn_id"] for row in pipeline.shown("turns")[pipeline.tenant]["turns"]}
        assert recorded == {each["turn_id"] for each in said if stages == "observer" or HANGS not in str(each)}
        assert len(pipeline.stored()) == 2

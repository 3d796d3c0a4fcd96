"""The machinery as processes on the embedded log: killed at every crash point and at random moments, stopped, poisoned,
wedged. Nothing is lost, nothing is counted twice."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.engine.crash_points import CRASHED, STEPS
from memstream.streams.engine.process_exit import BROKEN
from memstream.streams.log.embedded import EmbeddedLog
from tests.support.counting_run import GROUP, LETTERS, CountingRun
from tests.support.kafka import free_port


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[CountingRun]:
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    run = CountingRun(log=log, broker=f"embedded://{tmp_path}/log", folder=tmp_path, partitions=2)
    await run.prepare()
    yield run
    run.close()
    await log.close()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.long
async def test_a_crash_after_any_step_the_first_and_the_third_time(run: CountingRun, step: str) -> None:
    await run.produce(60)
    for n in (1, 3):
        assert await run.ended(run.start(crash=f"observer:{step}:{n}")) == CRASHED, run.output()
    worker = run.start()
    await run.drained()
    await run.stop(worker)
    await run.check()


async def test_kill_9_at_random_moments(run: CountingRun) -> None:
    await run.produce(400, keys=12)
    before = 0
    for _ in range(3):
        worker = run.start(pause="0.02")
        await run.handled(before + random.randrange(20, 80))
        await run.kill(worker)
        before = sum(await run.log.ends(OBSERVATIONS.name))
        assert before < 400, "it was killed in the middle"
    worker = run.start()
    await run.drained()
    await run.stop(worker)
    await run.check()


async def test_sigterm_drains_and_commits(run: CountingRun) -> None:
    await run.produce(300, keys=12)
    worker = run.start(pause="0.05")
    await run.handled(40)
    await run.stop(worker)
    left = await run.lag()
    assert left > 100, "it was stopped in the middle"
    committed = sum(at or 0 for at in await run.log.committed(GROUP, TURNS.name))
    handled = len(await run.records(OBSERVATIONS.name))
    assert handled <= committed + 64, "what is handled and not committed lies behind one that was in flight"
    await run.stop(await started(run))
    out = len(await run.records(OBSERVATIONS.name))
    assert 300 <= out <= 300 + 64
    await run.check()


async def started(run: CountingRun):  # type: ignore[no-untyped-def]
    worker = run.start()
    await run.drained()
    return worker


async def test_a_backlog_of_large_records_keeps_nobody_waiting(run: CountingRun) -> None:
    await run.a_backlog_keeps_nobody_waiting()


@pytest.mark.long
async def test_an_odd_record_stops_the_worker_twice_and_becomes_a_dead_letter(run: CountingRun) -> None:
    await run.produce(12)
    odd = await run.send("k0", "odd", "odd")
    poison = await run.send("k1", "poison", "poison")
    await run.produce(12)
    for _ in range(2):
        assert await run.ended(run.start(), timeout=15) == BROKEN, "at once, not by its own cut-off after 20 s"
        assert [letter for letter in await run.records(LETTERS) if letter.value == odd.value] == []
    worker = await started(run)
    letters = {dict(letter.headers)["memstream-reason"]: letter for letter in await run.records(LETTERS)}
    assert set(letters) == {b"fatal", b"refused_by_model"}
    assert (letters[b"fatal"].key, letters[b"fatal"].value) == (odd.key, odd.value)
    assert dict(letters[b"fatal"].headers)["memstream-attempts"] == b"3"
    assert dict(letters[b"refused_by_model"].headers)["kafka_dlt-original-offset"] == b"%d" % poison.position.offset
    await run.stop(worker)
    await run.check()


@pytest.mark.long
async def test_a_store_that_refuses_one_key_holds_that_key_only(run: CountingRun) -> None:
    port = free_port()
    (run.folder / "wedge").write_text("k0")
    await run.produce(60)
    worker = run.start(health=str(port))
    await run.handled(50)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as health:

        async def not_ready() -> bool:
            return (await health.get("/readyz")).status_code == 503

        await run.wait_for(not_ready, "the breaker opens")
        said = (await health.get("/readyz")).json()
        assert said == {"ready": False, "parts": {"observer": {"ready": False, "why": "away: store: wedged"}}}
        await run.send("k1", "later")  # its call is the next probe
        await run.handled(51)
        came = [record.key for record in await run.records(OBSERVATIONS.name)]
        assert b"k0" not in came
        committed = await run.log.committed(GROUP, TURNS.name)
        assert await run.lag() > 0, f"nothing is committed past what is held: {committed}"
        (run.folder / "wedge").unlink()
        await run.drained()

        async def ready() -> bool:
            return (await health.get("/readyz")).status_code == 200

        await run.wait_for(ready, "the breaker closes")
        lines = (await health.get("/metrics")).text.splitlines()
        figures = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}
        assert figures['memstream_events_out_total{stage="observer",topic="memory.observations"}'] == 61
        assert figures['memstream_retries_total{component="store",stage="observer"}'] >= 4
    await run.stop(worker)
    await run.check()

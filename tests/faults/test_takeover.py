"""A rolling update with a surge: the next process starts with the MEMSTREAM_WORKER_ID of one that is alive."""

from __future__ import annotations

import pytest

from memstream.schemas.topics import STAGES, TURNS, group_of
from tests.support.faults import check_all_remembered, loaded
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600, func_only=True)]
TAKEOVERS = 20
SESSION = "9"
"""Seconds: a process notices after up to three that another one has its place."""


@pytest.mark.fault(
    broken="a second process with the worker id of one that is alive, 20 times under load",
    holds="it waits for the lease of the first one, which ends with 3; no turn is lost or decided twice; I1 I2 I3",
)
async def test_twenty_takeovers_of_one_worker_id(pipeline: Pipeline, model: ModelServer) -> None:
    model.latency = 1.2
    pipeline.use(MEMSTREAM_WORKER_ID="w1", MEMSTREAM_SESSION_TIMEOUT=SESSION)

    def takeovers() -> int:
        logs = (path.read_text(errors="replace") for path in pipeline.folder.glob("worker-*.log"))
        return sum(log.count("worker_id_taken_over") for log in logs)

    async def observed() -> int:
        return sum(at or 0 for at in await pipeline.log.committed(group_of("observer"), TURNS.name))

    live = pipeline.spawn(*STAGES, MEMSTREAM_DATADIR=str(pipeline.folder / "d0"))
    async with loaded(pipeline, at_once=4, pause=0.3) as load:
        for n in range(1, TAKEOVERS + 1):
            done = await observed()
            await wait_for(observed, f"turns before takeover {n}", until=lambda now, done=done: now > done, deadline=60)
            old, starts = live, live.starts
            live = pipeline.spawn(*STAGES, MEMSTREAM_DATADIR=str(pipeline.folder / f"d{n}"))
            await wait_for(
                lambda old=old, starts=starts: old.starts > starts or old.poll() is not None,
                f"takeover {n}: the first process to lose its place",
                deadline=60,
                detail=pipeline.logs,
            )
            old.kill()
            old.wait(10)
            pipeline.workers.remove(old)
    await pipeline.settled(deadline=120)
    assert takeovers() >= TAKEOVERS, "not each process waited for the one before it"
    await check_all_remembered(pipeline, load.users)
    await pipeline.verified()

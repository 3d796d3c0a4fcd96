"""Workers 1 → 3 → 1 under a steady load: partitions move, nothing is lost, the order of each session stays."""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
from collections import defaultdict

import pytest

from memstream.schemas.topics import OBSERVATIONS, STAGES, TURNS
from tests.support.faults import check_all_remembered, has_members, loaded, written_since
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, wait_for
from tests.support.polling import at_least

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180, func_only=True)]
SCALED = ("observer", "reflector")
PATIENT = {"MEMSTREAM_SESSION_TIMEOUT": "15"}
"""Who leaves cleanly leaves at once: nobody waits for this, and a busy machine throws nobody out."""
PAUSE_MAX = 30.0
"""Seconds from a turn to its observation at the worst: what a rebalance may take when all goes well."""


@pytest.mark.fault(
    broken="workers of observer and reflector 1 → 3 → 1 under a steady load",
    holds="I1 I7; every partition goes on within seconds (the pause is printed)",
)
async def test_workers_that_come_and_go_under_load_lose_nothing_and_keep_the_order(
    pipeline: Pipeline, model: ModelServer
) -> None:
    model.latency = 0.05
    pipeline.spawn("recorder", "consolidation", **PATIENT)
    for stage in SCALED:
        pipeline.spawn(stage, **PATIENT)
    async with loaded(pipeline) as load:
        await wait_for(lambda: len(model.asks), "work", until=at_least(13), deadline=60)
        more = {stage: [pipeline.spawn(stage, **PATIENT) for _ in range(2)] for stage in SCALED}
        for stage in SCALED:
            await has_members(pipeline, stage, 3)
        await load.goes_on()
        for stage in SCALED:
            for worker in more[stage]:
                worker.send_signal(signal.SIGTERM)
        for stage in SCALED:
            codes = [await asyncio.to_thread(worker.wait, 30) for worker in more[stage]]
            assert codes == [0, 0], pipeline.logs()
            await has_members(pipeline, stage, 1)
        await load.goes_on()
    await pipeline.settled(deadline=90)
    pauses = await pause_per_partition(pipeline)
    print(f"pause per partition: median {statistics.median(pauses):.1f} s, longest {max(pauses):.1f} s")
    assert max(pauses) < PAUSE_MAX
    await check_all_remembered(pipeline, load.users)
    await pipeline.verified(*STAGES)


async def pause_per_partition(pipeline: Pipeline) -> list[float]:
    """By partition of memory.turns, seconds from a turn to its observation at the worst, by the records' timestamps."""
    observed = {}
    for record in await written_since(pipeline, OBSERVATIONS.name):
        fields = json.loads(record.value or b"")
        observed[fields["user_id"], fields["turn_id"]] = record.timestamp
    worst: dict[int, float] = defaultdict(float)
    for record in await written_since(pipeline, TURNS.name):
        fields = json.loads(record.value or b"")
        waited = (observed[fields["user_id"], fields["turn_id"]] - record.timestamp) / 1000
        worst[record.position.partition] = max(worst[record.position.partition], waited)
    return list(worst.values())

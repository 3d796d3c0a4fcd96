"""The lag that workers tell: of each partition once, by the worker that reads it now."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from memstream.schemas.topics import TURNS
from tests.support.kafka import free_port
from tests.support.pipeline import Pipeline, running, turn, wait_for
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
LAG = re.compile(r'^memstream_lag\{partition="(\d+)",stage="recorder",topic="memory\.turns"\} ', re.MULTILINE)


@pytest.fixture
async def pipeline(on_kafka: Place) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline()) as ready:
        yield ready


class Recorder:
    """A worker of the recorder with its metrics."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._port = free_port()
        pipeline.spawn("recorder", MEMSTREAM_HEALTH_PORT=str(self._port))

    async def partitions(self) -> set[int]:
        """Return the partitions of which it tells the lag."""
        async with httpx.AsyncClient() as http:
            try:
                answer = await http.get(f"http://127.0.0.1:{self._port}/metrics")
            except httpx.TransportError:
                return set()
        return {int(partition) for partition in LAG.findall(answer.text)}


@pytest.mark.long
async def test_a_partition_that_went_to_another_worker_is_told_by_that_one_alone(pipeline: Pipeline) -> None:
    every = set(range(await pipeline.log.partitions(TURNS.name) or 0))
    first = Recorder(pipeline)
    await pipeline.produce(*(turn("Hello.", n, session=f"s{n}", user=f"u{n}") for n in range(5 * len(every))))
    await pipeline.settled("recorder")
    await wait_for(first.partitions, "all partitions", until=lambda told: told == every, detail=pipeline.logs)
    second = Recorder(pipeline)

    async def shared() -> tuple[set[int], set[int]]:
        return await first.partitions(), await second.partitions()

    await wait_for(
        shared,
        "each partition told by one of two workers",
        until=lambda told: bool(told[0] and told[1]) and told[0] | told[1] == every and not told[0] & told[1],
        deadline=60.0,
        detail=pipeline.logs,
    )

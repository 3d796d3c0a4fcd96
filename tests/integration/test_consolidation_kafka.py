"""Consolidation by a schedule, on a real broker, with two workers of which one is killed: each run once."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import JsonValue

from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.topics import COMMANDS, RESULTS
from memstream.streams.engine.codec import tenant_of
from tests.support.conversation import KNOWN, conversation
from tests.support.model_server import Ask, ModelServer, observing
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
CONSOLIDATION = """
trigger = "schedule"
every = 1
after_run = 0.2
"""


def thinking(ask: Ask) -> dict[str, JsonValue]:
    """Other words each time: what is decided twice would be seen."""
    if ask.task == "consolidation":
        sources: list[JsonValue] = list(ask.prompt.episodes)
        fact: JsonValue = {
            "subject": "user",
            "content": f"Said so many things: {ask.number}",
            "confidence": 0.6,
            "category": "pattern",
            "action": "new",
            "target_fact_id": None,
            "source_episode_ids": sources,
        }
        return {"facts": [fact]}
    if ask.task == "digest":
        return {"text": f"Digest number {ask.number}."}
    answer = observing(KNOWN)(ask)
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(thinking) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model, consolidation=CONSOLIDATION)) as ready:
        yield ready


@pytest.mark.long
async def test_scheduled_runs_of_two_workers_have_one_effect_each(pipeline: Pipeline) -> None:
    first = pipeline.spawn("all")
    pipeline.spawn("all")
    await pipeline.produce(*conversation())

    async def results() -> dict[str, set[bytes]]:
        """By command of this tenant, the different results that it has."""
        values = [record.value or b"" for record in await pipeline.records(COMMANDS.name)]
        mine = {Command.read(value).command_id for value in values if tenant_of(value) == pipeline.tenant}
        found: dict[str, set[bytes]] = defaultdict(set)
        for record in await pipeline.records(RESULTS.name):
            result = CommandResult.read(record.value or b"")
            if result.command_id in mine:
                found[result.command_id].add(record.value or b"")
        return found

    async def of_kind(kind: str) -> list[str]:
        values = [record.value or b"" for record in await pipeline.records(COMMANDS.name)]
        commands = [Command.read(value) for value in values if tenant_of(value) == pipeline.tenant]
        done = await results()
        return sorted({each.command_id for each in commands if each.kind == kind and each.command_id in done})

    async def ran(kind: str, times: int) -> None:
        async with asyncio.timeout(60):
            while len(await of_kind(kind)) < times:
                await asyncio.sleep(0.1)

    await ran("digest", 1)
    first.kill()
    first.wait(10)
    pipeline.workers.remove(first)
    runs = len(await of_kind("consolidate"))
    digests = len(await of_kind("digest"))
    await pipeline.produce(*conversation(session="s2"))
    await ran("consolidate", runs + 1)  # by the one that is left
    await ran("digest", digests + 1)
    await pipeline.settled(deadline=60)
    assert {len(values) for values in (await results()).values()} == {1}
    (digest,) = pipeline.json_lines("show", "digest", "--tenant", pipeline.tenant)
    assert digest["owner"] == {"scope": "user", "id": "u1"}
    await pipeline.consistent()
    assert await pipeline.dead_letters(COMMANDS.name) == []
    await pipeline.verified()
    pipeline.stop()

"""Upkeep as a user has it, in one process on a folder: what is recalled stays, what is not is culled, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memstream.schemas.commands import CommandResult
from memstream.schemas.topics import RECALLED, RESULTS
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
EVENT: Json = {"durability": "persistent", "importance": 0.8, "category": "event"}
SAID = {
    "ran a marathon": [{"content": "Ran a marathon in Oslo", **EVENT}],
    "swam across the cold lake": [{"content": "Swam across the cold lake", **EVENT}],
}
LONG_AGO = datetime.now(UTC) - timedelta(days=50)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(SAID)) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model)) as ready:
        yield ready


async def results(pipeline: Pipeline, command_id: str) -> list[CommandResult]:
    told = [CommandResult.read(record.value or b"") for record in await pipeline.records(RESULTS.name)]
    return [result for result in told if result.command_id == command_id]


def episodes(pipeline: Pipeline, *options: str) -> dict[str, Json]:
    found = pipeline.json_lines("show", "episodes", "--tenant", pipeline.tenant, "--user", "u1", *options)
    return {each["content"]: each for each in found}


async def test_what_is_recalled_stays_and_what_is_not_is_culled_once(pipeline: Pipeline) -> None:
    pipeline.spawn("all")
    long_ago = LONG_AGO.isoformat().replace("+00:00", "Z")
    await pipeline.produce(
        turn("I ran a marathon in Oslo.", 1, occurred_at=long_ago),
        turn("I swam across the cold lake.", 2, occurred_at=long_ago),
    )
    await pipeline.settled()
    who = ("--tenant", pipeline.tenant, "--user", "u1")
    [found] = pipeline.json_lines("recall", *who, "--cue", "Swam across the cold lake", "--limit", "1")
    assert (found["tier"], found["content"]) == ("episodic", "Swam across the cold lake")
    await pipeline.settled()
    [told] = await pipeline.records(RECALLED.name)
    assert b"lake" not in (told.value or b"")
    swam, ran = (episodes(pipeline)[content] for content in ("Swam across the cold lake", "Ran a marathon in Oslo"))
    assert (swam["retrieval_count"], swam["strength"], swam["stability"]) == (1, 1.0, 21.0)
    assert datetime.fromisoformat(swam["last_accessed_at"]) > LONG_AGO + timedelta(days=49)
    assert (ran["retrieval_count"], ran["stability"], ran["last_accessed_at"]) == (0, 14.0, None)
    pipeline.stop()

    issued_at = datetime.now(UTC)
    first = await pipeline.command("hygiene", issued_at=issued_at, run="reflect")
    await pipeline.crashes("all", at="consolidation:table:1")
    second = await pipeline.command("hygiene", issued_at=issued_at, run="reflect")  # made before the first one's end
    pipeline.spawn("all")
    await pipeline.settled()
    [result] = await results(pipeline, first)
    assert result.result is not None
    assert (result.status, result.result["pruned"], result.result["reindexed"]) == ("applied", 1, 0)
    [zeros] = await results(pipeline, second)
    assert zeros.result is not None
    counts = ("pruned", "merged", "strengthened", "derived", "compacted", "reindexed", "duration_ms")
    assert {zeros.result[name] for name in counts} == {0}
    assert set(episodes(pipeline)) == {"Swam across the cold lake"}
    assert episodes(pipeline, "--state", "all")["Ran a marathon in Oslo"]["deleted_at"] is not None
    [line] = pipeline.json_lines("reflect", *who)
    assert (line["status"], line["pruned"]) == ("applied", 0)
    await pipeline.settled()  # a result is told before its command is committed
    await pipeline.verified()
    pipeline.stop()

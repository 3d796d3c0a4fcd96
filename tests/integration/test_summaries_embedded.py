"""A session's summary as a user sees it, in one process on a folder: one episode, wherever the worker was killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.consolidation_world import in_short
from tests.support.model_server import Answer, Ask, ModelServer, nothing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
SAID = ("I ran in Oslo.", "It rained a lot.", "I was soaked.", "Next year again.")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    told: list[str] = []

    def script(ask: Ask) -> Answer:
        if ask.task != "summary":
            return nothing(ask)
        told.append(ask.last_user_message)
        return {"text": f"{'Again ' * len(told)}{in_short(ask.last_user_message)}"}

    with ModelServer(script) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model)) as ready:
        yield ready


async def test_a_session_is_told_once_in_short_wherever_a_worker_dies(pipeline: Pipeline, model: ModelServer) -> None:
    pipeline.spawn("all")
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    await pipeline.settled()
    pipeline.stop()

    await pipeline.command("consolidate")
    for point in ("consolidation:decide:1", "consolidation:table:1", "reflector:store:1"):
        await pipeline.crashes("all", at=point)
    pipeline.spawn("all")
    await pipeline.settled()

    who = ("--tenant", pipeline.tenant, "--user", "u1")
    [summary] = pipeline.json_lines("show", "episodes", *who)
    assert (summary["category"], summary["tags"], summary["turn_ids"]) == (
        "event",
        ["summary"],
        ["t1", "t2", "t3", "t4"],
    )
    assert summary["content"].startswith("Again Again I ran in Oslo")  # the first answer died with its worker
    assert [ask.task for ask in model.asks].count("summary") == 2
    [line] = pipeline.json_lines("consolidate", *who)
    assert (line["status"], line["changes"]) == ("applied", [])
    assert len(pipeline.json_lines("show", "episodes", *who)) == 1
    await pipeline.verified()
    pipeline.stop()

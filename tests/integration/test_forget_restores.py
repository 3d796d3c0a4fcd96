"""A wrong fact is forgotten while its reflector is killed: the fact that it had closed is believed again, once."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.schemas.commands import CommandResult
from memstream.schemas.topics import RESULTS
from tests.support.pipeline import Pipeline, actions, running
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.polling import wait_for

pytestmark = [pytest.mark.timeout(180)]
GOOGLE, STRIPE = "Works at Google", "Works at Stripe"


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


async def answer(pipeline: Pipeline, command_id: str) -> dict[str, Any]:
    async def results() -> list[CommandResult]:
        read = [CommandResult.read(record.value or b"") for record in await pipeline.records(RESULTS.name)]
        return [each for each in read if each.command_id == command_id]

    first, *_ = await wait_for(results, f"the result of {command_id}", deadline=60, detail=pipeline.logs)
    assert first.result is not None, first.error
    return dict(first.result)


@pytest.mark.long
async def test_a_wrong_fact_gives_back_what_it_had_closed_though_its_worker_dies(place: Place) -> None:
    async with running(place.pipeline()) as pipeline:
        worker = pipeline.spawn("reflector")
        google = await answer(pipeline, await pipeline.command("facts.remember", content=GOOGLE))
        assert (await answer(pipeline, await pipeline.command("facts.pin", fact_id=google["fact_id"])))["changed"]
        stripe = await answer(pipeline, await pipeline.command("facts.remember", content=STRIPE))
        pipeline.end(worker)
        forget = await pipeline.command("facts.forget", fact_id=stripe["fact_id"], because="wrong")
        await pipeline.crashes("reflector", at="reflector:store")
        pipeline.spawn("reflector")
        assert (await answer(pipeline, forget))["restored_fact_ids"] == [google["fact_id"]]
        await pipeline.settled("reflector", deadline=90)
        assert actions(await pipeline.updates()) == [
            ("new", GOOGLE),
            ("updated", GOOGLE),
            ("superseded", GOOGLE),
            ("new", STRIPE),
            ("forgotten", STRIPE),
            ("approved", GOOGLE),
        ]
        assert [each.fact.is_pinned for each in await pipeline.updates()] == [False, True, False, False, False, True]
        ((shown,),) = pipeline.several(["show", "facts", "--tenant", pipeline.tenant, "--user", "u1"])
        assert (shown["content"], shown["pinned_at"] is not None) == (GOOGLE, True)
        await pipeline.verified("reflector")

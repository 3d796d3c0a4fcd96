"""SIGTERM in the middle of work: what is in hand is finished and committed, nothing of it is done again."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict

import pytest

from memstream.schemas.topics import (
    COMMANDS,
    EPISODES_RECORDED,
    FACTS_UPDATED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    StageName,
)
from tests.support.conversation import CONVERSATION
from tests.support.faults import check_all_remembered, loaded, repeated, said_by, written_since
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, wait_for
from tests.support.polling import at_least
from tests.support.supervisor import Supervised

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]
USERS = tuple(f"u{n}" for n in range(16))
PATIENT = {"MEMSTREAM_SESSION_TIMEOUT": "15"}
"""Who ends cleanly leaves at once: nobody waits for this, and a busy machine throws nobody out."""
WITHIN = 30.0
"""Seconds to drain, commit and leave: 20 are what a drain may take."""


async def nothing_came_twice(pipeline: Pipeline) -> None:
    """Every record with an id of ours stands on its topic once."""
    for topic in (OBSERVATIONS, EPISODES_RECORDED, FACTS_UPDATED, COMMANDS, RESULTS):
        places: dict[bytes, list[object]] = defaultdict(list)
        for record in await written_since(pipeline, topic.name):
            places[dict(record.headers)["ce_id"]].append(record.position)
        assert {key: found for key, found in places.items() if len(found) > 1} == {}, topic.name


@pytest.mark.fault(
    broken="SIGTERM with model calls in hand",
    holds="drained, committed, exit 0; no call and no record comes twice",
)
async def test_an_observer_told_to_end_while_the_model_thinks_finishes_what_is_in_hand(
    pipeline: Pipeline, model: ModelServer
) -> None:
    model.latency = 2.0
    pipeline.spawn("reflector", **PATIENT)
    observer = pipeline.spawn("observer", **PATIENT)
    for turns in zip(*(said_by(user)[:3] for user in USERS), strict=True):
        await pipeline.produce(*turns)
    await wait_for(
        lambda: model.in_hand, "a call in hand for everybody", until=lambda seen: seen == len(USERS), deadline=60
    )
    asked = len(model.asks)
    observer.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert await asyncio.to_thread(observer.wait, WITHIN) == 0, pipeline.logs()
    assert time.monotonic() - began >= 1.0, "it did not wait for the model"
    assert len(model.asks) == asked, "it asked something new after it was told to end"
    model.latency = 0.0
    pipeline.spawn("observer", **PATIENT)
    await pipeline.settled("observer", "reflector")
    assert not repeated(model.asks)
    assert len(await pipeline.observed()) == 3 * len(USERS)
    await nothing_came_twice(pipeline)
    await pipeline.verified("observer", "reflector")
    pipeline.stop()


@pytest.mark.fault(
    broken="SIGTERM of every stage's worker, under load, one after the other",
    holds="drained, committed, exit 0; no call and no record comes twice",
)
async def test_workers_replaced_under_load_do_nothing_twice(pipeline: Pipeline, model: ModelServer) -> None:
    model.latency = 0.05
    workers = {stage: pipeline.spawn(stage, **PATIENT) for stage in STAGES}
    async with loaded(pipeline) as load:
        await wait_for(lambda: len(model.asks), "work in all of them", until=at_least(13), deadline=60)
        for stage in STAGES:
            await replaced(pipeline, workers[stage], stage)
            begun = len(model.asks)
            await wait_for(lambda begun=begun: len(model.asks) > begun + len(CONVERSATION), "work goes on", deadline=60)
    await pipeline.settled(deadline=90)
    observations = [ask for ask in model.asks if ask.task == "observations"]
    assert not repeated(observations)
    await nothing_came_twice(pipeline)
    await check_all_remembered(pipeline, load.users)
    await pipeline.verified()
    pipeline.stop()


async def replaced(pipeline: Pipeline, worker: Supervised, stage: StageName) -> None:
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, WITHIN) == 0, pipeline.logs()
    pipeline.spawn(stage, **PATIENT)

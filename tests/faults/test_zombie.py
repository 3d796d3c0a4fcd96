"""A worker that is stopped for longer than its session, and wakes up: others own its partitions by then, and nothing
that it still had in hand may win over what they wrote."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from memstream.schemas.topics import STAGES, StageName
from tests.support.conversation import CONVERSATION, different_each_time
from tests.support.faults import (
    check_all_remembered,
    has_members,
    is_joined,
    loaded,
    said_by,
    written_by,
)
from tests.support.fork_server import STOPS_AT_CRASH_POINT
from tests.support.model_server import Answer, Ask, Gate, ModelServer, held
from tests.support.pipeline import Pipeline, wait_for
from tests.support.supervisor import Supervised

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]
HOLDS = "its late writes lose; it ends with 3 or goes on as a member; I1 I2 I7"


def freeze(worker: Supervised) -> None:
    os.kill(worker.pid, signal.SIGSTOP)


def frozen(worker: Supervised) -> bool:
    try:
        return bool(psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:  # it was started again in this moment
        return False


async def wake(worker: Supervised) -> None:
    """It goes on, is told that it is no member any more, ends with 3, and is started again by its supervisor."""
    starts = worker.starts
    os.kill(worker.pid, signal.SIGCONT)
    await wait_for(lambda: worker.starts > starts, "the zombie to end with 3", deadline=40)


@pytest.mark.fault(broken="a worker stopped in the middle of model calls, beyond its session", holds=HOLDS)
async def test_answers_that_a_zombie_finds_when_it_wakes_are_nobodys(pipeline: Pipeline, model: ModelServer) -> None:
    users = [f"u{n}" for n in range(8)]
    gate = Gate()

    def thinking(ask: Ask) -> Answer:
        answer = different_each_time(ask)
        third = any(CONVERSATION[2] in text for text in ask.turns.values())
        return held(gate, answer) if third else answer

    model.script = thinking
    pipeline.spawn("reflector")
    zombie = pipeline.spawn("observer")
    for turns in zip(*map(said_by, users), strict=True):
        await pipeline.produce(*turns)
    await wait_for(
        lambda: model.in_hand,
        "everybody's third turn to be thought about",
        until=lambda seen: seen == len(users),
        deadline=60,
    )
    freeze(zombie)
    model.script = different_each_time  # whoever asks from now on is answered
    pipeline.spawn("observer")
    await pipeline.settled("observer", "reflector")
    told = len(await pipeline.observed())
    gate.open()
    await wake(zombie)
    await pipeline.settled("observer", "reflector")
    assert len(await pipeline.observed()) == told, "the zombie published what it had in hand"
    await check_all_remembered(pipeline, users)
    await pipeline.verified("observer", "reflector")


@pytest.mark.fault(broken="a worker stopped between two effects of an event, beyond its session", holds=HOLDS)
@pytest.mark.parametrize("step", ["table", "store"])
@pytest.mark.parametrize("stage", ["observer", "reflector", "consolidation"])
async def test_effects_that_a_zombie_has_still_to_do_are_the_next_owners(
    pipeline: Pipeline, model: ModelServer, stage: StageName, step: str
) -> None:
    user, at = "u1", 5 if stage == "consolidation" else 3
    point = {"MEMSTREAM_CRASH_POINT": f"{stage}:{step}:{at}", STOPS_AT_CRASH_POINT: "yes"}
    pipeline.spawn(*(other for other in STAGES if other != stage), MEMSTREAM_SESSION_TIMEOUT="10")
    zombie = pipeline.spawn(stage, MEMSTREAM_OBSERVE_TOGETHER="1", **point)
    said = said_by(user)
    for turn in said[: at - 1]:  # one by one, so that each is an outcome of its own
        await pipeline.produce(turn)
        await pipeline.settled()
    await pipeline.produce(*said[at - 1 :])
    await wait_for(lambda: frozen(zombie), f"{stage} to stop after {step}", deadline=60)
    successor = pipeline.spawn(stage)
    await pipeline.settled()
    before = pipeline.shown("facts", "episodes", "working")
    written = await written_by(pipeline, stage)
    await wake(zombie)
    await pipeline.settled()
    assert await written_by(pipeline, stage) == written
    assert pipeline.shown("facts", "episodes", "working") == before, "a late write of the zombie won"
    assert successor.poll() is None
    await check_all_remembered(pipeline, [user], consolidated=True)
    await pipeline.verified()


@pytest.mark.fault(broken="a worker stopped while another joins its group, and woken after that rebalance", holds=HOLDS)
@pytest.mark.parametrize("stage", ["observer", "reflector"])
async def test_a_worker_frozen_within_a_rebalance_spoils_nothing(
    pipeline: Pipeline, model: ModelServer, stage: StageName
) -> None:
    model.latency = 0.05
    pipeline.spawn(*(other for other in STAGES if other != stage), MEMSTREAM_SESSION_TIMEOUT="10")
    zombie = pipeline.spawn(stage)
    async with loaded(pipeline) as load:
        await has_members(pipeline, stage, 1)
        await load.goes_on()
        pipeline.spawn(stage)
        await is_joined(pipeline, stage)
        freeze(zombie)
        await has_members(pipeline, stage, 1)
        await wake(zombie)
        await load.goes_on()
    await pipeline.settled(deadline=90)
    await check_all_remembered(pipeline, load.users)
    await pipeline.verified()

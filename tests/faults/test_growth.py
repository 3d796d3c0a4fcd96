"""Partitions are added: by `memstream topics grow`, killed again and again, and by hand under running workers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.schemas.topics import STAGES, TURNS, changelog_of
from memstream.streams.engine.process_exit import BROKEN
from tests.support.conversation import CONVERSATION
from tests.support.faults import check_all_remembered, said_by
from tests.support.fork_server import ForkedCommand
from tests.support.kafka import Broker
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.polling import has_ended

pytestmark = [pytest.mark.timeout(400)]
BEFORE, AFTER = 3, 6
USERS = [f"u{n}" for n in range(6)]
WRONG_USAGE = 2


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer) -> AsyncIterator[Pipeline]:
    """All stages in one process, over topics of three partitions."""
    broker = f"embedded://{tmp_path / 'log'}"
    if request.param == "kafka":
        own: Broker = request.getfixturevalue("own_kafka")
        broker = f"kafka://{own.bootstrap}"
    env = {"MEMSTREAM_PARTITIONS": str(BEFORE)}
    async with running(Pipeline(folder=tmp_path, broker=broker, model=model, env=env)) as ready:
        yield ready


async def say(pipeline: Pipeline, turns: slice) -> None:
    for each in zip(*(said_by(user)[turns] for user in USERS), strict=True):
        await pipeline.produce(*each)


async def all_is_observed(pipeline: Pipeline, turns: int) -> None:
    """Wait until so many turns of each user are observed, and everything that follows is read."""

    async def observed() -> int:
        return len(set(await pipeline.observed()))

    expected = turns * len(USERS)
    await wait_for(observed, "turns to be observed", until=lambda n: n == expected, deadline=90, detail=pipeline.logs)
    await pipeline.settled(deadline=90)


async def goes_on_with(pipeline: Pipeline, partitions: int) -> None:
    """Use the new count, as a service does that learns of it."""
    pipeline.use(MEMSTREAM_PARTITIONS=str(partitions))
    await pipeline.log.close()
    await pipeline.log.start()


def growing(pipeline: Pipeline, errors: Path) -> ForkedCommand:
    command = ["topics", "grow", "--partitions", str(AFTER)]
    return ForkedCommand(command, cwd=pipeline.folder, env=pipeline.environment(), stdout=errors, stderr=errors)


@pytest.mark.fault(
    broken="kill -9 of `topics grow`, again and again, each time some steps further",
    holds="called again it ends; workers of the old count refuse (exit 2); nothing lost or doubled; I1 to I8",
)
@pytest.mark.parametrize("seed", [1, 2])
async def test_topics_grow_although_the_command_is_killed(pipeline: Pipeline, seed: int) -> None:
    half = len(CONVERSATION) // 2
    pipeline.spawn(*STAGES)
    await say(pipeline, slice(half))
    await all_is_observed(pipeline, half)
    refused = pipeline.cli("topics", "grow", "--partitions", str(AFTER), expect=WRONG_USAGE)
    assert refused == ""
    pipeline.stop()

    chance, kills = random.Random(seed), 0
    for steps in sorted(chance.sample(range(1, 30), 4)):
        told = pipeline.folder / f"grow-{steps}.log"
        told.touch()
        process = growing(pipeline, told)
        ends = await wait_for(
            lambda told=told, process=process: (len(told.read_text().splitlines()), process.poll()),
            f"{steps} steps of the growth",
            until=lambda seen, steps=steps: seen[0] >= steps or seen[1] is not None,
            deadline=60,
            pause=0.001,  # in a folder the growth of few rows is soon done
        )
        kills += ends[1] is None
        process.kill()
        process.wait(10)
    assert kills
    pipeline.cli("topics", "grow", "--partitions", str(AFTER))
    for stage in STAGES:
        if (changelog := changelog_of(stage)) is not None:
            assert await pipeline.log.partitions(changelog.name) == AFTER

    old = pipeline.spawn(*STAGES)
    assert await wait_for(old.poll, "a worker of the old count to end", until=has_ended, deadline=60) == WRONG_USAGE
    pipeline.workers.remove(old)
    await goes_on_with(pipeline, AFTER)
    pipeline.spawn(*STAGES)
    await say(pipeline, slice(half, None))
    await all_is_observed(pipeline, len(CONVERSATION))
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)


@pytest.mark.fault(
    broken="partitions of memory.turns added by hand under running workers, while turns come",
    holds="workers end with exit 4 and name `topics grow`; no dead letter of a good turn; nothing lost or doubled",
)
@pytest.mark.parametrize("pipeline", [pytest.param("kafka", marks=pytest.mark.kafka)], indirect=True)
async def test_partitions_added_by_hand_make_no_dead_letter(pipeline: Pipeline) -> None:
    half = len(CONVERSATION) // 2
    worker = pipeline.spawn(*STAGES)
    await say(pipeline, slice(half))
    await all_is_observed(pipeline, half)
    await pipeline.log.add_partitions(TURNS.name, AFTER)
    await goes_on_with(pipeline, AFTER)
    await say(pipeline, slice(half, None))
    ended = await wait_for(worker.poll, "the worker to end", until=has_ended, deadline=90, detail=pipeline.logs)
    assert ended == BROKEN, pipeline.logs()
    assert "memstream topics grow --partitions 6" in pipeline.logs()
    pipeline.workers.remove(worker)
    refuses = pipeline.spawn(*STAGES)
    assert await wait_for(refuses.poll, "a worker to refuse", until=has_ended, deadline=60) == WRONG_USAGE
    pipeline.workers.remove(refuses)

    pipeline.cli("topics", "grow", "--partitions", str(AFTER))
    pipeline.spawn(*STAGES)
    await all_is_observed(pipeline, len(CONVERSATION))
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified(*STAGES)

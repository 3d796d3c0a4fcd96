"""Every crash point of every stage, on the broker: the process is gone right after a step, first and in the middle of a
conversation; what it left is made good, though the model answers differently the second time."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from memstream.schemas.topics import STAGES, StageName
from memstream.streams.engine.crash_points import STEPS, Step
from tests.support.conversation import different_each_time
from tests.support.faults import check_all_remembered, repeated, said_by
from tests.support.model_server import ModelServer
from tests.support.pipeline import CRASHED, Pipeline, running, wait_for
from tests.support.qdrant import QdrantServer

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True), pytest.mark.asyncio(loop_scope="module")]
OFTEN: tuple[Step, ...] = ("table", "store")
ASKS: tuple[StageName, ...] = ("observer", "consolidation")
"""Stages that ask the model in `decide`."""
FIRST_PART = 4
"""Turns of the conversation that are said before the others: the job changes after them, and the fifth starts a run of
consolidation. A stage may decide the turns of a part together."""


def rows() -> Iterator[object]:
    for stage in STAGES:
        for step in STEPS:
            if (stage, step) == ("recorder", "table"):
                continue  # it has none
            row = pytest.mark.fault(
                broken="kill between any two effects of a stage, the first time and later",
                holds="the replay is a no-op; I1 I2",
                often=step in OFTEN,
            )
            yield pytest.param(stage, step, marks=row, id=f"{stage}-{step}")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(different_each_time) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def beside(
    stage: StageName,
    tmp_path_factory: pytest.TempPathFactory,
    kafka_broker: str,
    shared_qdrant: QdrantServer,
    model: ModelServer,
) -> AsyncIterator[Pipeline]:
    """All stages but the one that crashes: these go on for all of its crash points."""
    made = Pipeline(
        folder=tmp_path_factory.mktemp("beside"), broker=f"kafka://{kafka_broker}", qdrant=shared_qdrant, model=model
    )
    async with running(made) as pipeline:
        pipeline.spawn(*(other for other in STAGES if other != stage), MEMSTREAM_SESSION_TIMEOUT="10")
        yield pipeline
        pipeline.stop()


@pytest.mark.parametrize(("stage", "step"), list(rows()), scope="module")
async def test_a_crash_between_two_effects_is_made_good(
    beside: Pipeline, model: ModelServer, stage: StageName, step: Step
) -> None:
    pipeline, user, asked = beside, f"{stage}-{step}", len(model.asks)
    pipeline.tenant = f"tenant-{uuid.uuid4().hex[:8]}"
    await pipeline.begin_dead_letters()
    said = said_by(user)
    mine = []
    try:
        for part in (said[:FIRST_PART], said[FIRST_PART:]):
            await pipeline.produce(*part)
            mine.append(crashing := pipeline.spawn(stage, MEMSTREAM_CRASH_POINT=f"{stage}:{step}"))
            await wait_for(lambda worker=crashing: worker.poll() is not None, f"the crash at {step}", deadline=60)
            assert crashing.returncode == CRASHED, pipeline.logs()
            mine.append(worker := pipeline.spawn(stage))
            await pipeline.settled(deadline=90)
            pipeline.end(worker)
        if step == "decide" and stage in ASKS:
            assert set(repeated(model.asks[asked:]).values()) == {1}
        else:
            assert not repeated(model.asks[asked:])
        await check_all_remembered(pipeline, [user], consolidated=True)
        await pipeline.verified()
    finally:
        for left in mine:  # those beside go on for the next row, and this one's would take its events
            left.kill()

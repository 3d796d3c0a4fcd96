"""The process is killed at each step of a judgement, on the broker and in a folder: there is one verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.conversation import states
from tests.support.model_server import Answer, Ask, Gate, ModelServer, held
from tests.support.pending_conversation import (
    FIRST,
    KNOWN_FACT,
    PENDING_FACT,
    SECOND,
    each_time_another,
    judging,
    verdict,
)
from tests.support.pipeline import Pipeline, actions, running
from tests.support.pipeline_places import BROKERS, Place
from tests.support.polling import wait_for

pytestmark = pytest.mark.timeout(180)
COMMAND = "command"
POINTS = {
    "list": "consolidation:table:1",
    COMMAND: "",
    "answer": "consolidation:decide:2",
    "verdict": "consolidation:table:2",
    "verdict-stored": "consolidation:store:2",
    "verdict-sent": "consolidation:publish:2",
    "applied": "reflector:table:2",
}
"""The crash points after the second turn. Consolidation first lists the pending fact and then handles its command. The
reflector first decides the turn and then the verdict. At COMMAND, the process is killed while the model is asked."""
ASKED_AGAIN = (COMMAND, "answer")


def rows() -> Iterator[object]:
    for point in POINTS:
        row = pytest.mark.fault(
            broken="kill between any two effects of a judgement",
            holds="one verdict; the replay asks no model after the answer is stored; I1 I2",
            often=point == "verdict",
        )
        yield pytest.param(point, marks=row, id=point)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(judging(each_time_another)) as server:
        yield server


@pytest.fixture(params=BROKERS)
async def pipeline(request: pytest.FixtureRequest, model: ModelServer) -> AsyncIterator[Pipeline]:
    place: Place = request.getfixturevalue("in_folder" if request.param == "embedded" else "on_kafka")
    async with running(place.pipeline(model)) as ready:
        yield ready


@pytest.mark.parametrize("point", list(rows()))
async def test_a_judgement_has_one_verdict(pipeline: Pipeline, model: ModelServer, point: str) -> None:
    worker = pipeline.spawn("all")
    await pipeline.produce(FIRST | {})
    await pipeline.settled()
    pipeline.end(worker)
    await pipeline.produce(SECOND | {})
    if point == COMMAND:
        await killed_while_asked(pipeline, model)
    else:
        await pipeline.crashes("all", at=POINTS[point])
    pipeline.spawn("all")
    await verdict(pipeline)
    await pipeline.settled()
    both = point in ASKED_AGAIN
    assert states(await pipeline.consistent()) == {
        KNOWN_FACT: "active" if both else "superseded",
        PENDING_FACT: "active",
    }
    told = actions(await pipeline.updates())
    assert [action for action, content in told if content == PENDING_FACT] == ["new", "approved"]
    assert [ask.task for ask in model.asks].count("judge") == (2 if both else 1)
    await pipeline.verified("all")


async def killed_while_asked(pipeline: Pipeline, model: ModelServer) -> None:
    """Kill the worker while its question waits for the answer: the command is sent, and nothing else is stored."""
    gate, answer = Gate(), model.script

    def waits(ask: Ask) -> Answer:
        return held(gate, answer(ask)) if ask.task == "judge" else answer(ask)

    model.script = waits
    worker = pipeline.spawn("all")
    await wait_for(
        lambda: any(ask.task == "judge" for ask in model.asks), "the question", deadline=60, detail=pipeline.logs
    )
    model.script = answer
    worker.kill()

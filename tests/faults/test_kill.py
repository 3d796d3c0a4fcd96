"""kill -9 while the model is thinking: the answer is lost with the worker, the question is asked once more."""

from __future__ import annotations

import pytest

from tests.support.conversation import CONVERSATION, different_each_time
from tests.support.faults import asked_in, check_all_remembered, repeated, said_by
from tests.support.model_server import Answer, Ask, Gate, ModelServer, held
from tests.support.pipeline import Pipeline, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]
USERS = tuple(f"u{n}" for n in range(8))


def is_third(ask: Ask) -> bool:
    """The third turn of somebody is among those that it is asked about."""
    return any(CONVERSATION[2] in text for text in ask.turns.values())


@pytest.mark.fault(
    broken="kill -9 of the observer in the middle of model calls",
    holds="at most one repeated call per turn in flight; I1",
    often=True,
)
async def test_an_observer_killed_while_the_model_thinks_asks_again_for_the_turns_in_flight_alone(
    pipeline: Pipeline, model: ModelServer
) -> None:
    gate = Gate()

    def thinking(ask: Ask) -> Answer:
        """It takes its time for everybody's third turn."""
        answer = different_each_time(ask)
        return held(gate, answer) if is_third(ask) and not ask.seen_before else answer

    model.script = thinking
    pipeline.spawn("reflector")
    observer = pipeline.spawn("observer")
    for turns in zip(*map(said_by, USERS), strict=True):
        await pipeline.produce(*turns)
    await wait_for(
        lambda: model.in_hand,
        "everybody's third turn to be thought about",
        until=lambda seen: seen == len(USERS),
        deadline=60,
    )
    in_flight = {text for ask in model.asks if is_third(ask) for text in asked_in(ask)}
    observer.kill()
    gate.open()
    pipeline.spawn("observer")
    await pipeline.settled("observer", "reflector")
    assert repeated(model.asks) == dict.fromkeys(in_flight, 1)
    await check_all_remembered(pipeline, USERS)
    await pipeline.verified("observer", "reflector")


@pytest.mark.fault(
    broken="kill -9 of consolidation in the middle of its model call",
    holds="one repeated call; the proposals are made once",
    often=True,
)
async def test_a_consolidation_killed_while_the_model_thinks_proposes_once(
    pipeline: Pipeline, model: ModelServer
) -> None:
    gate = Gate()

    def thinking(ask: Ask) -> Answer:
        answer = different_each_time(ask)
        return held(gate, answer) if ask.task == "consolidation" and not ask.seen_before else answer

    model.script = thinking
    pipeline.spawn("recorder", "observer", "reflector")
    consolidation = pipeline.spawn("consolidation")
    await pipeline.produce(*said_by("u1"))
    await pipeline.settled("recorder", "observer", "reflector")
    await wait_for(
        lambda: [ask.task for ask in model.asks], "the model to think", until=lambda seen: "consolidation" in seen
    )
    consolidation.kill()
    gate.open()
    pipeline.spawn("consolidation")
    await pipeline.settled()
    assert [ask.task for ask in model.asks].count("consolidation") == 2
    await check_all_remembered(pipeline, ["u1"], consolidated=True)
    await pipeline.verified()

"""`memstream trace --turn` on a whole pipeline: each statement of a turn with its outcome, on Kafka and in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
JOB = {"category": "profession", "slot": "employer", **PERSISTENT}
KNOWN: dict[str, list[dict[str, Any]]] = {
    "I work at Google": [
        {**JOB, "content": "Works at Google", "value": "Google"},
        {**JOB, "content": "Works at Initech", "value": "Initech", "evidence": "I work at Initech"},
    ],
    "Google, as I said": [{**JOB, "content": "Works at Google", "value": "Google"}],
    "now I work at Stripe": [{**JOB, "content": "Works at Stripe", "value": "Stripe"}],
    "We met in Lisbon": [{"content": "Met in Lisbon", "category": "event", **PERSISTENT}],
}
SAID = [
    "I work at Google.",
    "It is Google, as I said. I work at Google.",
    "We met in Lisbon.",
    "Well, now I work at Stripe.",
]
Outcome = dict[str, Any]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model)) as ready:
        ready.spawn("all")
        yield ready


def traced(pipeline: Pipeline, turn_id: str) -> tuple[str, dict[str, Outcome]]:
    named = ("--tenant", pipeline.tenant, "--user", "u1", "--session", "s1")
    (found,) = pipeline.json_lines("trace", "--turn", turn_id, *named)
    return found["stage"], {each["content"]: each for each in found["statements"]}


@pytest.mark.long
async def test_each_statement_has_its_outcome(pipeline: Pipeline) -> None:
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    await pipeline.settled()
    facts = {fact["content"]: fact["fact_id"] for fact in (await pipeline.consistent()).values()}

    stage, first = traced(pipeline, "t1")
    assert (stage, first.keys()) == ("reflected", {"Works at Google", "Works at Initech"})
    google = first["Works at Google"]
    assert (google["status"], google["fact_id"], google["other_fact_id"]) == (
        "closed", facts["Works at Google"], facts["Works at Stripe"],
    )  # fmt: skip
    assert (first["Works at Initech"]["status"], first["Works at Initech"]["why"]) == (
        "refused", "its quote is not in the turn",
    )  # fmt: skip
    assert traced(pipeline, "t2")[1]["Works at Google"]["fact_id"] == facts["Works at Google"]
    assert traced(pipeline, "t3")[1]["Met in Lisbon"]["status"] == "episode"
    stripe = traced(pipeline, "t4")[1]["Works at Stripe"]
    assert (stripe["status"], stripe["closes"]) == ("learnt", [facts["Works at Google"]])


async def test_a_turn_that_no_stage_has_read(pipeline: Pipeline) -> None:
    """The last test: it ends the workers."""
    await pipeline.produce(turn("Thanks.", 8))
    await pipeline.settled()
    for worker in pipeline.workers:
        worker.kill()
    await pipeline.produce(turn("I like tea.", 9))
    stage, statements = traced(pipeline, "t9")
    assert (stage, statements) == ("unread", {})
    named = ("--tenant", pipeline.tenant, "--user", "u1", "--session", "s1")
    pipeline.cli("trace", "--turn", "t10", *named, expect=1)

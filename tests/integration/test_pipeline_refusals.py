"""One tenant's trouble with the model: a content filter that refuses all that it says, and a model that is away.

On the embedded default alone: what a model says does not know which log it comes from.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from memstream.schemas import ids
from memstream.schemas.topics import OBSERVATIONS, TURNS
from tests.support.health import Watched, watched
from tests.support.model_server import OBSERVATION, Answer, Ask, ModelServer, content_filtered, error, nothing
from tests.support.pipeline import Json, Pipeline, turn
from tests.support.pipeline_places import Place, place_for
from tests.support.polling import wait_for
from tests.support.whole_worker import parsed, whole

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
SAID = re.compile(r"\((\w+)\) I like thing (\d+)\.")
REFUSED = 100
"""Turns of the refused tenant: five times as many as end a worker."""
NOTICED = 5.0
"""Seconds. A turn of another tenant takes far less, and a worker that starts again far more."""


class Model:
    """Knows what people like. A content filter refuses what `refused` says, and `dead` is answered with 503."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, ask: Ask) -> Answer:
        if ask.task != "observations":
            return nothing(ask)
        said = {name: SAID.findall(text) for name, text in ask.turns.items()}
        people = {who for found in said.values() for who, _ in found}
        self.asked.update(people)
        if "refused" in people:
            return content_filtered()
        if "dead" in people:
            return error(503)
        return {
            "observations": [
                {**OBSERVATION, "turn": name, "content": f"Likes thing {thing}",
                 "evidence": f"({who}) I like thing {thing}."}
                for name, found in said.items()
                for who, thing in found
            ]
        }  # fmt: skip


@pytest.fixture(scope="module")
def mind() -> Model:
    return Model()


@pytest.fixture(scope="module")
def model(mind: Model) -> Iterator[ModelServer]:
    with ModelServer(mind) as server:
        yield server


@pytest.fixture(scope="module", params=["embedded"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def health() -> AsyncIterator[Watched]:
    async with watched() as seen:
        yield seen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer, health: Watched) -> AsyncIterator[Pipeline]:
    alone = {"MEMSTREAM_OBSERVE_TOGETHER": "1"}  # a turn that is asked alone costs one call
    async with whole(place, model, policy="[memory.observe]\npatience = 1.5\n", env=alone | health.env) as running:
        yield running


async def say(pipeline: Pipeline, who: str, n: int, *, session: str = "s1", user: str | None = None) -> str:
    """Say a turn as `who`: the tenant's only user, unless `user` names one."""
    user = user or who
    fields = turn(f"({who}) I like thing {n}.", n, user=user, session=session, tenant_id=f"{pipeline.tenant}-{who}")
    key = ids.session_key(fields["tenant_id"], user, session)
    await pipeline.log.append(TURNS.name, key=key.encode(), value=json.dumps(fields).encode())
    return str(fields["turn_id"])


async def seconds_until_observed(pipeline: Pipeline, who: str, n: int) -> float:
    """Say a turn, and return the time until its observation."""
    began = time.monotonic()
    await say(pipeline, who, n)

    async def observed() -> list[Json]:
        found = [parsed(record.value) for record in await pipeline.records(OBSERVATIONS.name)]
        return [each for each in found if each.get("user_id") == who and each.get("turn_number") == n]

    await wait_for(observed, f"turn {n} of {who}", until=bool, deadline=60, pause=0.02, detail=pipeline.logs)
    return time.monotonic() - began


async def test_a_refused_tenant_is_paused_and_ends_no_worker(pipeline: Pipeline, mind: Model, health: Watched) -> None:
    await seconds_until_observed(pipeline, "other", 1)
    for n in range(1, REFUSED + 1):
        await say(pipeline, "refused", n, session=f"s{n % 25}", user=f"u{n % 5}")
    took = [await seconds_until_observed(pipeline, "other", n) for n in range(2, 8)]
    await pipeline.settled()
    letters = await pipeline.dead_letters()
    assert 0 < len(letters) <= mind.asked["refused"] <= len(letters) + 1, "one try may be under way"
    assert len(letters) < REFUSED
    look = health.last
    assert look is not None
    assert look.ready
    assert f"paused tenants: 1: model:{pipeline.tenant}-refused: " in look.notes["observer"]
    assert {dict(letter.headers)["memstream-reason"] for letter in letters} == {b"refused_by_model"}
    assert max(took) < NOTICED, took


async def test_a_tenant_whose_model_is_away_leaves_the_worker_ready(pipeline: Pipeline, health: Watched) -> None:
    began = time.monotonic()
    for n in range(1, 9):
        await say(pipeline, "dead", n, session=f"s{n}")
    named = f"away: model:{pipeline.tenant}-dead: "
    look = await wait_for(
        lambda: health.last,
        "an open breaker in the health",
        until=lambda look: look is not None and named in (look.notes | look.why).get("observer", ""),
        deadline=40,
    )
    assert look is not None
    assert look.ready
    assert await seconds_until_observed(pipeline, "other", 8) < NOTICED
    assert all(each.ready for each in health.looks if each.at > began)

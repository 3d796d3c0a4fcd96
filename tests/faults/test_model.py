"""The model's server, and the embedder's, in trouble: others go on, nothing is lost, what it asks for is honoured."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from memstream.schemas.topics import OBSERVATIONS
from tests.support.health import watched
from tests.support.kafka import Broker
from tests.support.model_server import (
    Answer,
    Ask,
    Json,
    ModelServer,
    Reply,
    error,
    hang,
    nothing,
    rate_limited,
    unauthorized,
)
from tests.support.pipeline import CRASHED, Pipeline, running, turn, wait_for
from tests.support.qdrant import qdrant_server
from tests.support.whole_worker import parsed

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]
PATIENCE = 1.5
TIMEOUT = {"MEMSTREAM_MODEL_TIMEOUT": str(PATIENCE)}


@pytest.fixture
def pipeline_of_little_patience(pipeline: Pipeline) -> Pipeline:
    pipeline.configure(f"[memory.observe]\npatience = {PATIENCE}\n")
    return pipeline


class Model:
    """Notes who asks and when; in trouble for those whose name is in `trouble`."""

    def __init__(self) -> None:
        self.trouble: dict[str, Callable[[], Answer]] = {}
        self.asked: list[tuple[float, str]] = []

    def __call__(self, ask: Ask) -> Answer:
        who = next((name for name in ("ann", "bob", "cid") if f"({name})" in ask.last_user_message), "")
        self.asked.append((time.monotonic(), who))
        make = self.trouble.get(who)
        return nothing(ask) if make is None else make()

    def of(self, who: str) -> list[float]:
        return [at for at, by in self.asked if by == who]


def said(who: str, n: int, **fields: str) -> Json:
    given: Json = turn(f"I like thing {n}. ({who})", n, user=who, **fields)
    return given


async def observed(pipeline: Pipeline, who: str, tenant: str) -> list[str]:
    """The ids of this user's turns on memory.observations, in order, one that came twice once."""
    found = [parsed(record.value) for record in await pipeline.records(OBSERVATIONS.name)]
    mine = [each["turn_id"] for each in found if (each.get("tenant_id"), each.get("user_id")) == (tenant, who)]
    return list(dict.fromkeys(mine))


async def all_observed(pipeline: Pipeline, who: str, count: int, tenant: str, deadline: float = 40.0) -> None:
    """Wait until this user's first `count` turns are observed, in order."""
    turns = [f"t{n}" for n in range(1, count + 1)]
    what = f"the observations of {who}'s turns {turns}"
    await wait_for(
        lambda: observed(pipeline, who, tenant), what, until=turns.__eq__, deadline=deadline, detail=pipeline.logs
    )


@pytest.mark.fault(
    broken="the model answers one tenant with 500, 429 without Retry-After, nothing in time, half a body, nonsense",
    holds="other tenants go on at once; its turns wait and are observed in order when it is back",
)
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(lambda: error(500), id="500"),
        pytest.param(rate_limited, id="429"),
        pytest.param(hang, id="time-out"),
        pytest.param(lambda: Reply(content='{"observations": []}', cut_body=True), id="cut-body"),
        pytest.param(lambda: Reply(raw=b"<html>no model here</html>"), id="another-server"),
    ],
)
async def test_a_model_in_trouble_holds_up_one_tenant_alone(
    pipeline_of_little_patience: Pipeline, model: ModelServer, trouble: Callable[[], Answer]
) -> None:
    pipeline, mind = pipeline_of_little_patience, Model()
    model.script = mind
    mind.trouble["ann"] = trouble
    other = pipeline.tenant + "-other"
    pipeline.spawn("observer", **TIMEOUT)
    for n in range(1, 6):
        await pipeline.produce(said("ann", n), said("bob", n, tenant_id=other))
    await all_observed(pipeline, "bob", 5, other)
    await pipeline.settled("observer")
    assert await observed(pipeline, "ann", pipeline.tenant) == [], "it is still away"
    del mind.trouble["ann"]
    await all_observed(pipeline, "ann", 5, pipeline.tenant)
    await pipeline.settled("observer")
    for tenant in (pipeline.tenant, other):
        await pipeline.verified("observer", tenant=tenant)


@pytest.mark.fault(
    broken="kill between two calls of one event of a session whose many turns wait, and between two of its events",
    holds="every turn is observed once, in order: each call is an outcome, and the next owner asks for the rest",
)
@pytest.mark.parametrize("calls", [1, 2, 4])
async def test_a_kill_among_the_rounds_of_a_long_session_loses_nothing(
    pipeline: Pipeline, model: ModelServer, calls: int
) -> None:
    mind, turns = Model(), 20
    model.script = mind
    mind.trouble["ann"] = lambda: error(500)
    pipeline.configure(f"[memory.observe]\npatience = {PATIENCE}\nrounds = 2\n")
    in_pairs = {"MEMSTREAM_OBSERVE_TOGETHER": "2"}
    waiting = pipeline.spawn("observer", **in_pairs)
    await pipeline.produce(*(said("ann", n) for n in range(1, turns + 1)))
    await pipeline.settled("observer")
    assert await observed(pipeline, "ann", pipeline.tenant) == [], "it is still away"
    waiting.kill()
    del mind.trouble["ann"]
    crashing = pipeline.spawn("observer", MEMSTREAM_CRASH_POINT=f"observer:publish:{calls}", **in_pairs)
    await wait_for(lambda: crashing.poll() is not None, "the crash", deadline=60, detail=pipeline.logs)
    assert crashing.returncode == CRASHED, pipeline.logs()
    assert 2 <= len(await observed(pipeline, "ann", pipeline.tenant)) <= 2 * calls
    pipeline.spawn("observer", **in_pairs)
    await all_observed(pipeline, "ann", turns, pipeline.tenant)
    await pipeline.settled("observer")
    await pipeline.verified("observer")


@pytest.mark.fault(
    broken="the model answers 429 with a Retry-After (seconds, a date) longer than the observer's patience",
    holds="no request of that session before; other sessions of the tenant go on",
)
@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
async def test_a_retry_after_longer_than_the_patience_is_honoured(
    pipeline_of_little_patience: Pipeline, model: ModelServer, as_date: bool
) -> None:
    pipeline, mind = pipeline_of_little_patience, Model()
    model.script = mind
    asked_for = 4 * PATIENCE
    mind.trouble["ann"] = lambda: rate_limited(asked_for, as_date=as_date)
    pipeline.spawn("observer", **TIMEOUT)
    await pipeline.produce(said("ann", 1))
    await wait_for(lambda: bool(mind.of("ann")), "the first ask")
    del mind.trouble["ann"]
    await pipeline.settled("observer")  # it waits as a row
    await pipeline.produce(said("ann", 2), said("bob", 1))
    await all_observed(pipeline, "bob", 1, pipeline.tenant)
    assert len(mind.of("ann")) == 1
    await all_observed(pipeline, "ann", 2, pipeline.tenant)
    first, second, *_ = mind.of("ann")
    assert second - first >= asked_for - as_date, "a date has whole seconds"
    await pipeline.settled("observer")
    await pipeline.verified("observer")


@pytest.mark.fault(
    broken="the model answers 429 with a Retry-After within the patience",
    holds="no request of that session before; its turn is not deferred",
)
async def test_a_retry_after_within_the_patience_is_waited_for(pipeline: Pipeline, model: ModelServer) -> None:
    mind = Model()
    model.script = mind
    mind.trouble["ann"] = lambda: rate_limited(3)
    pipeline.spawn("observer")
    await pipeline.produce(said("ann", 1))
    await wait_for(lambda: bool(mind.of("ann")), "the first ask")
    del mind.trouble["ann"]
    await all_observed(pipeline, "ann", 1, pipeline.tenant)
    first, second = mind.of("ann")
    assert second - first >= 3
    await pipeline.settled("observer")
    assert "turn_deferred" not in pipeline.logs()
    await pipeline.verified("observer")


@pytest.mark.fault(
    broken="the model's server refuses the key (401)",
    holds="not ready and alive; readiness and log name the setting; nothing is lost",
)
async def test_a_key_that_is_refused_makes_it_not_ready_and_names_the_setting(
    pipeline_of_little_patience: Pipeline, model: ModelServer
) -> None:
    """A key is refused for every tenant; the worker is not ready from three on."""
    pipeline, mind = pipeline_of_little_patience, Model()
    model.script = mind
    tenants = {"ann": pipeline.tenant, "bob": f"{pipeline.tenant}-2", "cid": f"{pipeline.tenant}-3"}
    async with watched() as health:
        pipeline.spawn("observer", **TIMEOUT, **health.env)
        await health.becomes(True, deadline=60)
        mind.trouble = dict.fromkeys(tenants, unauthorized)
        for n in range(1, 6):
            await pipeline.produce(*(said(who, n, tenant_id=tenant) for who, tenant in tenants.items()))
        await health.becomes(False, part="observer", why="check OPENAI_API_KEY")
        away = [line for line in map(json.loads, log_lines(pipeline)) if line["event"] == "component_away"]
        assert away
        assert all("OPENAI_API_KEY" in line["remedy"] for line in away)
        mind.trouble.clear()
        for who, tenant in tenants.items():
            await all_observed(pipeline, who, 5, tenant)
        await health.becomes(True)
        health.always_alive()
    await pipeline.settled("observer")
    await pipeline.verified("observer")


def log_lines(pipeline: Pipeline) -> list[str]:
    return [line for path in pipeline.folder.glob("worker-*.log") for line in path.read_text().splitlines()]


# ------------------------------------------------------------------------------------------------ the embedder
@pytest.fixture
async def embedding(own_kafka: Broker, tmp_path: Path, model: ModelServer) -> AsyncIterator[Pipeline]:
    """A pipeline whose embedder is a server; a broker and a Qdrant of its own, for the shared ones know another."""
    model.script = nothing
    with qdrant_server() as qdrant:
        made = Pipeline(
            folder=tmp_path,
            broker=f"kafka://{own_kafka.bootstrap}",
            qdrant=qdrant,
            model=model,
            env=TIMEOUT | {"MEMSTREAM_EMBEDDER": "openai:scripted-embedder"},
        )
        async with running(made) as ready:
            yield ready


@pytest.mark.fault(
    broken="the embedder's server answers 429 with Retry-After, 500, or nothing in time",
    holds="the recorder keeps its offsets and says so; the observer goes on; then everything is recorded once",
)
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(lambda: rate_limited(2), id="429"),
        pytest.param(lambda: error(500), id="500"),
        pytest.param(lambda: Reply(delay=4 * PATIENCE), id="time-out"),
    ],
)
async def test_an_embedder_that_is_away_holds_up_the_recorder_alone(
    embedding: Pipeline, model: ModelServer, trouble: Callable[[], Reply]
) -> None:
    async with watched() as health:
        embedding.spawn("recorder", "observer", **health.env)
        await health.becomes(True, deadline=60)
        model.embedding_script = lambda body: trouble()
        users = [f"u{n}" for n in range(6)]
        for user in users:
            await embedding.produce(turn("I like green tea.", 1, user=user))
        await embedding.settled("observer")
        await health.becomes(False, part="recorder", why="embedder")
        lags = await embedding.lags("recorder")
        assert lags["recorder:memory.turns"] == len(users)
        model.embedding_script = lambda body: None
        await embedding.settled("recorder", "observer")
        await health.becomes(True)
        health.always_alive()
    stored = embedding.shown("turns")[embedding.tenant]["turns"]
    assert sorted(row["user_id"] for row in stored) == users
    await embedding.verified("recorder", "observer")


@pytest.mark.fault(
    broken="the embedder refuses one text for good (400)",
    holds="the turn is recorded without a vector, others with theirs; no dead letter, nobody waits",
)
async def test_a_text_that_the_embedder_refuses_is_recorded_all_the_same(
    embedding: Pipeline, model: ModelServer
) -> None:
    def picky(body: Json) -> Reply | None:
        return error(400, "this text is not allowed") if "forbidden" in json.dumps(body["input"]) else None

    model.embedding_script = picky
    embedding.spawn("recorder", "observer")
    await embedding.produce(turn("A forbidden word.", 1), turn("I like green tea.", 2), turn("Good bye.", 3))
    await embedding.settled("recorder", "observer")
    stored = embedding.shown("turns")[embedding.tenant]["turns"]
    assert {row["turn_id"]: row["content"] for row in stored} == {
        "t1": "A forbidden word.", "t2": "I like green tea.", "t3": "Good bye."
    }  # fmt: skip
    assert await embedding.dead_letters() == []
    assert sum('"turn_not_embedded"' in line for line in log_lines(embedding)) == 1
    assert any('"windows_not_embedded"' in line for line in log_lines(embedding)), (
        "the next turn's window has its words"
    )
    await embedding.verified("recorder", "observer")

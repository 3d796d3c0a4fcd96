"""A worker that is killed while it opens a quarter for the first message of it, or while it drops one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.schemas.collections import TURNS, spec_of
from memstream.schemas.periods import Period
from tests.support.faults import has_members
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, turn, wait_for
from tests.support.processes import Supervised
from tests.support.qdrant import QdrantServer, qdrant_server
from tests.support.tcp_proxy import BlackHole, Chosen, CutResponse, HttpProxy, Mode, Well

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]
SESSION_TIMEOUT = "6"
PATIENCE = 90
FOR_EVER = "[memory.session_log]\nretention_days = 0\n"


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[QdrantServer]:
    """A Qdrant for this test alone: a quarter is opened once."""
    with qdrant_server(tmp_path / "qdrant") as own:
        yield own


@pytest.fixture
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path, qdrant: QdrantServer) -> AsyncIterator[Pipeline]:
    """A pipeline whose turns all come on one partition."""
    broker = f"kafka://{request.getfixturevalue('own_kafka').bootstrap}"
    env = {"MEMSTREAM_PARTITIONS": "1", "MEMSTREAM_SESSION_TIMEOUT": SESSION_TIMEOUT}
    with ModelServer() as model:
        made = Pipeline(folder=tmp_path, broker=broker, qdrant=qdrant, model=model, env=env)
        async with running(made) as ready:
            yield ready


class Recorders:
    """Workers of the recorder. Each reaches Qdrant through a proxy of its own, which tells who does a step."""

    def __init__(self, pipeline: Pipeline, qdrant: QdrantServer, stack: ExitStack) -> None:
        self._pipeline, self._qdrant, self._stack = pipeline, qdrant, stack
        self._running: list[tuple[Supervised, HttpProxy]] = []

    async def grow(self, count: int) -> None:
        """Start workers until the group has so many."""
        while len(self._running) < count:
            proxy = self._stack.enter_context(HttpProxy(self._qdrant.url))
            self._running.append((self._pipeline.spawn("recorder", MEMSTREAM_QDRANT=proxy.url), proxy))
        await has_members(self._pipeline, "recorder", count)

    async def kill_at(self, step: str, mode: Mode, chosen: Chosen, number: int, at: datetime) -> None:
        """Say a message; kill the worker that does the step for it. The step is not done (`BlackHole`), or done, and
        the worker does not know (`CutResponse`)."""
        for _, proxy in self._running:
            proxy.become(mode, only=chosen)
        await say(self._pipeline, number, at)

        def doing() -> list[tuple[Supervised, HttpProxy]]:
            return [(worker, proxy) for worker, proxy in self._running if proxy.met(type(mode))]

        [(worker, proxy)] = await wait_for(doing, step, deadline=PATIENCE, detail=self._pipeline.logs)
        worker.kill()
        worker.wait()
        self._pipeline.workers.remove(worker)
        self._running.remove((worker, proxy))
        for _, proxy in self._running:
            proxy.become(Well())


@pytest.fixture
def recorders(pipeline: Pipeline, qdrant: QdrantServer) -> Iterator[Recorders]:
    with ExitStack() as stack:
        yield Recorders(pipeline, qdrant, stack)


async def say(pipeline: Pipeline, number: int, at: datetime) -> None:
    await pipeline.produce(turn(f"Message {number}.", number), at=at)


def recorded(pipeline: Pipeline) -> list[str]:
    return sorted(row["turn_id"] for row in pipeline.shown("turns")[pipeline.tenant]["turns"])


def collections(qdrant: QdrantServer) -> dict[str, set[str]]:
    """Return the collections of turns, by the names of their aliases (none: those without), with their indexes."""
    with httpx.Client(base_url=qdrant.url, headers={"api-key": qdrant.token}) as client:

        def result(path: str) -> Any:
            return client.get(path).raise_for_status().json()["result"]

        names = [each["name"] for each in result("/collections")["collections"] if each["name"].startswith(TURNS)]
        aliases = {each["collection_name"]: each["alias_name"] for each in result("/aliases")["aliases"]}
        return {aliases.get(name, ""): set(result(f"/collections/{name}")["payload_schema"]) for name in names}


def to_a_quarter(method: str, ending: str) -> Chosen:
    def chosen(called: str, path: str) -> bool:
        path = path.partition("?")[0]
        return called == method and "/turns_" in path and path.endswith(ending)

    return chosen


OPENING: dict[str, tuple[Mode, Chosen]] = {
    "before its collection is made": (BlackHole(), to_a_quarter("PUT", "_v1")),
    "after its collection is made": (CutResponse(), to_a_quarter("PUT", "_v1")),
    "before an index": (BlackHole(), to_a_quarter("PUT", "/index")),
    "before its alias": (BlackHole(), lambda method, path: path.endswith("/collections/aliases")),
    "after its alias": (CutResponse(), lambda method, path: path.endswith("/collections/aliases")),
    "before its first message": (BlackHole(), to_a_quarter("PUT", "/points")),
    "after its first message": (CutResponse(), to_a_quarter("PUT", "/points")),
}


@pytest.mark.fault(
    broken="kill -9 of the worker at each step in which it opens a quarter for the first message of it",
    holds="another running worker opens it; each message is there once, its collection has all indexes; I1",
)
async def test_a_quarter_that_was_half_opened_is_opened(
    pipeline: Pipeline, qdrant: QdrantServer, recorders: Recorders
) -> None:
    spec = spec_of(TURNS)
    assert spec is not None
    indexes = {field.path for field in spec.fields}
    now = datetime.now(UTC)
    quarter = Period.of(now)
    pipeline.configure(FOR_EVER)
    await recorders.grow(1)
    await say(pipeline, 0, now)
    await pipeline.settled("recorder")
    for number, (step, (mode, chosen)) in enumerate(OPENING.items(), start=1):
        await recorders.grow(2)
        quarter = _before(quarter)
        await recorders.kill_at(step, mode, chosen, number, quarter.begins)
        await pipeline.settled("recorder", deadline=PATIENCE)
        assert recorded(pipeline) == [f"t{each}" for each in range(number + 1)], step
        found = collections(qdrant)
        assert found[f"turns_{quarter}"] >= indexes, step
        assert "" not in found, step
    await pipeline.verified("recorder")


def _before(period: Period) -> Period:
    return Period(period.year - (period.quarter == 1), 4 if period.quarter == 1 else period.quarter - 1)


DROPPING: dict[str, Mode] = {"before": BlackHole(), "after": CutResponse()}


@pytest.mark.parametrize("step", DROPPING)
@pytest.mark.fault(
    broken="kill -9 of the worker before or after it drops a quarter",
    holds="the next worker drops what is left; newer messages stay; I1",
)
async def test_a_drop_that_was_killed_is_completed(
    pipeline: Pipeline, qdrant: QdrantServer, recorders: Recorders, step: str
) -> None:
    pipeline.configure(FOR_EVER)
    now, old = datetime.now(UTC), Period(2024, 1)
    pipeline.spawn("recorder")
    await say(pipeline, 0, now)
    await say(pipeline, 1, old.begins)
    await pipeline.settled("recorder")
    assert recorded(pipeline) == ["t0", "t1"]
    assert f"turns_{old}" in collections(qdrant)
    pipeline.stop()

    pipeline.configure("[memory.session_log]\nretention_days = 400\n")
    await recorders.grow(1)
    await recorders.kill_at(f"{step} the drop", DROPPING[step], to_a_quarter("DELETE", "_v1"), 2, now)
    pipeline.spawn("recorder")
    await say(pipeline, 3, now)
    await pipeline.settled("recorder", deadline=PATIENCE)
    gone = f"the end of {old}"
    await wait_for(lambda: f"turns_{old}" not in collections(qdrant), gone, deadline=PATIENCE, detail=pipeline.logs)
    assert "" not in collections(qdrant)
    assert recorded(pipeline) == ["t0", "t2", "t3"]
    await pipeline.verified("recorder")

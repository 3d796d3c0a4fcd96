"""Graphs of the embedded engine: built by a process of its own, on a copy, while the collection is written and read."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.embedded.edge_index import GraphBuilder, GraphPolicy
from memstream.adapters.vectors.engine import SEARCH, EngineRefused
from tests.support.vector_backends import make_id, match

POINTS, SIZE = 3_000, 32
SMALL = GraphPolicy(vectors=1_000, of_tenant=1_000, full_scan=100)
COSINE = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
Opened = Callable[[], Awaitable[EdgeEngine]]
EXACT = models.SearchParams(exact=True)
TENANT = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)


def vectors(count: int, seed: int) -> list[list[float]]:
    """Around a few hundred directions, with as much noise as there is direction."""
    directions = np.random.default_rng(0).standard_normal((300, SIZE))
    random = np.random.default_rng(seed)
    drawn: list[list[float]] = (
        directions[random.integers(0, len(directions), count)] + random.standard_normal((count, SIZE))
    ).tolist()
    return drawn


def point(name: int, vector: Sequence[float], tenant: str = "acme", **fields: Any) -> models.PointStruct:
    payload = {"tenant_id": tenant, "number": name, **fields}
    return models.PointStruct(id=make_id(name), vector={"dense": list(vector)}, payload=payload)


@pytest_asyncio.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    """Opens the engine of one folder, the one before closed."""
    engines: list[EdgeEngine] = []

    async def engine() -> EdgeEngine:
        for each in engines:
            await each.close()
        engines.append(EdgeEngine(folder=tmp_path))
        return engines[-1]

    yield engine
    for each in engines:
        await each.close()


async def filled(engine: EdgeEngine, *, tenants: int = 1) -> None:
    await engine.create_collection("facts", {"dense": COSINE})
    await engine.create_payload_index("facts", "tenant_id", TENANT)
    drawn = vectors(POINTS, seed=1)
    await engine.upsert("facts", [point(n, each, tenant=f"acme{n % tenants or ''}") for n, each in enumerate(drawn)])


async def nearest(engine: EdgeEngine, vector: Sequence[float], how: models.SearchParams, limit: int = 10) -> set[Any]:
    mine = match("tenant_id", "acme")
    found = await engine.query_points("facts", list(vector), "dense", query_filter=mine, search_params=how, limit=limit)
    return {each.id for each in found.points}


async def rows(engine: EdgeEngine) -> dict[Any, Any]:
    page, _ = await engine.scroll("facts", limit=2 * POINTS)
    return {each.id: each.payload for each in page}


async def indexed(engine: EdgeEngine) -> int:
    return (await engine.get_collection("facts")).indexed_vectors_count or 0


async def test_a_graph_finds_what_comparing_with_all_finds(opened: Opened) -> None:
    engine = await opened()
    await filled(engine)
    asked = vectors(20, seed=2)
    before = [await nearest(engine, each, EXACT) for each in asked]
    assert await indexed(engine) == 0

    assert await GraphBuilder(engine=engine, policy=SMALL).look() == ("facts",)

    assert await indexed(engine) == POINTS
    assert [await nearest(engine, each, EXACT) for each in asked] == before
    found = [await nearest(engine, each, SEARCH) for each in asked]
    assert sum(len(each & all_) for each, all_ in zip(found, before, strict=True)) >= 0.95 * 10 * len(asked)
    careless = models.SearchParams(hnsw_ef=10, quantization=models.QuantizationSearchParams(rescore=False))
    assert [await nearest(engine, each, careless) for each in asked] != before, "there is no graph"
    assert await GraphBuilder(engine=engine, policy=SMALL).look() == (), "nothing new has come"


async def test_what_is_written_meanwhile_is_in_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = await opened()
    await filled(engine)
    real = GraphBuilder._optimized
    before = [tmp_path / "facts" / "shard", tmp_path / "facts" / "shard-1"]

    async def written(self: GraphBuilder, collection: Any, copy: Path) -> None:
        """Inserts, a change under a condition that holds and one that holds no more, fields, and an erasure."""
        assert all(each.is_dir() for each in before)
        one, other = vectors(2, seed=3)
        old, update = match("number", 1), models.UpdateMode.UPDATE_ONLY
        await engine.upsert("facts", [point(n, one) for n in range(POINTS, POINTS + 150)])
        await engine.upsert("facts", [point(1, one, number=-1)], update_filter=old, update_mode=update)
        await engine.upsert("facts", [point(1, other, number=-2)], update_filter=old, update_mode=update)
        await engine.set_payload("facts", {"seen": True}, match("number", 2))
        await engine.delete("facts", match("number", 3))
        with pytest.raises(EngineRefused):
            await engine.update_vectors("facts", [models.PointVectors(id=make_id("none"), vector={"dense": one})])
        await real(self, collection, copy)
        await engine.delete("facts", match("number", 4))

    monkeypatch.setattr(GraphBuilder, "_optimized", written)
    assert await GraphBuilder(engine=engine, policy=SMALL).look() == ("facts",)

    for again in (False, True):
        standing = await opened() if again else engine
        found = await rows(standing)
        assert len(found) == POINTS + 148
        assert (found[make_id(1)]["number"], found[make_id(2)]["seen"]) == (-1, True)
        assert {make_id(3), make_id(4)} & found.keys() == set()
        assert await nearest(standing, vectors(2, seed=3)[0], SEARCH, limit=151) >= {make_id(1), make_id(POINTS)}
        assert POINTS - 10 < await indexed(standing) <= POINTS
        assert [each.is_dir() for each in before] == [False, True]


@pytest.mark.long
async def test_a_process_that_dies_leaves_the_old_shard_and_is_not_tried_again_at_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = await opened()
    await filled(engine)
    before = await rows(engine)
    graphs = GraphBuilder(engine=engine, policy=SMALL)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        assert await graphs.look() == ()
    assert not (tmp_path / "facts" / "shard-1").exists()
    assert await graphs.look() == (), "until as many more have none"
    await engine.upsert("facts", [point(n, each) for n, each in enumerate(vectors(1_000, seed=4), start=POINTS)])
    assert await graphs.look() == ("facts",)
    assert (await rows(engine)).items() >= before.items()


async def test_what_a_crash_leaves_of_a_building_is_swept_away(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = await opened()
    await filled(engine)

    async def crashes(self: GraphBuilder, collection: Any, copy: Path) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(GraphBuilder, "_optimized", crashes)
    with pytest.raises(RuntimeError):
        await GraphBuilder(engine=engine, policy=SMALL).look()
    await engine.delete("facts", match("number", 0))
    assert (tmp_path / "facts" / "shard-1").is_dir()

    again = await opened()
    assert not (tmp_path / "facts" / "shard-1").exists()
    assert len(await rows(again)) == POINTS - 1


async def test_where_every_tenant_is_small_nothing_is_built(opened: Opened) -> None:
    engine = await opened()
    await filled(engine, tenants=4)
    assert await GraphBuilder(engine=engine, policy=SMALL).look() == ()
    assert await indexed(engine) == 0


async def test_who_stops_gives_a_building_up(opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = await opened()
    await filled(engine)
    script = tmp_path / "endless"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    started: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def noted(*given: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await real(*given, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    graphs = GraphBuilder(engine=engine, policy=GraphPolicy(vectors=1_000, of_tenant=1_000, look=0.01))
    graphs.start()
    async with asyncio.timeout(20):
        while not started:
            await asyncio.sleep(0.01)
    await graphs.stop()
    assert started[0].returncode == -9
    assert not (tmp_path / "facts" / "shard-1").exists()
    assert len(await rows(engine)) == POINTS

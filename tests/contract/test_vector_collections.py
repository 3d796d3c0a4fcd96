"""The contract of `VectorStore` for collections: creation, reuse, and refusal of another embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import models

from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors.collections import LEAST_VERSION
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.engine import QdrantEngine
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.errors import Fatal
from tests.support.qdrant import NO_QDRANT, has_real_qdrant, real_qdrant_url
from tests.support.vector_backends import EMBEDDER, PLACES, Backend, make_id, make_point, make_row, place


@pytest.fixture(params=PLACES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """A backend without collections."""
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


async def test_qdrant_itself_is_among_the_places(tmp_path: Path) -> None:
    if not has_real_qdrant():
        pytest.skip(NO_QDRANT)
    assert "qdrant" in PLACES
    async with httpx.AsyncClient(base_url=real_qdrant_url()) as client, place("qdrant", tmp_path) as backend:

        async def collections() -> set[str]:
            found = (await client.get("/collections")).raise_for_status().json()["result"]["collections"]
            return {each["name"] for each in found}

        assert (await client.get("/")).json()["title"] == "qdrant - vector search engine"
        before = await collections()
        store = await backend.open()
        await store.ensure("facts")
        await store.close()
        [made] = {name for name in await collections() - before if name.endswith("-facts__hashing_v1")}
    assert made


async def test_collections_exist_once_they_are_ensured(backend: Backend) -> None:
    store = await backend.open()
    try:
        await store.ping()
        assert tuple(int(part) for part in (await store.version()).split(".")[:2]) >= LEAST_VERSION
        assert not await store.exists("facts")
        with pytest.raises(Fatal, match="facts"):
            await store.select("facts", tenant_id="acme")
        await store.ensure("turns", "working")
        assert [await store.exists(name) for name in ("turns", "working", "facts")] == [True, True, False]
        await store.ensure()
        await store.put("facts", [make_point("kept")])
        await store.ensure()
        assert await store.exists("facts")
        assert await store.count("facts", tenant_id="acme") == 1
        with pytest.raises(Fatal, match="no collection 'thoughts'"):
            await store.exists("thoughts")
    finally:
        await store.close()


@pytest.mark.slow
async def test_many_processes_may_ensure_at_once(backend: Backend) -> None:
    stores = [await backend.open() for _ in range(4 if backend.many else 1)]
    try:
        await asyncio.gather(*(store.ensure() for store in stores for _ in range(2)))
        assert all([await store.exists("facts") for store in stores])
    finally:
        for store in stores:
            await store.close()


@pytest.mark.parametrize(
    "other",
    [
        EmbedderIdentity(name="fastembed:all-minilm", dimension=384),
        EmbedderIdentity(name="hashing", dimension=8),
        EmbedderIdentity(name="hashing", dimension=4, version="2"),
    ],
)
async def test_another_embedder_is_refused_by_both_names(backend: Backend, other: EmbedderIdentity) -> None:
    first = await backend.open()
    await first.ensure()
    await first.put("facts", [make_point("kept")])
    await first.close()

    second = await backend.open(other)
    with pytest.raises(Fatal) as refused:
        await second.ensure()
    await second.close()
    told = str(refused.value)
    assert f"hashing ({EMBEDDER.dimension} dimensions, version 1)" in told
    assert f"{other.name} ({other.dimension} dimensions, version {other.version})" in told
    assert "MEMSTREAM_EMBEDDER=hashing" in told

    again = await backend.open()
    await again.ensure()
    assert await again.count("facts", tenant_id="acme") == 1
    await again.close()


async def test_what_was_written_is_there_after_a_reopen(backend: Backend) -> None:
    first = await backend.open()
    await first.ensure()
    await first.put("facts", [make_row(i, 1, "c", text="Stripe") for i in range(20)])
    await first.delete("facts", tenant_id="acme", ids=[make_id(0)])
    await first.close()
    await first.close()

    second = await backend.open()
    await second.ensure()
    assert await second.count("facts", tenant_id="acme") == 19
    assert len(await second.lexical("facts", tenant_id="acme", text="stripe", limit=50)) == 19
    assert await second.compare_and_set("facts", make_row(1, 2, "d"), expected_version=1, cause="d") == "applied"
    await second.close()


class ErasesBeforeWriting:
    """An engine whose rows another process erases between a read and a write of the store."""

    def __init__(self, engine: QdrantEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def upsert(self, collection_name: str, points: list[models.PointStruct], **options: Any) -> Any:
        await self._engine.delete(collection_name, models.Filter())
        return await self._engine.upsert(collection_name, points, **options)


async def test_a_row_that_is_erased_between_read_and_write_stays_erased(tmp_path: Path) -> None:
    engine = EdgeEngine(folder=tmp_path)
    store = QdrantStore(engine=engine, embedder=EMBEDDER)
    await store.ensure("facts")
    await store.put("facts", [make_row("f", 1, "c1")])
    racing = QdrantStore(engine=ErasesBeforeWriting(engine), embedder=EMBEDDER)  # type: ignore[arg-type]
    result = await racing.compare_and_set("facts", make_row("f", 2, "c1", "c2"), expected_version=1, cause="c2")
    assert result == "conflict"
    assert await store.count("facts", tenant_id="acme") == 0
    await store.close()

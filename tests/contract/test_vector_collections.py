"""The contract of `VectorStore` on collections: made, found again, refused to another embedder, kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.adapters.ports import EmbedderIdentity
from memstream.schemas.errors import Fatal
from tests.support.qdrant import NO_DOCKER
from tests.support.vector_backends import EMBEDDER, PLACES, Backend, make_id, make_point, make_row, place


@pytest.fixture(params=PLACES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Somewhere with no collection yet."""
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


def test_qdrant_itself_is_among_the_places() -> None:
    if "qdrant" not in PLACES:
        pytest.skip(NO_DOCKER)


async def test_collections_exist_once_they_are_ensured(backend: Backend) -> None:
    store = await backend.open()
    try:
        await store.ping()
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
    assert await second.compare_and_set("facts", make_row(1, 2, "d"), expected_version=1, cause="d") == "written"
    await second.close()

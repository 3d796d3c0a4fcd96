"""The contract of `VectorStore` for an embedder whose vectors are nearly all zeros: a new collection stores them as
sparse vectors, one that stands keeps its own, and no answer tells the difference."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from memstream.adapters.ports import DenseRanking, NewWindow, Point
from memstream.adapters.vectors.engine import DENSE, WINDOW
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.errors import Fatal
from memstream.schemas.periods import Period
from tests.support.vector_backends import EMBEDDER, MOSTLY_ZEROS, PLACES, Backend, make_id, place

DIMENSION = 256
WIDE = replace(MOSTLY_ZEROS, dimension=DIMENSION)
LAST, NOW = Period(2026, 3), Period(2026, 4)
EAST, NORTH = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


@pytest.fixture(params=PLACES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


def few_words(random: Random) -> list[float]:
    """A vector of length 1 with up to eight numbers that are not zero, signs included, as of a hashed text."""
    vector = [0.0] * DIMENSION
    for _ in range(random.randint(1, 8)):
        vector[random.randrange(24)] = random.choice([1.0, -1.0, math.sqrt(2)])
    return unit(vector)


def unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(number * number for number in vector))
    return [number / length for number in vector]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def sparse_vectors(store: QdrantStore, collection: str) -> set[str]:
    return set((await store._engine.get_collection(collection)).config.params.sparse_vectors or {})


async def test_a_new_collection_stores_sparse_vectors_and_ranks_by_cosine(backend: Backend) -> None:
    """Records that share no number with what is searched for come last, and are not left out."""
    random = Random(7)
    stored = {make_id(n): few_words(random) for n in range(120)}
    store = await backend.open(WIDE)
    await store.ensure("facts", "turns")
    assert {DENSE, WINDOW} <= await sparse_vectors(store, "turns")
    metadata = (await store._engine.get_collection("turns")).config.metadata or {}
    assert metadata["memstream"]["embedder"]["version"] == "1-sparse", "an earlier version refuses it at its start"
    await store.insert("facts", [Point(each, {"tenant_id": "acme"}, dense=dense) for each, dense in stored.items()])
    for _ in range(10):
        cue = few_words(random)
        cosines = {each: cosine(cue, dense) for each, dense in stored.items()}
        assert min(map(abs, cosines.values())) == 0.0
        found = await store.nearest("facts", tenant_id="acme", dense=cue, limit=len(stored))
        [ranked] = await store.search("facts", tenant_id="acme", rankings=[DenseRanking(cue)], limit=len(stored))
        for hits in (found, ranked):
            assert {each.id for each in hits} == set(stored)
            assert [each.score for each in hits] == pytest.approx(sorted(cosines.values(), reverse=True), abs=2e-6)
            assert [cosines[each.id] for each in hits] == pytest.approx([each.score for each in hits], abs=2e-6)
    read = await store.get("facts", tenant_id="acme", ids=list(stored), with_dense=True)
    for each, dense in stored.items():
        assert read[each].dense == pytest.approx(dense, abs=1e-6)
    await store.close()


async def test_a_collection_of_an_earlier_version_keeps_its_dense_vectors(backend: Backend) -> None:
    earlier = await backend.open(EMBEDDER)
    await earlier.ensure("turns")
    await earlier.open_period("turns", LAST, newest=LAST)
    await earlier.insert("turns", [said("old", EAST, window=EAST)])
    await earlier.close()

    between = unit([0.6, 0.8, 0.0, 0.0])
    store = await backend.open(MOSTLY_ZEROS)
    await store.ensure("turns")
    assert DENSE not in await sparse_vectors(store, "turns_2026q3")
    await store.insert("turns", [said("also old", EAST, window=EAST)])
    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("old"), None, NORTH)])
    await store.open_period("turns", NOW, newest=NOW)
    assert DENSE in await sparse_vectors(store, "turns_2026q4")
    await store.insert("turns", [said("new", between, window=between)])

    near = await store.nearest("turns", tenant_id="acme", dense=EAST, limit=9)
    assert [each.payload["name"] for each in near] in (["old", "also old", "new"], ["also old", "old", "new"])
    assert [each.score for each in near] == pytest.approx([1.0, 1.0, 0.6], abs=2e-6)
    [windows] = await store.search("turns", tenant_id="acme", rankings=[DenseRanking(NORTH, "window")], limit=9)
    assert [each.score for each in windows] == pytest.approx([1.0, 0.8, 0.0], abs=2e-6)
    ids = [make_id(name) for name in ("old", "new")]
    read = await store.get("turns", tenant_id="acme", ids=ids, with_dense=True)
    assert [read[each].dense for each in ids] == [EAST, pytest.approx(between, abs=1e-6)]
    await store.close()


async def test_a_quarter_that_is_opened_again_is_written_in_its_new_form(backend: Backend) -> None:
    earlier = await backend.open(EMBEDDER)
    await earlier.ensure("turns")
    for period in (LAST, NOW):
        await earlier.open_period("turns", period, newest=NOW)
    await earlier.close()

    store = await backend.open(MOSTLY_ZEROS)
    await store.insert("turns_2026q3", [said("old", EAST)])
    await store.drop_periods("turns", before=NOW.begins)
    await store.insert(await store.open_period("turns", LAST, newest=NOW), [said("imported", EAST)])
    assert DENSE in await sparse_vectors(store, "turns_2026q3")
    near = await store.nearest("turns", tenant_id="acme", dense=EAST, limit=9)
    assert [each.payload["name"] for each in near] == ["imported"]
    await store.close()


async def test_a_collection_that_is_made_again_in_the_other_form_is_looked_at_again(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not backend.many:
        pytest.skip("one process")
    writer, reader = await backend.open(EMBEDDER), await backend.open(MOSTLY_ZEROS)
    await writer.ensure("facts")
    await writer.insert("facts", [said("first", EAST)])
    assert await found(reader) == ["first"]

    await writer._engine.delete_collection("facts__hashing_v1")
    await reader.ensure("facts")
    other = await backend.open(MOSTLY_ZEROS)
    await other.insert("facts", [said("second", EAST)])
    assert await found(reader) == await found(other) == ["second"]
    await writer._engine.delete_collection("facts__hashing_v1")
    await writer.ensure("facts")
    await writer.insert("facts", [said("third", EAST)])
    with pytest.raises(Fatal):
        await found(other)
    monkeypatch.setattr("memstream.adapters.vectors.sparse_form.LOOK_SECONDS", 0.0)
    assert await found(other) == ["third"]
    for each in (writer, reader, other):
        await each.close()


async def found(store: QdrantStore) -> list[object]:
    return [each.payload["name"] for each in await store.nearest("facts", tenant_id="acme", dense=EAST, limit=9)]


def said(name: str, dense: Sequence[float], *, window: Sequence[float] | None = None) -> Point:
    return Point(id=make_id(name), payload={"tenant_id": "acme", "name": name}, dense=dense, text=name, window=window)

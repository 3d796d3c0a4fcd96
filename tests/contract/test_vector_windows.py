"""The contract of `VectorStore` for windows, several rankings in one request, and the last records of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memstream.adapters.ports import DenseRanking, LexicalRanking, NewWindow, Point, RankedPoint, StoredPoint
from memstream.adapters.vectors import collections as making
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.collections import COLLECTIONS, CollectionSpec
from memstream.schemas.errors import Fatal
from tests.support.vector_backends import EMBEDDER, FORMS, Backend, make_id, match, place

in_module_loop = pytest.mark.asyncio(loop_scope="module")
EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]
TENANTS = ("acme", "rival")


@pytest_asyncio.fixture(params=FORMS, scope="module", loop_scope="module")
async def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QdrantStore]:
    async with place(request.param, tmp_path_factory.mktemp("held")) as backend:
        store = await backend.open()
        await store.ensure("turns", "facts")
        yield store
        await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(opened: QdrantStore) -> QdrantStore:
    for tenant in TENANTS:
        ids = [each.id for each in await opened.select("turns", tenant_id=tenant)]
        await opened.delete("turns", tenant_id=tenant, ids=ids)
    return opened


def said(
    name: str,
    *,
    dense: Sequence[float] | None = EAST,
    window: Sequence[float] | None = None,
    text: str | None = None,
    tenant: str = "acme",
    **fields: Any,
) -> Point:
    return Point(
        id=make_id(name), payload={"tenant_id": tenant, "name": name, **fields}, dense=dense, window=window, text=text
    )


def told(found: Sequence[StoredPoint]) -> list[object]:
    return [each.payload["name"] for each in found]


def named(found: Sequence[RankedPoint]) -> list[str]:
    """The names of the messages in `said` that were found."""
    names = {make_id(name): name for name in ("a", "b", "c", "old", "new")}
    return [names[each.id] for each in found]


# ------------------------------------------------------------------------------------------------ several rankings
@in_module_loop
async def test_each_ranking_is_answered_in_its_place(store: QdrantStore) -> None:
    await store.insert(
        "turns",
        [
            said("a", dense=EAST, window=NORTH, text="tea in the garden"),
            said("b", dense=NORTH, window=EAST, text="coffee"),
            said("c", dense=[0.6, 0.8, 0.0, 0.0], window=UP, text="tea"),
            said("theirs", tenant="rival", dense=EAST, window=EAST, text="tea"),
        ],
    )
    rankings = [
        DenseRanking(EAST),
        DenseRanking(EAST, "window"),
        LexicalRanking("tea"),
        LexicalRanking("the"),
        LexicalRanking("Coffee!"),
    ]
    answers = await store.search("turns", tenant_id="acme", rankings=rankings, limit=9)
    assert [named(each) for each in answers[:2]] == [["a", "c", "b"], ["b", *named(answers[1])[1:]]]
    assert [set(named(each)) for each in answers[2:]] == [{"a", "c"}, set(), {"b"}]
    assert answers[0][1].score == pytest.approx(0.6)
    nearest = await store.nearest("turns", tenant_id="acme", dense=EAST, limit=9)
    assert [(each.id, each.score) for each in answers[0]] == [(each.id, pytest.approx(each.score)) for each in nearest]
    assert named(answers[2]) == told(await store.lexical("turns", tenant_id="acme", text="tea", limit=9))

    limited = await store.search("turns", tenant_id="acme", rankings=rankings[:1], where=match("name", "b"), limit=9)
    assert [named(each) for each in limited] == [["b"]]
    first = await store.search("turns", tenant_id="acme", rankings=rankings[:2], limit=1)
    assert [named(each) for each in first] == [["a"], ["b"]]
    nothing = await store.search(
        "turns", tenant_id="acme", rankings=[LexicalRanking("the"), LexicalRanking("")], limit=9
    )
    assert [list(each) for each in nothing] == [[], []]


@in_module_loop
async def test_a_ranking_that_cannot_be_is_refused(store: QdrantStore) -> None:
    for rankings, why in (
        ([DenseRanking(EAST, "window")], "no windows"),
        ([DenseRanking([1.0])], "1 dimensions"),
        ([LexicalRanking("tea"), DenseRanking([float("nan"), 0, 0, 0])], "NaN"),
    ):
        with pytest.raises(Fatal, match=why):
            await store.search("facts", tenant_id="acme", rankings=rankings, limit=1)
    with pytest.raises(Fatal, match="no vectors"):
        await store.search("working", tenant_id="acme", rankings=[LexicalRanking("tea")], limit=1)
    with pytest.raises(Fatal, match="tenant"):
        await store.search("turns", tenant_id="", rankings=[LexicalRanking("tea")], limit=1)
    with pytest.raises(Fatal, match="no windows"):
        await store.insert("facts", [said("a", window=EAST)])


# ------------------------------------------------------------------------------------------------ a new window
@in_module_loop
async def test_a_new_window_replaces_the_old_one_and_nothing_else(store: QdrantStore) -> None:
    await store.insert("turns", [said("a", dense=EAST, window=NORTH, text="tea", content="tea")])
    before = await store.get("turns", tenant_id="acme", ids=[make_id("a")], with_dense=True)

    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("a"), "tea and cake", UP)])

    words = [LexicalRanking("cake"), LexicalRanking("tea"), DenseRanking(UP, "window"), DenseRanking(EAST)]
    answers = await store.search("turns", tenant_id="acme", rankings=words, limit=9)
    assert [named(each) for each in answers] == [["a"]] * 4
    assert [answers[2][0].score, answers[3][0].score] == [pytest.approx(1.0)] * 2
    assert await store.get("turns", tenant_id="acme", ids=[make_id("a")], with_dense=True) == before

    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("a"), "the", None)])
    again = await store.search("turns", tenant_id="acme", rankings=words, limit=9)
    assert [named(each) for each in again] == [["a"]] * 4, "what is not given stays as it is"


@in_module_loop
async def test_a_record_is_found_by_the_words_beside_it_after_records_with_these_words(store: QdrantStore) -> None:
    await store.insert(
        "turns",
        [
            replace(said("a", text="in Lisbon since spring " + "and so on " * 45), nearby="where is your studio"),
            said("b", text="where is your studio"),
            said("c", text="pottery"),
        ],
    )
    [found] = await store.search("turns", tenant_id="acme", rankings=[LexicalRanking("studio")], limit=9)
    assert named(found) == ["b", "a"]

    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("c"), "pottery", None, "my studio")])
    [found] = await store.search("turns", tenant_id="acme", rankings=[LexicalRanking("studio")], limit=9)
    assert set(named(found)) == {"a", "b", "c"}


@in_module_loop
async def test_an_absent_point_stays_absent_and_the_others_are_written(store: QdrantStore) -> None:
    await store.insert("turns", [said("a", window=NORTH), said("b", window=NORTH)])
    await store.rewindow(
        "turns", tenant_id="acme", points=[NewWindow(make_id(name), None, UP) for name in ("a", "gone", "b")]
    )
    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("gone"), "words", UP)])
    assert await store.count("turns", tenant_id="acme") == 2
    [found] = await store.search("turns", tenant_id="acme", rankings=[DenseRanking(UP, "window")], limit=9)
    assert [each.score for each in found] == [pytest.approx(1.0)] * 2


@in_module_loop
async def test_a_foreign_point_keeps_its_window(store: QdrantStore) -> None:
    await store.insert("turns", [said("a", window=NORTH, text="tea")])
    await store.rewindow("turns", tenant_id="rival", points=[NewWindow(make_id("a"), "cake", UP)])
    rankings = [DenseRanking(NORTH, "window"), LexicalRanking("cake")]
    near, words = await store.search("turns", tenant_id="acme", rankings=rankings, limit=9)
    assert (near[0].score, words) == (pytest.approx(1.0), [])


@in_module_loop
async def test_windows_asked_for_at_once_are_one_request(store: QdrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{n}" for n in range(10)]
    await store.insert("turns", [said(name, tenant=TENANTS[n % 2], window=UP) for n, name in enumerate(names)])
    requests = []
    real = store._engine.update_vectors

    async def counted(*given: Any, **options: Any) -> Any:
        requests.append(given)
        return await real(*given, **options)

    monkeypatch.setattr(store._engine, "update_vectors", counted)
    await asyncio.gather(
        *(
            store.rewindow("turns", tenant_id=TENANTS[n % 2], points=[NewWindow(make_id(name), None, NORTH)])
            for n, name in enumerate(names)
        )
    )
    assert len(requests) == (len(TENANTS) if store._shards.by_tenant else 1)
    for tenant in TENANTS:
        [found] = await store.search("turns", tenant_id=tenant, rankings=[DenseRanking(NORTH, "window")], limit=9)
        assert [each.score for each in found] == [pytest.approx(1.0)] * 5


# ------------------------------------------------------------------------------------------------ the last records
@in_module_loop
async def test_the_last_are_those_with_the_greatest_value(store: QdrantStore) -> None:
    points = [said(f"s{n}", session_id="s", session_place=n) for n in range(5)]
    points += [said("without", session_id="s"), said("other", session_id="o", session_place=9)]
    await store.insert("turns", [*points, said("theirs", tenant="rival", session_id="s", session_place=7)])

    async def last(session: str, *, tenant: str = "acme", limit: int = 2) -> list[object]:
        where = match("session_id", session)
        return told(await store.last("turns", tenant_id=tenant, where=where, order_by="session_place", limit=limit))

    assert await asyncio.gather(last("s"), last("o"), last("none"), last("s", tenant="rival"), last("s", limit=9)) == [
        ["s4", "s3"],
        ["other"],
        [],
        ["theirs"],
        ["s4", "s3", "s2", "s1", "s0"],
    ]
    with pytest.raises(Fatal, match="tenant"):
        await last("s", tenant="")


@in_module_loop
async def test_what_is_asked_last_at_once_is_one_request(store: QdrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []
    real = store._engine.query_batch_points

    async def counted(*given: Any, **options: Any) -> Any:
        requests.append(given)
        return await real(*given, **options)

    monkeypatch.setattr(store._engine, "query_batch_points", counted)
    await asyncio.gather(
        *(store.last("turns", tenant_id=TENANTS[n % 2], order_by="session_place", limit=2) for n in range(20))
    )
    assert len(requests) == 1


# ------------------------------------------------------------------------------------------------ old collections
@pytest.fixture(params=FORMS)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


async def test_a_collection_that_was_made_without_windows_gets_them(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await backend.open(EMBEDDER)
    await as_made_by_0_1(first, monkeypatch)
    await first.insert("turns", [said("old", text="tea")])
    with pytest.raises(Fatal, match="window"):
        await first.insert("turns", [said("early", window=EAST)])
    await first.ensure("turns")
    await first.insert("turns", [said("new", window=NORTH, text="coffee", session_place=0)])
    await first.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("old"), "tea coffee", UP)])
    await first.close()

    second = await backend.open()
    await second.ensure("turns")
    rankings = [DenseRanking(NORTH, "window"), LexicalRanking("coffee"), DenseRanking(UP, "window")]
    near, words, rewritten = await second.search("turns", tenant_id="acme", rankings=rankings, limit=9)
    assert (named(near)[0], set(named(words)), named(rewritten)[0]) == ("new", {"new", "old"}, "old")
    assert told(await second.last("turns", tenant_id="acme", order_by="session_place", limit=9)) == ["new"]
    await second.close()


async def as_made_by_0_1(store: QdrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn `turns` into a collection as version 0.1 made it, without its second vector."""
    real = making._create_windows

    async def none_yet(*_: Any) -> None:
        return None

    [turns] = [spec for spec in COLLECTIONS if spec.name == "turns"]
    without = CollectionSpec(turns.name, has_vectors=True, fields=turns.fields)
    monkeypatch.setattr(making, "_create_windows", none_yet)
    monkeypatch.setattr(store, "_specs", {"turns": without})
    await store.ensure("turns")
    vectors = (await store._engine.get_collection("turns")).config.params.vectors
    assert isinstance(vectors, dict)
    assert list(vectors) == ["dense"]
    monkeypatch.setattr(making, "_create_windows", real)
    monkeypatch.setattr(store, "_specs", {spec.name: spec for spec in COLLECTIONS})


def test_only_turns_have_windows() -> None:
    assert [spec.name for spec in COLLECTIONS if spec.has_windows] == ["turns"]

"""The contract of `PeriodVectorStore`: collections that are kept by period are read as one and dropped whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.ports import DenseRanking, LexicalRanking, NewWindow, Point, StoredPoint
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas.errors import Fatal
from memstream.schemas.periods import Period
from tests.support.vector_backends import FORMS, Backend, make_id, match, place

in_module_loop = pytest.mark.asyncio(loop_scope="module")
OLD, LAST, NOW = Period(2025, 4), Period(2026, 3), Period(2026, 4)
EAST, NORTH, BETWEEN = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0]


@pytest.fixture(params=FORMS)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[PeriodStore]:
    opened = await backend.open()
    await opened.ensure("turns")
    yield opened
    await opened.close()


@pytest_asyncio.fixture(params=FORMS, scope="module", loop_scope="module")
async def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PeriodStore]:
    """A store with a message in each of three periods, for tests that only read."""
    async with place(request.param, tmp_path_factory.mktemp("filled")) as backend:
        opened = await backend.open()
        await opened.ensure("turns")
        await fill(opened)
        yield opened
        await opened.close()


def said(name: str, *, dense: Sequence[float] = EAST, text: str | None = None, **fields: Any) -> Point:
    payload = {"tenant_id": "acme", "name": name, **fields}
    return Point(id=make_id(name), payload=payload, dense=dense, window=dense, text=text)


async def insert(store: PeriodStore, period: Period, *points: Point) -> None:
    await store.insert(await store.open_period("turns", period, newest=NOW), points)


def names(found: Sequence[StoredPoint]) -> list[object]:
    return [each.payload["name"] for each in found]


# ------------------------------------------------------------------------------------------------ opening
async def test_the_first_period_takes_over_what_was_there_before(store: PeriodStore) -> None:
    await store.insert("turns", [said("before")])
    assert await store.periods("turns") == ()

    assert await store.open_period("turns", NOW, newest=NOW) == "turns_2026q4"

    assert await store.periods("turns") == (NOW,)
    assert names(await store.select("turns_2026q4", tenant_id="acme")) == ["before"]
    assert names(await store.select("turns", tenant_id="acme")) == ["before"]


async def test_an_old_turn_that_comes_first_does_not_make_what_was_there_old(store: PeriodStore) -> None:
    await store.insert("turns", [said("before")])
    await insert(store, OLD, said("imported"))
    assert await store.periods("turns") == (OLD, NOW)
    assert names(await store.select("turns_2026q4", tenant_id="acme")) == ["before"]
    assert names(await store.select("turns_2025q4", tenant_id="acme")) == ["imported"]


async def test_many_processes_may_open_a_period_at_once(backend: Backend) -> None:
    stores = [await backend.open() for _ in range(3 if backend.many else 1)]
    try:
        await stores[0].ensure("turns")
        opening = (each.open_period("turns", period, newest=NOW) for each in stores for period in (LAST, NOW, LAST))
        assert set(await asyncio.gather(*opening)) == {"turns_2026q3", "turns_2026q4"}
        assert await stores[-1].periods("turns") == (LAST, NOW)
    finally:
        for each in stores:
            await each.close()


async def test_periods_are_there_after_a_reopen(backend: Backend) -> None:
    first = await backend.open()
    await first.ensure("turns")
    await insert(first, NOW, said("new"))
    await insert(first, LAST, said("old"))
    await first.close()
    again = await backend.open()
    await again.ensure("turns")
    try:
        assert await again.periods("turns") == (LAST, NOW)
        assert sorted(map(str, names(await again.select("turns", tenant_id="acme")))) == ["new", "old"]
    finally:
        await again.close()


async def test_another_process_sees_a_period_that_was_opened(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    if not backend.many:
        pytest.skip("one process")
    monkeypatch.setattr("memstream.adapters.vectors.periods.period_store.LOOK_SECONDS", 0.0)
    writer, reader = await backend.open(), await backend.open()
    try:
        await writer.ensure("turns")
        await insert(writer, LAST, said("a"))
        assert await reader.count("turns", tenant_id="acme") == 1
        await insert(writer, NOW, said("b"))
        assert await reader.count("turns", tenant_id="acme") == 2
    finally:
        await writer.close()
        await reader.close()


# ------------------------------------------------------------------------------------------------ reading
async def fill(store: PeriodStore) -> None:
    await insert(store, NOW, said("new", session_place=5, occurred_at="2026-11-01T00:00:00Z", text="tea"))
    await insert(
        store, LAST, said("old", dense=BETWEEN, session_place=3, occurred_at="2026-08-01T02:00:00+02:00", text="tea")
    )
    await insert(store, OLD, said("oldest", dense=NORTH, session_place=4, occurred_at="2026-08-01T00:00:01Z"))


@in_module_loop
async def test_reads_go_over_all_periods(filled: PeriodStore) -> None:
    every = [make_id(name) for name in ("new", "old", "oldest")]
    found = await filled.get("turns", tenant_id="acme", ids=every)
    assert {str(each.payload["name"]): each.collection for each in found.values()} == {
        "new": "turns_2026q4",
        "old": "turns_2026q3",
        "oldest": "turns_2025q4",
    }
    assert [each.id for each in await filled.select("turns", tenant_id="acme")] == sorted(every)
    assert [each.id for each in await filled.select("turns", tenant_id="acme", limit=2)] == sorted(every)[:2]
    rest = await filled.select("turns", tenant_id="acme", from_id=sorted(every)[1], limit=9)
    assert [each.id for each in rest] == sorted(every)[1:]
    assert await filled.count("turns", tenant_id="acme") == 3
    assert await filled.count("turns", tenant_id="acme", where=match("name", "old")) == 1
    assert await filled.count("turns", tenant_id="rival") == 0


@in_module_loop
async def test_an_order_holds_over_all_periods(filled: PeriodStore) -> None:
    ordered = await filled.select("turns", tenant_id="acme", order_by="occurred_at", fields=("name",))
    assert names(ordered) == ["old", "oldest", "new"]
    assert all(set(each.payload) == {"tenant_id", "name"} for each in ordered)
    newest = await filled.select("turns", tenant_id="acme", order_by="occurred_at", direction="desc", limit=2)
    assert names(newest) == ["new", "oldest"]
    last = await filled.last("turns", tenant_id="acme", order_by="session_place", limit=2)
    assert [(each.payload["name"], each.collection) for each in last] == [
        ("new", "turns_2026q4"),
        ("oldest", "turns_2025q4"),
    ]


@in_module_loop
async def test_searches_are_merged_by_score(filled: PeriodStore) -> None:
    assert names(await filled.nearest("turns", tenant_id="acme", dense=EAST, limit=2)) == ["new", "old"]
    assert set(names(await filled.lexical("turns", tenant_id="acme", text="tea", limit=9))) == {"new", "old"}
    assert await filled.lexical("turns", tenant_id="acme", text="the", limit=9) == []
    rankings = [DenseRanking(NORTH), LexicalRanking("the"), LexicalRanking("tea"), DenseRanking(EAST, "window")]
    answers = await filled.search("turns", tenant_id="acme", rankings=rankings, limit=2)
    found = {make_id(name): name for name in ("new", "old", "oldest")}
    assert [[found[each.id] for each in answer] for answer in answers[:2]] == [["oldest", "old"], []]
    assert {found[each.id] for each in answers[2]} == {"new", "old"}
    assert [found[each.id] for each in answers[3]] == ["new", "old"]


async def test_a_point_is_changed_where_it_lies_and_periods_are_dropped_whole(store: PeriodStore) -> None:
    await fill(store)
    old = make_id("old")
    await store.set_payload("turns", tenant_id="acme", ids=[old, make_id("none")], fields={"sensitivity": "secret"})
    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(old, "coffee", NORTH)])
    [found] = (await store.get("turns", tenant_id="acme", ids=[old])).values()
    assert (found.payload["sensitivity"], found.collection) == ("secret", "turns_2026q3")
    assert names(await store.lexical("turns", tenant_id="acme", text="coffee", limit=9)) == ["old"]
    await store.delete("turns", tenant_id="acme", ids=[old])
    assert await store.count("turns", tenant_id="acme") == 2

    assert await store.drop_periods("turns", before=OLD.begins) == ()
    [gone] = await store.drop_periods("turns", before=LAST.begins)
    assert "2025q4" in gone
    assert await store.drop_periods("turns", before=LAST.begins) == ()
    assert await store.periods("turns") == (LAST, NOW)
    assert await store.get("turns", tenant_id="acme", ids=[make_id("oldest")]) == {}

    assert len(await store.drop_periods("turns", before=NOW.ends)) == 2
    assert not await store.exists("turns")
    assert await store.select("turns", tenant_id="acme") == []
    assert await store.nearest("turns", tenant_id="acme", dense=EAST, limit=9) == []
    rankings = [DenseRanking(EAST), LexicalRanking("tea")]
    found = await store.search("turns", tenant_id="acme", rankings=rankings, limit=9)
    assert [list(each) for each in found] == [[], []]
    await insert(store, NOW.next, said("later"))
    assert names(await store.select("turns", tenant_id="acme")) == ["later"]


# ------------------------------------------------------------------------------------------------ dropping
async def test_what_no_period_took_over_is_not_dropped(store: PeriodStore) -> None:
    await store.insert("turns", [said("before")])
    assert await store.drop_periods("turns", before=NOW.ends) == ()
    assert await store.count("turns", tenant_id="acme") == 1


async def test_a_reader_survives_a_drop_that_it_did_not_see(backend: Backend) -> None:
    if not backend.many:
        pytest.skip("one process")
    writer, reader = await backend.open(), await backend.open()
    try:
        await writer.ensure("turns")
        await insert(writer, LAST, said("a"))
        await insert(writer, NOW, said("b"))
        assert await reader.count("turns", tenant_id="acme") == 2
        await writer.drop_periods("turns", before=NOW.begins)
        assert names(await reader.select("turns", tenant_id="acme")) == ["b"]
        await writer.drop_periods("turns", before=NOW.ends)
        assert await reader.get("turns", tenant_id="acme", ids=[make_id("b")]) == {}
        with pytest.raises(Fatal, match="episodes"):
            await reader.select("episodes", tenant_id="acme")
    finally:
        await writer.close()
        await reader.close()


async def test_a_period_without_a_name_is_dropped_too(store: PeriodStore) -> None:
    """A server that stops in the middle of a deletion may leave a collection without its alias."""
    await insert(store, NOW, said("new"))
    await insert(store, OLD, said("old"))
    unnamed = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name="turns_2025q4"))
    await store._engine.update_collection_aliases([unnamed])
    assert len(await store.drop_periods("turns", before=LAST.begins)) == 1
    assert await store.drop_periods("turns", before=LAST.begins) == ()


# ------------------------------------------------------------------------------------------------ one order
async def test_a_search_finds_the_best_when_all_of_them_lie_in_one_period(store: PeriodStore) -> None:
    """A period is first asked for its share of the best; of three equal periods, 24 of 30."""
    for number, period in enumerate((OLD, LAST, NOW)):
        near = 1.0 if period == LAST else 0.01
        points = [said(f"{number}-{each}", dense=[near, 1 + each / 100, 0.0, 0.0], text="tea") for each in range(60)]
        await insert(store, period, *points)
    [found] = await store.search("turns", tenant_id="acme", rankings=[DenseRanking(EAST)], limit=30)
    assert [each.id for each in found] == [make_id(f"1-{each}") for each in range(30)]


WORDS = ("tea", "coffee", "garden", "lemon", "violin", "harbour", "piano")


async def test_a_search_over_a_boundary_finds_what_one_collection_finds(store: PeriodStore) -> None:
    """The same records, in one collection and in several, have the same scores in every ranking. The newest period has
    few, as at its begin."""
    random = Random(7)
    await store.ensure("facts")
    for number in range(80):
        words = random.choices(WORDS, weights=[1, 2, 4, 8, 16, 32, 0.2], k=random.randint(1, 5))
        dense = [random.uniform(-1, 1) for _ in range(4)]
        point = Point(make_id(number), {"tenant_id": "acme"}, dense=dense, text=" ".join(words))
        await insert(store, random.choices((OLD, LAST, NOW), weights=[10, 20, 1])[0], point)
        await store.insert("facts", [point])
    cues = ["tea", "coffee piano", "harbour tea", "lemon garden violin", "the", " ".join(WORDS)]
    rankings = [DenseRanking(EAST), *map(LexicalRanking, cues)]
    one = await store.search("facts", tenant_id="acme", rankings=rankings, limit=80)
    several = await store.search("turns", tenant_id="acme", rankings=rankings, limit=80)
    for alone, merged in zip(one, several, strict=True):
        assert [each.score for each in merged] == pytest.approx([each.score for each in alone], rel=1e-4)
        untied = [each.id for each in alone if sum(abs(each.score - other.score) < 1e-4 for other in alone) == 1]
        assert [each.id for each in merged if each.id in untied] == untied
    [by_words] = [await store.lexical("turns", tenant_id="acme", text=cues[2], limit=80)]
    assert [each.score for each in by_words] == pytest.approx([each.score for each in one[3]], rel=1e-4)

"""Databases of local tables are opened and closed beside the event loop, one at a time in a process."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from faust.types import TP

from memstream.streams.faust.table import DurableTable, open_rows
from tests.support.faust_fakes import stage_app

PARTITIONS = 3


def table_in(folder: Path) -> DurableTable:
    app = stage_app(folder, partitions=PARTITIONS)
    app.conf.tabledir.mkdir(parents=True)
    return open_rows(app, "rows")._table


def of(table: DurableTable) -> set[TP]:
    return {TP(str(table.changelog_topic_name), number) for number in range(PARTITIONS)}


@pytest.fixture
def tables(tmp_path: Path) -> list[DurableTable]:
    """The tables of a worker's stages."""
    return [table_in(tmp_path / stage) for stage in ("observer", "reflector", "consolidation")]


async def assign(table: DurableTable, *, revoked: set[TP] | None = None) -> None:
    new = of(table) if revoked is None else set()
    await table.data.on_rebalance(new, revoked or set(), new)


async def test_the_event_loop_goes_on_while_databases_are_opened_one_at_a_time(
    tables: list[DurableTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, opened = asyncio.get_running_loop(), list[tuple[int, int]]()
    opening, most = list[int](), list[int]()

    def slow(store: Any, partition: int) -> object:
        opening.append(partition)
        for _ in range(20):  # time enough for another thread to come
            went_on = threading.Event()
            loop.call_soon_threadsafe(went_on.set)
            assert went_on.wait(30), "the event loop waits for the database"
        opened.append((id(store), partition))
        most.append(len(opening))
        opening.pop()
        return object()

    monkeypatch.setattr("memstream.streams.faust.partition_store.PartitionStore._open_for_partition", slow)
    await asyncio.gather(*(assign(table) for table in tables))
    assert len(set(opened)) == len(opened) == len(tables) * PARTITIONS
    assert max(most) == 1, "a second one takes the GIL when the first lets it go"


async def test_the_event_loop_goes_on_while_a_database_is_let_go(
    tables: list[DurableTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, settled = asyncio.get_running_loop(), []

    def slow(db: Any) -> None:
        went_on = threading.Event()
        loop.call_soon_threadsafe(went_on.set)
        settled.append(went_on.wait(30))

    monkeypatch.setattr("memstream.streams.faust.partition_store._settle", slow)
    await assign(tables[0])
    await assign(tables[0], revoked=of(tables[0]))
    assert settled == [True] * PARTITIONS
    assert not tables[0].data._dbs


async def test_a_partition_that_comes_back_is_free_at_once_and_has_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_in(tmp_path)
    await assign(table)
    table.data._db_for_partition(0).put(b"k", b"v")
    await assign(table, revoked=of(table))
    monkeypatch.setattr(table.data, "sleep", None)  # nobody waits: a database that is still open is tried again later
    await assign(table)
    assert table.data._db_for_partition(0).get(b"k") == b"v"


async def test_who_still_uses_a_database_that_was_let_go_is_not_disturbed(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    await assign(table)
    used = table.data._db_for_partition(1)
    await assign(table, revoked=of(table))
    used.put(b"late", b"1")
    assert used.get(b"late") == b"1"


async def test_a_table_that_is_forgotten_is_empty_and_open(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    await assign(table)
    table.data._db_for_partition(2).put(b"k", b"v")
    await table.forget(2)
    assert table.data._dbs[2].get(b"k") is None
    assert table.data._dbs.keys() == set(range(PARTITIONS))

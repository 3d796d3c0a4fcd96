"""The bulk load and its store: the last value of each key, and an offset that is never ahead of the rows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faust.types import TP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.schemas.errors import Fatal, Transient
from memstream.streams.faust import bulk_load, bulk_writes
from memstream.streams.faust.bulk_load import BulkLoad, load
from memstream.streams.faust.bulk_writes import BulkWrites, StoreErrors
from memstream.streams.faust.table import DurableTable, open_rows
from tests.support.faust_fakes import stage_app

CHANGELOG = TP("memory-test-rows-changelog", 0)


@dataclass(frozen=True)
class Entry:
    offset: int
    key: bytes
    value: bytes | None


@dataclass
class Script:
    """A changelog with gaps, read in batches of any size, some of them empty."""

    entries: Sequence[Entry]
    end: int
    batches: list[int] = field(default_factory=list)

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Entry], int]:
        size = self.batches.pop() if self.batches else 3
        found = [entry for entry in self.entries if entry.offset >= offset][:size]
        if size == 0:
            return [], offset
        return found, found[-1].offset + 1 if found else self.end


@dataclass
class Rows:
    """A store that records all of its states."""

    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    offset: int = -1
    history: list[tuple[int, dict[bytes, bytes | None]]] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)

    async def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        self.rows.update(rows)
        self.offset = offset
        self.history.append((offset, dict(self.rows)))

    def loaded(self, offset: int) -> None:
        assert self.offset == offset, "only what is there"
        self.reported.append(offset)


@dataclass
class Clock:
    """A clock that advances by these seconds at each call, then stands still."""

    steps: list[float] = field(default_factory=list)
    now: float = 0.0

    def __call__(self) -> float:
        self.now += self.steps.pop() if self.steps else 0.0
        return self.now


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    end = draw(st.integers(0, 30))
    offsets = draw(st.sets(st.integers(0, max(0, end - 1)))) if end else set()
    entries = [
        Entry(n, draw(st.sampled_from([b"a", b"b", b"c"])), draw(st.one_of(st.none(), st.binary(max_size=3))))
        for n in sorted(offsets)
    ]
    return Script(entries, end, draw(st.lists(st.integers(0, 5), max_size=20)))


def last_values(entries: Sequence[Entry], upto: int) -> dict[bytes, bytes | None]:
    return {entry.key: entry.value for entry in entries if entry.offset <= upto}


@given(script=scripts(), steps=st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=20))
def test_the_store_always_has_all_entries_up_to_its_offset(script: Script, steps: list[float]) -> None:
    rows, entries = Rows(), list(script.entries)
    wanted = BulkLoad(CHANGELOG, 0, script.end)
    asyncio.run(
        load(wanted, changelog=script, target=rows, current=lambda: True, loaded=rows.loaded, clock=Clock(steps))
    )
    assert rows.rows == last_values(entries, script.end)
    assert rows.offset == script.end - 1
    assert rows.reported == [offset for offset, _ in rows.history]
    for offset, then in rows.history:
        assert then == last_values(entries, offset)


async def test_the_store_gets_the_last_value_of_each_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_load, "HELD_BYTES", 4 * (bulk_load.ENTRY_BYTES + 1 + 100))
    script, rows = Script([Entry(n, b"k", b"%100d" % n) for n in range(10)], 10, [2] * 5), Rows()
    await load(
        BulkLoad(CHANGELOG, 0, 10),
        changelog=script,
        target=rows,
        current=lambda: True,
        loaded=rows.loaded,
        clock=Clock(),
    )
    assert rows.reported == [3, 7, 9], "as soon as four are held, and at the end"


async def test_slow_entries_are_written_after_a_second() -> None:
    script, rows = Script([Entry(n, b"k", b"%d" % n) for n in range(6)], 6, [1] * 6), Rows()
    clock = Clock([0.0] * 6 + [0.6] * 3)  # the last ones first
    await load(
        BulkLoad(CHANGELOG, 0, 6), changelog=script, target=rows, current=lambda: True, loaded=rows.loaded, clock=clock
    )
    assert rows.reported == [1, 5]


@pytest.mark.parametrize("place", range(4))
async def test_entries_read_for_an_older_assignment_are_not_written(place: int) -> None:
    """The partition is revoked while batch `place` is read."""
    script, rows = Script([Entry(n, b"k", b"%d" % n) for n in range(8)], 8, [2, 2, 2, 2]), Rows()
    ours = True

    class Rebalanced:
        async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Entry], int]:
            nonlocal ours
            ours = offset != 2 * place
            return await script.read(tp, offset, timeout)

    every_time = Clock([1.0] * 20)
    await load(
        BulkLoad(CHANGELOG, 0, 8),
        changelog=Rebalanced(),
        target=rows,
        current=lambda: ours,
        loaded=rows.loaded,
        clock=every_time,
    )
    assert rows.offset == 2 * place - 1
    assert rows.reported == [2 * n + 1 for n in range(place)]


# --------------------------------------------------------------------------- RocksDB
def table_in(folder: Path) -> DurableTable:
    app = stage_app(folder)
    app.conf.tabledir.mkdir(parents=True, exist_ok=True)
    return open_rows(app, "rows")._table


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=scripts())
def test_rocksdb_ends_up_with_the_same(script: Script, tmp_path_factory: pytest.TempPathFactory) -> None:
    async def run() -> None:
        table = table_in(tmp_path_factory.mktemp("rocks"))
        async with BulkWrites(table.data, 0) as target:
            await load(
                BulkLoad(CHANGELOG, 0, script.end),
                changelog=script,
                target=target,
                current=lambda: True,
                loaded=lambda offset: None,
            )
        found = dict(table.data._visible_items(table.data._db_for_partition(0)))
        assert found == {
            key: value for key, value in last_values(script.entries, script.end).items() if value is not None
        }
        assert table.persisted_offset(CHANGELOG) == (script.end - 1 if script.end else None)

    asyncio.run(run())


async def test_a_bulk_load_is_on_the_disk_when_it_ends_and_later_writes_have_their_log_again(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    async with BulkWrites(table.data, 0) as target:
        await target.put({b"k%d" % n: b"v" * 1000 for n in range(100)}, 99)
    logs = [path.stat().st_size for path in table.data.partition_path(0).glob("*.log")]
    assert sum(logs) == 0
    files = [path.stat().st_size for path in table.data.partition_path(0).glob("*.sst")]
    assert sum(files) > 0, "what has no log is in a file"
    db = table.data._db_for_partition(0)
    db.put(b"later", b"1")
    db.flush_wal(True)
    assert sum(path.stat().st_size for path in table.data.partition_path(0).glob("*.log")) > 0


# --------------------------------------------------------------------------- what an error means
@pytest.mark.parametrize("words", ["No space left on device", "File too large", "Disk quota exceeded"])
def test_a_full_disk_is_transient_and_names_the_folder(words: str, tmp_path: Path) -> None:
    with pytest.raises(Transient, match="no room") as raised, StoreErrors(table="rows", folder=tmp_path):
        raise Exception(f"IO error: {words}: While appending to file: 000004.log")
    assert raised.value.component == "tables"
    assert str(tmp_path) in raised.value.remedy


def test_any_other_error_of_the_store_is_fatal_and_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Fatal, match=f"{tmp_path}.*delete that folder"), StoreErrors(table="rows", folder=tmp_path):
        raise Exception("Corruption: block checksum mismatch")


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(KeyError), StoreErrors(table="rows", folder=tmp_path):
        raise KeyError("k")


@dataclass
class SlowDatabase:
    """A RocksDB whose write buffer is full and not in a file for some checks after each write."""

    full_for: int
    left: int = 0
    failed: bool = False
    waited_within: int = 0
    writes: list[int] = field(default_factory=list)
    """The thread of each write."""

    def property_int_value(self, name: str) -> int:
        if name == "rocksdb.background-errors":
            return int(self.failed)
        if name == "rocksdb.num-files-at-level0":
            return 0
        assert name == "rocksdb.num-immutable-mem-table"
        self.left = max(0, self.left - 1)
        return int(self.left > 0)

    def write(self, batch: object) -> None:
        self.waited_within += self.left > 0
        self.left = self.full_for
        self.writes.append(threading.get_ident())

    def flush(self, wait: bool = True) -> None: ...

    def set_write_options(self, options: object) -> None: ...


@dataclass
class SlowStore:
    database: SlowDatabase
    offset_key: bytes = b"offset"

    def _db_for_partition(self, partition: int) -> SlowDatabase:
        return self.database


async def test_no_write_waits_for_the_disk_within_the_database_or_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_writes, "WRITE_BYTES", 100)
    database = SlowDatabase(full_for=5)
    async with BulkWrites(SlowStore(database), 0) as target:
        await target.put({b"k%d" % n: b"v" * 60 for n in range(10)}, 9)
    assert len(database.writes) == 6, "two rows in each, and the offset"
    assert not database.waited_within
    assert threading.get_ident() not in database.writes


async def test_a_database_that_failed_is_not_waited_for() -> None:
    database = SlowDatabase(full_for=1_000_000, failed=True)
    async with BulkWrites(SlowStore(database), 0) as target:
        await target.put({b"k": b"v"}, 0)
        await target.put({b"k": b"v"}, 1)
    assert len(database.writes) == 2, "the second one gets the error"


async def test_the_offset_is_written_with_the_last_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_writes, "WRITE_BYTES", 100)
    table = table_in(tmp_path)
    rows = {b"k%02d" % n: b"v" * 60 for n in range(9)}
    async with BulkWrites(table.data, 0) as target:
        await target.put(rows, 8)
    assert dict(table.data._visible_items(table.data._db_for_partition(0))) == rows
    assert table.persisted_offset(CHANGELOG) == 8

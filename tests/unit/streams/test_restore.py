"""The bulk load and its store: the last value of each key, and an offset that is never ahead of the rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faust.types import TP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.schemas.errors import Fatal, Transient
from memstream.streams.restore import Load, load
from memstream.streams.restore_store import BulkWrites, StoreErrors
from memstream.streams.table import DurableTable, open_rows
from tests.support.faust_parts import stage_app

CHANGELOG = TP("memory-test-rows-changelog", 0)


@dataclass(frozen=True)
class Kept:
    offset: int
    key: bytes
    value: bytes | None


@dataclass
class Script:
    """A changelog with holes, read in batches of any size; sometimes nothing comes."""

    kept: Sequence[Kept]
    end: int
    batches: list[int] = field(default_factory=list)

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Kept], int]:
        size = self.batches.pop() if self.batches else 3
        found = [entry for entry in self.kept if entry.offset >= offset][:size]
        if size == 0:
            return [], offset
        return found, found[-1].offset + 1 if found else self.end


@dataclass
class Rows:
    """A store whose every state is remembered. `writes` is how often the loop runs before a batch is there."""

    writes: int = 0
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    offset: int = -1
    history: list[tuple[int, dict[bytes, bytes | None]]] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    _under_way: asyncio.Task[None] | None = None

    def put(self, entries: Sequence[Kept], offset: int) -> asyncio.Task[None]:
        assert self._under_way is None, "one batch at a time"
        self._under_way = asyncio.create_task(self._write(entries, offset))
        return self._under_way

    async def _write(self, entries: Sequence[Kept], offset: int) -> None:
        for _ in range(self.writes):
            await asyncio.sleep(0)
        self.rows.update({entry.key: entry.value for entry in entries})
        self.offset = offset
        self.history.append((offset, dict(self.rows)))
        self._under_way = None

    def loaded(self, offset: int) -> None:
        assert self.offset == offset, "only what is there"
        self.told.append(offset)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    end = draw(st.integers(0, 30))
    offsets = draw(st.sets(st.integers(0, max(0, end - 1)))) if end else set()
    kept = [
        Kept(n, draw(st.sampled_from([b"a", b"b", b"c"])), draw(st.one_of(st.none(), st.binary(max_size=3))))
        for n in sorted(offsets)
    ]
    return Script(kept, end, draw(st.lists(st.integers(0, 5), max_size=20)))


def folded(kept: Sequence[Kept], upto: int) -> dict[bytes, bytes | None]:
    return {entry.key: entry.value for entry in kept if entry.offset <= upto}


@given(script=scripts(), writes=st.integers(0, 3))
def test_whatever_the_batches_and_holes_the_store_always_has_all_up_to_its_offset(script: Script, writes: int) -> None:
    rows, kept = Rows(writes), list(script.kept)
    wanted = Load(CHANGELOG, 0, script.end)
    asyncio.run(load(wanted, changelog=script, target=rows, current=lambda: True, loaded=rows.loaded))
    assert rows.rows == folded(kept, script.end)
    assert rows.offset == script.end - 1
    assert rows.told == [offset for offset, _ in rows.history]
    for offset, then in rows.history:
        assert then == folded(kept, offset)


@pytest.mark.parametrize("place", range(4))
async def test_what_was_read_for_an_older_assignment_is_not_written(place: int) -> None:
    """The partition goes while its batch `place` is read, and the one before is written."""
    script, rows = Script([Kept(n, b"k", b"%d" % n) for n in range(8)], 8, [2, 2, 2, 2]), Rows(writes=2)
    ours = True

    class Rebalanced:
        async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Kept], int]:
            nonlocal ours
            ours = offset != 2 * place
            return await script.read(tp, offset, timeout)

    await load(Load(CHANGELOG, 0, 8), changelog=Rebalanced(), target=rows, current=lambda: ours, loaded=rows.loaded)
    assert rows.offset == 2 * place - 1, "what was begun is there when the load ends"
    assert rows.told == [2 * n + 1 for n in range(place - 1)], "but of a partition that is not ours nothing is told"


async def test_a_batch_is_fetched_while_the_one_before_is_written() -> None:
    script, rows = Script([Kept(n, b"k", b"%d" % n) for n in range(6)], 6, [2, 2, 2]), Rows(writes=5)
    seen: list[int] = []

    class Watched:
        async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Kept], int]:
            seen.append(rows.offset)
            return await script.read(tp, offset, timeout)

    await load(Load(CHANGELOG, 0, 6), changelog=Watched(), target=rows, current=lambda: True, loaded=rows.loaded)
    assert seen == [-1, -1, 1]
    assert rows.offset == 5


async def test_a_batch_that_cannot_be_written_ends_the_load() -> None:
    script, rows = Script([Kept(n, b"k", b"v") for n in range(6)], 6, [2, 2, 2]), Rows()
    begun: list[int] = []

    class Full:
        def put(self, entries: Sequence[Kept], offset: int) -> asyncio.Task[None]:
            begun.append(offset)
            return rows.put(entries, offset) if offset == 1 else asyncio.create_task(no_room())

    async def no_room() -> None:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        await load(Load(CHANGELOG, 0, 6), changelog=script, target=Full(), current=lambda: True, loaded=rows.loaded)
    assert (begun, rows.told) == ([1, 3], [1]), "nothing is written behind a hole"


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
        with BulkWrites(table.data, 0) as target:
            await load(
                Load(CHANGELOG, 0, script.end),
                changelog=script,
                target=target,
                current=lambda: True,
                loaded=lambda offset: None,
            )
        found = dict(table.data._visible_items(table.data._db_for_partition(0)))
        assert found == {key: value for key, value in folded(script.kept, script.end).items() if value is not None}
        assert table.persisted_offset(CHANGELOG) == (script.end - 1 if script.end else None)

    asyncio.run(run())


async def test_a_bulk_load_is_on_the_disk_when_it_ends_and_later_writes_have_their_log_again(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    with BulkWrites(table.data, 0) as target:
        await target.put([Kept(n, b"k%d" % n, b"v" * 1000) for n in range(100)], 99)
    logs = [path.stat().st_size for path in table.data.partition_path(0).glob("*.log")]
    assert sum(logs) == 0
    db = table.data._db_for_partition(0)
    db.put(b"later", b"1")
    db.flush_wal(True)
    assert sum(path.stat().st_size for path in table.data.partition_path(0).glob("*.log")) > 0


async def test_a_load_that_is_cut_off_leaves_what_it_began_on_the_disk(tmp_path: Path) -> None:
    """Behind the flush and without a log it would be lost in a crash, while rows that came later are not."""
    table = table_in(tmp_path)
    with BulkWrites(table.data, 0) as target:
        target.put([Kept(n, b"k%d" % n, b"v" * 100_000) for n in range(100)], 99)  # nobody waits for it
    assert table.persisted_offset(CHANGELOG) == 99
    files = sum(path.stat().st_size for path in table.data.partition_path(0).glob("*.sst"))
    assert files > 0


# --------------------------------------------------------------------------- what an error means
@pytest.mark.parametrize("words", ["No space left on device", "File too large", "Disk quota exceeded"])
def test_a_full_disk_passes_and_names_the_folder(words: str, tmp_path: Path) -> None:
    with pytest.raises(Transient, match="no room") as raised, StoreErrors(table="rows", folder=tmp_path):
        raise Exception(f"IO error: {words}: While appending to file: 000004.log")
    assert raised.value.component == "tables"
    assert str(tmp_path) in raised.value.remedy


def test_any_other_error_of_the_store_stops_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Fatal, match=f"{tmp_path}.*delete that folder"), StoreErrors(table="rows", folder=tmp_path):
        raise Exception("Corruption: block checksum mismatch")


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(KeyError), StoreErrors(table="rows", folder=tmp_path):
        raise KeyError("k")

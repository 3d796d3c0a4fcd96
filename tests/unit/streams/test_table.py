"""Durable rows on a real RocksDB, with a scripted producer. Each fault shows with Faust's own table."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka.errors import KafkaTimeoutError
from faust.exceptions import NotReady, ProducerSendError
from faust.types import TP

from memstream.schemas.errors import Fatal, Transient
from memstream.streams.engine.process_exit import UNREACHABLE, LeaseLost, exit_code_for
from memstream.streams.faust import table
from memstream.streams.faust.app import StageApp
from memstream.streams.faust.rocksdb_memory import BUFFERS
from memstream.streams.faust.table import (
    MAX_VALUE,
    DurableTable,
    RowTooLarge,
    TableRows,
    event_scope,
    open_rows,
)
from memstream.streams.log.markers import Marker
from tests.support.faust_fakes import ScriptedProducer, Sent, event, spin, stage_app
from tests.support.table_rows import all_rows

STOCK_FAILS = pytest.mark.xfail(strict=True, raises=AssertionError, reason="Faust's own class has the fault")
BOTH = [pytest.param(DurableTable, id="ours"), pytest.param(faust.Table, id="stock", marks=STOCK_FAILS)]


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    app = stage_app(tmp_path)
    app.conf.tabledir.mkdir(parents=True)
    app._producer = ScriptedProducer()
    return app


def sent(app: Any) -> list[Any]:
    return list(app._producer.sent)


async def begin(table: Any, key: str, value: bytes | None) -> asyncio.Future[None]:
    """Begin to write a row, with our table or with Faust's, and return the end of it. Raises what prevents it."""
    writing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if isinstance(table, DurableTable):
        writing = asyncio.ensure_future(table.write({key: value}))
        await spin()
        if writing.done():
            writing.result()
    else:
        if value is None:
            del table[key]
        else:
            table[key] = value
        writing.set_result(None)
    return writing


async def acknowledge(app: Any) -> None:
    """Let the broker acknowledge all sent records."""
    for offset, future in enumerate(sent(app)):
        if isinstance(future, Sent) and not future.done():
            future.deliver(offset)
    await spin()


async def put(app: Any, rows: TableRows, what: dict[str, bytes | None], partition: int = 0) -> None:
    here = event(app, partition=partition)
    with event_scope(here):
        writing = asyncio.create_task(rows.put(what))
        await spin()
        await acknowledge(app)
        await writing


# --------------------------------------------------------------------------- rows
async def test_rows_are_written_read_scanned_and_deleted(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"acme/u1/s1": b'{"n":1}', "acme/u1/s1/1": b"\x00\xff"})
    await put(app, rows, {"acme/u2/s1": b"other"}, partition=1)
    here = event(app)
    with event_scope(here):
        assert rows.row("acme/u1/s1") == b'{"n":1}'
        assert rows.row("acme/u2/s1") is None, "a row lies in the partition of its event"
    assert all_rows(rows, 0) == {"acme/u1/s1": b'{"n":1}', "acme/u1/s1/1": b"\x00\xff"}
    assert all_rows(rows, 1) == {"acme/u2/s1": b"other"}
    await put(app, rows, {"acme/u1/s1": None})
    assert all_rows(rows, 0) == {"acme/u1/s1/1": b"\x00\xff"}


async def test_rows_of_a_partition_come_in_pages(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "PAGE_ROWS", 2)
    monkeypatch.setattr(table, "PAGE_BYTES", 10)
    rows = open_rows(app, "rows")
    await put(app, rows, {"a/1": b"1", "a/2": b"2", "a/3": b"0123456789", "a/4": b"4", "b": b"5"})
    await put(app, rows, {"a/9": b"9"}, partition=1)
    assert rows.page(0) == [("a/1", b"1"), ("a/2", b"2")]
    assert rows.page(0, after="a/2") == [("a/3", b"0123456789")]
    assert rows.page(0, prefix="a/", after="a/3") == [("a/4", b"4")]
    assert rows.page(0, prefix="a/", after="a/4") == []
    assert rows.page(0, prefix="b") == [("b", b"5")]
    assert rows.page(1) == [("a/9", b"9")]


async def test_rows_of_a_partition_are_read_and_written_without_an_event(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    writing = asyncio.create_task(rows.put({"k": b"1"}, partition=1))
    await spin()
    assert rows.row("k", partition=1) == b"1", "before the changelog has it"
    assert rows.page(1) == [], "a page has what the changelog has"
    await acknowledge(app)
    await writing
    assert (rows.row("k", partition=1), rows.row("k", partition=0)) == (b"1", None)
    assert [entry.tp.partition for entry in sent(app)] == [1]


async def test_the_changelog_has_plain_keys_and_values(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"acme/é": b"1"})
    entry = sent(app)[0]
    assert (entry.key, entry.value, entry.tp) == ("acme/é".encode(), b"1", TP("memory-test-rows-changelog", 0))
    assert rows.changelog == "memory-test-rows-changelog"


async def test_a_deletion_is_sent_again_although_the_row_is_gone(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"k": b"1"})
    await put(app, rows, {"k": None})
    await put(app, rows, {"k": None})
    assert [entry.value for entry in sent(app)] == [b"1", None, None]


async def test_a_scan_does_not_show_the_persisted_offset(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"k": b"1"})
    assert rows._table.data.persisted_offset(TP(rows.changelog, 0)) == 0
    assert list(all_rows(rows, 0).items()) == [("k", b"1")]


async def test_an_event_scope_ends(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    here = event(app)
    with event_scope(here):
        pass
    with pytest.raises(TypeError, match="outside of stream"):
        await rows.put({"k": b"1"})


async def test_partitions_share_one_budget_of_memory(app: StageApp) -> None:
    store = open_rows(app, "rows")._table.data
    row = os.urandom(10_000)  # so that emptying takes its time: zeros are compressed to nothing
    most = 0
    for n in range(6_000):  # 60 MB
        store._db_for_partition(n % 12).put(b"%d" % n, row)
        most = max(most, store.rocksdb_options.buffered)
    assert most > BUFFERS / 2
    async with asyncio.timeout(20):  # what is being emptied still counts
        while store.rocksdb_options.buffered > BUFFERS:
            for n in range(12):  # RocksDB looks at the budget when something is written
                store._db_for_partition(n).put(b"later", b"1")
            await asyncio.sleep(0.05)


# --------------------------------------------------------------------------- 9: durable
async def test_put_returns_when_the_broker_has_the_rows(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    here = event(app)
    with event_scope(here):
        writing = asyncio.create_task(rows.put({"a": b"1", "b": b"2"}))
        await spin()
        assert not writing.done()
        assert len(sent(app)) == 2
        sent(app)[0].deliver()
        await spin()
        assert not writing.done()
        await acknowledge(app)
        await asyncio.wait_for(writing, 1)


@pytest.mark.parametrize("kind", BOTH)
async def test_a_failed_entry_reaches_the_handler(kind: Any, app: StageApp) -> None:
    table = kind(app, name="rows", key_type=str, value_type=bytes, partitions=2)
    here = event(app)
    with event_scope(here):
        writing = await begin(table, "k", b"1")
        sent(app)[0].set_exception(KafkaTimeoutError())
        outcome = await asyncio.gather(writing, return_exceptions=True)
    assert isinstance(outcome[0], Transient)
    assert outcome[0].component == "broker"


@pytest.mark.parametrize("refused", [KafkaTimeoutError(), ProducerSendError("no batch"), NotReady("it starts")])
async def test_an_entry_that_the_producer_does_not_take_is_transient(refused: Exception, app: StageApp) -> None:
    rows = open_rows(app, "rows")

    async def send(*_: Any) -> None:
        raise refused

    app._producer.send = send
    with event_scope(event(app)), pytest.raises(Transient) as raised:
        await rows.put({"k": b"1"})
    assert raised.value.component == "broker"
    with event_scope(event(app)):
        assert rows.row("k") == b"1", "it is to be written again, not decided again"


async def test_rows_of_a_partition_are_sent_in_the_order_of_the_calls(app: StageApp) -> None:
    """Also when the producer has no room for the first one: a deletion must not overtake what was written before it."""
    rows = open_rows(app, "rows")
    take, room = app._producer.send, asyncio.Event()

    async def send(topic: str, key: bytes, *rest: Any) -> Any:
        if key == b"a":
            await room.wait()
        return await take(topic, key, *rest)

    app._producer.send = send
    writing = [
        asyncio.create_task(rows.put({"a": b"1", "b": b"1"}, partition=0)),
        asyncio.create_task(rows.put({"b": None}, partition=0)),
        asyncio.create_task(rows.put({"c": b"1"}, partition=1)),
    ]
    await spin()
    assert [entry.key for entry in sent(app)] == [b"c"], "another partition does not wait"
    assert rows.row("b", partition=0) is None, "read from the call on"
    room.set()
    await spin()
    assert [(entry.key, entry.value) for entry in sent(app)[1:]] == [(b"a", b"1"), (b"b", b"1"), (b"b", None)]
    await acknowledge(app)
    await asyncio.gather(*writing)


async def test_cancelling_the_wait_does_not_cancel_the_entry(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    here = event(app)
    with event_scope(here):
        writing = asyncio.create_task(rows.put({"k": b"1"}))
        await spin()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    assert not sent(app)[0].cancelled()


async def test_writes_of_concurrent_handlers_are_kept_apart(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    one, two = event(app, partition=0), event(app, partition=1)

    async def handle(here: Any, key: str) -> None:
        with event_scope(here):
            await rows.put({key: b"1"})

    tasks = [asyncio.create_task(handle(one, "a")), asyncio.create_task(handle(two, "b"))]
    await spin()
    first, second = sent(app)
    assert (first.tp.partition, second.tp.partition) == (0, 1)
    second.deliver()
    await spin()
    assert [t.done() for t in tasks] == [False, True]
    await acknowledge(app)
    await asyncio.gather(*tasks)


# --------------------------------------------------------------------------- 15: size
@pytest.mark.parametrize("kind", BOTH)
async def test_a_value_that_the_changelog_would_not_take_is_never_sent(kind: Any, app: StageApp) -> None:
    table = kind(app, name="rows", key_type=str, value_type=bytes, partitions=2)
    here = event(app)
    with event_scope(here):
        with suppress(RowTooLarge):
            await begin(table, "k", b"x" * (MAX_VALUE + 1))
        assert sent(app) == []
        assert table.data.get("k") is None


async def test_one_row_that_is_too_large_prevents_all_writes(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    here = event(app)
    with event_scope(here), pytest.raises(RowTooLarge, match=f"rows.*'b'.*{MAX_VALUE}"):
        await rows.put({"a": b"1", "b": b"x" * (MAX_VALUE + 1)})
    assert sent(app) == []
    assert list(all_rows(rows, 0).items()) == []


async def test_the_largest_row_is_taken(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"k": b"x" * MAX_VALUE})
    assert len(all_rows(rows, 0)["k"]) == MAX_VALUE


# --------------------------------------------------------------------------- 7: a zombie writes nothing
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("action", ["set", "delete"])
async def test_without_the_lease_no_row_changes(kind: Any, action: str, app: StageApp) -> None:
    table = kind(app, name="rows", key_type=str, value_type=bytes, partitions=2)
    here = event(app)
    with event_scope(here):
        await begin(table, "k", b"old")
        await acknowledge(app)
        app.lease_ok = lambda: False  # type: ignore[method-assign]
        with suppress(LeaseLost):
            await begin(table, "k", b"new" if action == "set" else None)
        assert table.data.get("k") == b"old"
        assert len(sent(app)) == 1


# --------------------------------------------------------------------------- no row before the changelog has it
@pytest.mark.parametrize("kind", BOTH)
async def test_the_store_has_no_row_that_the_changelog_does_not_have(kind: Any, app: StageApp) -> None:
    """If the worker were killed now, its disk would have a row that the partition's next owner never gets."""
    table = kind(app, name="rows", key_type=str, value_type=bytes, partitions=2)
    here = event(app)
    with event_scope(here):
        await begin(table, "k", b"1")
        assert len(sent(app)) == 1
    assert table.data.get("k") is None


async def test_an_unacknowledged_row_is_read_by_its_redelivered_event(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"gone": b"1"})
    here = event(app)
    with event_scope(here):
        writing = asyncio.create_task(rows.put({"k": b"1", "gone": None}))
        await spin()
        assert (rows.row("k"), rows.row("gone")) == (b"1", None)
        sent(app)[1].set_exception(KafkaTimeoutError())
        await acknowledge(app)
        with pytest.raises(Transient):
            await writing
        assert (rows.row("k"), rows.row("gone")) == (b"1", None), "it is to be written again, not decided again"


async def test_rows_unacknowledged_at_a_rebalance_are_dropped(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"k": b"old"})
    here = event(app)
    with event_scope(here):
        writing = asyncio.create_task(rows.put({"k": b"new"}))
        await spin()
        await rows._table.on_rebalance(set(), set(), set(), 0)
        assert rows.row("k") == b"old"
        await acknowledge(app)  # too late for us: recovery reads it from the changelog, if nobody wrote after it
        await asyncio.wait_for(writing, 1)
        assert rows.row("k") == b"old"
    assert all_rows(rows, 0) == {"k": b"old"}
    assert rows._table.data.persisted_offset(TP(rows.changelog, 0)) == 0


async def test_rows_and_their_offsets_reach_the_store_in_the_order_of_the_changelog(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"a": b"1", "b": b"2", "a/1": b"3"})
    assert rows._table.data.persisted_offset(TP(rows.changelog, 0)) == 2
    assert len(rows._table.unacked_rows) == 0, "no acknowledged row stays in memory"
    assert rows._table.complete_at(0) > 0, "once a minute it is noted that the table has everything"


# --------------------------------------------------------------------------- recovery into the store
FULL = Exception("IO error: No space left on device: While appending to file: 000004.log")


async def test_the_store_has_the_marker_with_its_offset_or_neither(app: StageApp) -> None:
    """A worker that is killed in between must not find the offset alone: it would read no marker and report a loss."""
    table = open_rows(app, "rows")._table
    marker = Marker(identity="one", whole_from=0, written_at=0)
    found: list[tuple[int | None, Marker | None]] = []
    writing = asyncio.create_task(table.write_marker(0, marker))
    await spin()
    tp = TP(table.changelog_topic.get_topic_name(), 0)
    found.append((table.data.persisted_offset(tp), table.marker(0)))
    sent(app)[0].deliver()
    while not writing.done():
        found.append((table.data.persisted_offset(tp), table.marker(0)))
        await asyncio.sleep(0)
    found.append((table.data.persisted_offset(tp), table.marker(0)))
    assert set(found) == {(None, None), (0, marker)}


class FullDatabase:
    """A wrapper of a real RocksDB with a full disk. Reads still work."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def put(self, *_: Any) -> None:
        raise FULL

    write = put


def fill_the_disk(rows: TableRows) -> Callable[[], None]:
    """Make room again."""
    store = rows._table.data
    real = store._db_for_partition(0)
    store._dbs[0] = FullDatabase(real)
    return lambda: store._dbs.update({0: real})


async def test_entries_that_the_store_refuses_crash_the_worker(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = open_rows(app, "rows")

    def refuse(*_: Any, **__: Any) -> None:
        raise Exception("Corruption: bad block")

    monkeypatch.setattr(rows._table.data, "apply_changelog_batch", refuse)
    rows._table.apply_changelog_batch([])
    await spin()
    assert isinstance(app.crash_reason, Fatal)


async def test_a_full_disk_ends_the_worker_without_a_crash_count(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    fill_the_disk(rows)
    with pytest.raises(Transient, match=str(app.conf.tabledir)):
        await put(app, rows, {"k": b"1"})
    await spin()
    assert isinstance(app.crash_reason, Transient)
    assert exit_code_for(app.crash_reason) == UNREACHABLE
    assert "free some space" in app.crash_reason.remedy


async def test_no_offset_is_kept_for_a_row_that_the_store_did_not_take(app: StageApp) -> None:
    rows = open_rows(app, "rows")
    await put(app, rows, {"a": b"1"})
    make_room = fill_the_disk(rows)
    with pytest.raises(Transient):
        await put(app, rows, {"b": b"2"})  # the changelog has it, the local table has not
    make_room()
    assert rows._table.persisted_offset(TP(rows.changelog, 0)) == 0
    with event_scope(event(app)), pytest.raises(Transient, match="not used any more"):
        await rows.put({"c": b"3"})
    assert len(sent(app)) == 2


async def test_a_broken_store_does_not_count_as_a_crash_when_a_row_is_read(
    app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_rows(app, "rows")

    def refuse(*_: Any) -> None:
        raise Exception("Corruption: block checksum mismatch")

    monkeypatch.setattr(rows._table.data, "_db_for_partition", refuse)
    with event_scope(event(app)), pytest.raises(Transient):
        rows.row("k")
    await spin()
    assert isinstance(app.crash_reason, Fatal)
    assert str(app.conf.tabledir) in str(app.crash_reason)

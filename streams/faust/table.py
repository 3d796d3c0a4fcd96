"""Changelog-backed rows: what a stage remembers per key, durable before the event that changed it is acknowledged.

Faust sends a changelog entry and forgets it (`faust/tables/base.py:279`): a failed publish is only logged, and the
event is committed all the same. Here each future is collected while an event is handled, and awaited before going on.
"""

from __future__ import annotations

import asyncio
import shutil
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import ProducerSendError
from faust.stores.rocksdb import Store as RocksDBStore
from faust.streams import _current_event  # private, but the partition of a table write depends on it
from rocksdict import WriteBatch

from ...schemas.errors import Fatal, Transient
from .bulk_writes import StoreErrors
from .changelog_check import MARKER_KEY, OWN_KEYS, SEEN_KEY, WHOLE_KEY, Marker
from .rocksdb_memory import SharedMemoryOptions
from .unacked_rows import UnackedRow, UnackedRows

_OWN_KEYS = OWN_KEYS.encode()
#: bytes; well below the producer's largest request (4 MiB): a larger value would crash the worker at every restart
MAX_VALUE = 3 * 1024 * 1024
#: seconds between two notes of when the local table had everything
SEEN_EVERY = 60.0
#: entries applied to the local store at once in recovery; times MAX_VALUE that is the most it may hold in memory
RECOVERY_BUFFER = 100
#: what Faust takes of RocksDB's options per partition; its memory is that of store_memory.py
ROCKSDB_OPTIONS: Mapping[str, int] = {"target_file_size_base": 16 * 1024 * 1024, "max_open_files": 64}


class RowTooLarge(Fatal):
    """A row would be larger than the changelog takes; nothing was written."""


class Writes:
    """The changelog entries sent while one event was handled."""

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[Any]] = []

    def add(self, future: asyncio.Future[Any]) -> None:
        self._futures.append(future)

    async def durable(self) -> None:
        """Returns when the broker has every one of them.

        Raises:
            Transient: the broker refused one or did not take it in time; the handler may simply run again.
        """
        futures, self._futures = self._futures, []
        if not futures:
            return
        await asyncio.wait(futures)  # not gather: cancelling this must not cancel what is already on its way
        for error in [future.exception() for future in futures]:  # of all: asyncio logs what nobody has asked for
            if isinstance(error, KafkaError | ProducerSendError):
                raise Transient("broker", f"a changelog entry did not arrive: {error!r}") from error
            if error is not None:
                raise error


def _ended(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_writes: ContextVar[Writes | None] = ContextVar("memstream_writes", default=None)


@contextmanager
def collect_writes() -> Iterator[Writes]:
    """Collects the changelog entries of everything in this block: `with collect_writes() as w: …; await w.durable()`.

    Blocks may be nested; an entry belongs to the innermost one.
    """
    writes = Writes()
    token = _writes.set(writes)
    try:
        yield writes
    finally:
        _writes.reset(token)


@contextmanager
def event_scope(event: Any) -> Iterator[None]:
    """Makes `event` Faust's current event: a table write goes to the partition of that one.

    Faust keeps it as a weak reference; the caller keeps the event alive.
    """
    token = _current_event.set(weakref.ref(event))
    try:
        yield
    finally:
        _current_event.reset(token)


class DurableTable(faust.Table):
    """Keys are `str` (UTF-8 in the changelog), values raw `bytes`."""

    #: bytes
    max_value: int = MAX_VALUE
    #: Why the local store is not used any more. From then on no offset is kept either: it would be ahead of the rows.
    broken: BaseException | None = None
    _store_errors: StoreErrors | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seen: dict[int, float] = {}
        if self.key_type is str:
            self.key_serializer = "raw"  # Faust would wrap it as JSON, quotes and all
        self.on_the_way = UnackedRows()

    def _new_store(self) -> Any:
        store = super()._new_store()
        if isinstance(store, RocksDBStore):
            store.rocksdb_options = SharedMemoryOptions(**ROCKSDB_OPTIONS)
        return store

    def store_errors(self) -> StoreErrors:
        """Around calls of the local store."""
        if self._store_errors is None:  # Faust works the folder out anew each time it is asked: a tenth of an event
            self._store_errors = StoreErrors(table=self.name, folder=self.app.conf.tabledir)
        return self._store_errors

    def check_size(self, key: str, value: bytes) -> None:
        """Raises `RowTooLarge` for a value that the changelog would not take."""
        if len(value) > self.max_value:
            raise RowTooLarge(
                f"table {self.name}: the row of {key!r} would have {len(value)} bytes, more than {self.max_value}"
            )

    def __setitem__(self, key: str, value: bytes) -> None:
        self.write(key, value)

    def __delitem__(self, key: str) -> None:
        self.write(key, None)

    def write(self, key: str, value: bytes | None) -> None:
        """Hand a row of the current event's partition to the changelog; None deletes it. The local store gets it when
        the changelog has it (on_the_way.py), before `Writes.durable` returns.

        Raises:
            RowTooLarge: nothing was sent.
            LeaseLost: others may own the partition; nothing was sent.
            Transient: the local store does not work, the worker ends; nothing was sent.
        """
        if value is not None:
            self.check_size(key, value)
        self.check_store()
        partition = self.partition_for_key(key)
        assert partition is not None  # of the current event
        self.app.check_lease()  # a zombie changes nothing
        row = self.on_the_way.add(partition, key, value)
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future = self.changelog_topic.send_soon(
            key=key,
            value=value,
            partition=partition,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer if value is not None else "raw",
            callback=lambda sent: self._keep(row, sent.result().offset, kept),  # in the order of offsets
            eager_partitioning=True,
        )
        future.add_done_callback(lambda sent: _ended(kept))  # if it failed, `future` tells
        writes = _writes.get()
        if writes is not None:
            writes.add(future)
            writes.add(kept)

    def _keep(self, row: UnackedRow, offset: int, kept: asyncio.Future[None]) -> None:
        """The changelog has the row: so does the store, at once with the offset."""
        if not self.on_the_way.arrived(row):
            return
        batch = WriteBatch(raw_mode=True)
        if row.value is None:
            batch.delete(row.key.encode())
        else:
            batch.put(row.key.encode(), row.value)
        batch.put(self.data.offset_key, str(offset).encode())
        try:
            with self.local_store():
                self.data._db_for_partition(row.partition).write(batch)
                now = time.time()
                if now - self._seen.get(row.partition, 0.0) > SEEN_EVERY:
                    self.had_everything(row.partition, now)
        except Transient as error:
            kept.set_exception(error)

    def check_store(self) -> None:
        """Raises `Transient` when the local store is not used any more."""
        if self.broken is not None:
            raise Transient("tables", f"table {self.name} is not used any more: {self.broken}") from self.broken

    @contextmanager
    def local_store(self) -> Iterator[None]:
        """Around what handlers do with the local store. An error of it ends the worker, which commits nothing more, and
        is nobody's death: the event comes again where the store works. Raises `Transient`."""
        self.check_store()
        try:
            with self.store_errors():
                yield
        except (Transient, Fatal) as error:
            if error.__cause__ is None:  # not of the store: RowTooLarge
                raise
            self.broken = error
            self.app.add_future(self.app.crash(error))
            raise Transient("tables", str(error)) from error

    async def on_rebalance(self, *args: Any, **kwargs: Any) -> None:
        self.on_the_way.rebalanced()
        with self.store_errors():
            await super().on_rebalance(*args, **kwargs)

    def _on_changelog_sent(self, future: Any) -> None:
        # Of the marker alone: a row's offset is kept with the row.
        if self.broken is None:
            with suppress(Transient), self.local_store():
                super()._on_changelog_sent(future)

    def marker(self, partition: int) -> Marker | None:
        """The marker that the local table has read from its changelog."""
        return self._own(partition, MARKER_KEY)

    def was_whole(self, partition: int) -> bool:
        """Whether this local table was ever found whole; not so when its first load was cut off."""
        return self._own(partition, WHOLE_KEY) is not None

    def found_whole(self, partition: int, marker: Marker) -> None:
        """Remember it."""
        with self.store_errors():
            self.data._db_for_partition(partition).put(WHOLE_KEY.encode(), marker.to_bytes())

    def seen(self, partition: int) -> float:
        """When this local table last had everything; 0.0: it does not know."""
        with self.store_errors():
            raw = self.data._db_for_partition(partition).get(SEEN_KEY.encode())
        return 0.0 if raw is None else float(raw)

    def had_everything(self, partition: int, at: float) -> None:
        """Remember it."""
        with self.store_errors():
            self.data._db_for_partition(partition).put(SEEN_KEY.encode(), b"%.0f" % at)
        self._seen[partition] = at

    def forget(self, partition: int) -> None:
        """Delete the local table of a partition; the next load reads it from the start."""
        with self.store_errors():
            database = self.data._dbs.pop(partition, None)
            if database is not None:
                database.close()
            shutil.rmtree(self.data.partition_path(partition), ignore_errors=True)

    def _own(self, partition: int, key: str) -> Marker | None:
        with self.store_errors():
            return Marker.of(self.data._db_for_partition(partition).get(key.encode()))

    async def write_marker(self, partition: int, marker: Marker) -> None:
        """Durable in the changelog and here when it returns. Raises `Transient`, `LeaseLost`."""
        with collect_writes() as writes:
            self.send_changelog(partition, MARKER_KEY, marker.to_bytes())
            await writes.durable()
        with self.store_errors():
            self.data._db_for_partition(partition).put(MARKER_KEY.encode(), marker.to_bytes())

    def send_changelog(self, *args: Any, **kwargs: Any) -> Any:
        self.app.check_lease()  # a zombie changes nothing
        future = super().send_changelog(*args, **kwargs)
        writes = _writes.get()
        if writes is not None:  # None: written outside a handler, nobody to wait for it
            writes.add(future)
        return future

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        # For standbys. Faust logs what this raises and goes on with the next entry, its offset already counted: a hole
        # in the table. So the worker ends instead.
        with suppress(Transient), self.local_store():
            super().apply_changelog_batch(batch)


class TableRows:
    """The rows of one table as a stage uses them. Inside `event_scope`, except `scan`."""

    def __init__(self, table: DurableTable) -> None:
        self._table = table

    @property
    def changelog(self) -> str:
        """The changelog topic's name, `memory-<stage>-<table>-changelog`."""
        return str(self._table.changelog_topic_name)

    def row(self, key: str) -> bytes | None:
        """The row of `key` in the current event's partition."""
        sent = self._table.on_the_way.find(self._table.partition_for_key(key), key)
        if sent is not None:
            return sent.value
        with self._table.local_store():
            try:
                value = self._table.data[key]
            except KeyError:
                return None
        return bytes(value)

    async def put(self, rows: Mapping[str, bytes | None]) -> None:
        """Writes the rows in their order (None deletes) and returns when the changelog has them, and the local store.

        `row` finds them from the call on. After an error the changelog may have them: write the same rows again.

        Raises:
            RowTooLarge: one is too large; none was written.
            LeaseLost: this process may not own the partition any more; rows may have been written up to here.
            Transient: the broker did not take them; or the local store did not, and the worker ends.
        """
        for key, value in rows.items():
            if value is not None:
                self._table.check_size(key, value)
        with collect_writes() as writes:
            for key, value in rows.items():
                # A tombstone goes out whether or not the row is here: a repetition after a crash finds the local row
                # gone, and the tombstone perhaps never sent.
                self._table.write(key, value)
            await writes.durable()

    def scan(self, partition: int) -> Iterator[tuple[str, bytes]]:
        """Every row of one partition, by key. Exhaust or close it: an open iterator keeps the store's files open."""
        store = self._table.data
        for key, value in store._visible_items(store._db_for_partition(partition)):
            if not key.startswith(_OWN_KEYS):
                yield key.decode(), bytes(value)


def open_rows(app: faust.App, name: str) -> TableRows:
    """A table of `app`; call it before the app starts, once per name."""
    table = app.Table(
        name,
        key_type=str,
        value_type=bytes,
        partitions=app.conf.topic_partitions,
        recovery_buffer_size=RECOVERY_BUFFER,
    )
    return TableRows(table)

"""Changelog-backed rows: what a stage remembers per key, durable before the event that changed it is acknowledged.

Faust sends a changelog entry and forgets it (`faust/tables/base.py:279`): a failed publish is only logged, and the
event is committed all the same. Here each future is collected while an event is handled, and awaited before going on.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import ProducerSendError
from faust.streams import _current_event  # private, but the partition of a table write depends on it

from ..schemas.errors import Fatal, Transient

#: bytes; well below the producer's largest request (4 MiB): a larger value would crash the worker at every restart
MAX_VALUE = 3 * 1024 * 1024
#: entries applied to the local store at once in recovery; times MAX_VALUE that is the most it may hold in memory
RECOVERY_BUFFER = 100
#: RocksDB per partition (Faust's default is a block cache of 2 GiB per partition): 12 partitions stay below 200 MiB
ROCKSDB_OPTIONS: Mapping[str, int] = {
    "block_cache_size": 8 * 1024 * 1024,
    "write_buffer_size": 4 * 1024 * 1024,
    "max_write_buffer_number": 2,
    "target_file_size_base": 16 * 1024 * 1024,
    "max_open_files": 64,
}


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
        for future in futures:
            error = future.exception()
            if isinstance(error, KafkaError | ProducerSendError):
                raise Transient("broker", f"a changelog entry did not arrive: {error!r}") from error
            if error is not None:
                raise error


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.key_type is str:
            self.key_serializer = "raw"  # Faust would wrap it as JSON, quotes and all

    def check_size(self, key: str, value: bytes) -> None:
        """Raises `RowTooLarge` for a value that the changelog would not take."""
        if len(value) > self.max_value:
            raise RowTooLarge(
                f"table {self.name}: the row of {key!r} would have {len(value)} bytes, more than {self.max_value}"
            )

    def on_key_set(self, key: str, value: bytes) -> None:
        self.check_size(key, value)
        super().on_key_set(key, value)

    def send_changelog(self, *args: Any, **kwargs: Any) -> Any:
        self.app.check_lease()  # before the local value is set: a zombie changes nothing
        future = super().send_changelog(*args, **kwargs)
        writes = _writes.get()
        if writes is not None:  # None: written outside a handler, nobody to wait for it
            writes.add(future)
        return future

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        # Recovery logs what this raises and goes on with the next entry, its offset already counted: a hole in the
        # table. So the worker ends instead. (rocksdict raises plain `Exception`, hence no except clause.)
        applied = False
        try:
            super().apply_changelog_batch(batch)
            applied = True
        finally:
            if not applied:
                reason = Fatal(f"table {self.name}: the local store refused entries of the changelog")
                self.app.add_future(self.app.crash(reason))


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
        try:
            value = self._table.data[key]
        except KeyError:
            return None
        return bytes(value)

    async def put(self, rows: Mapping[str, bytes | None]) -> None:
        """Writes the rows in their order (None deletes) and returns when the changelog has them.

        A row is in the local store before the broker has it; so after an error write the same rows again.

        Raises:
            RowTooLarge: one is too large; none was written.
            LeaseLost: this process may not own the partition any more; rows may have been written up to here.
            Transient: the broker did not take them.
        """
        for key, value in rows.items():
            if value is not None:
                self._table.check_size(key, value)
        with collect_writes() as writes:
            for key, value in rows.items():
                if value is not None:
                    self._table[key] = value
                    continue
                # The changelog's tombstone goes out whether or not the row is here: a repetition after a crash finds
                # the local row gone and the tombstone perhaps never sent.
                self._table.on_key_del(key)
                with suppress(KeyError):
                    del self._table.data[key]
            await writes.durable()

    def scan(self, partition: int) -> Iterator[tuple[str, bytes]]:
        """Every row of one partition, by key. Exhaust or close it: an open iterator keeps the store's files open."""
        store = self._table.data
        for key, value in store._visible_items(store._db_for_partition(partition)):
            yield key.decode(), bytes(value)


def open_rows(app: faust.App, name: str) -> TableRows:
    """A table of `app`; call it before the app starts, once per name."""
    table = app.Table(
        name,
        key_type=str,
        value_type=bytes,
        partitions=app.conf.topic_partitions,
        recovery_buffer_size=RECOVERY_BUFFER,
        options=dict(ROCKSDB_OPTIONS),  # a copy: the store takes keys out of it
    )
    return TableRows(table)

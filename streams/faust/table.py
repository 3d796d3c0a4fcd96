"""Changelog-backed rows of a stage. A row is durable before the event that changed it is acknowledged.

Faust sends a changelog entry and does not wait for it (`faust/tables/base.py:279`). A failed send is only logged, and
the event is still committed. Here a write returns when the changelog has its rows, or raises.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import NotReady, ProducerSendError
from faust.streams import _current_event  # private, but the partition of a table write depends on it
from faust.types import RecordMetadata
from rocksdict import WriteBatch
from yarl import URL

from ...schemas.errors import Fatal, Poison, Transient
from ..log.markers import MARKER_KEY, OWN_KEYS, Marker, Range
from ..log.write_errors import row_error
from .bulk_writes import StoreErrors
from .changelog_check import COMPLETE_AT_KEY, WHOLE_KEY
from .partition_store import PartitionStore
from .rocksdb_memory import SharedMemoryOptions
from .unacked_rows import UnackedRow, UnackedRows

_OWN_KEYS = OWN_KEYS.encode()
#: maximum bytes of a row; well below the producer's largest request (4 MiB): a row that the producer refuses would
#: crash the worker after every restart
MAX_VALUE = 3 * 1024 * 1024
#: seconds between two writes of the time at which the local table was complete
NOTE_EVERY = 60.0
#: entries applied to the local store together in recovery; at most this number times MAX_VALUE bytes are in memory
RECOVERY_BUFFER = 100
#: maximum rows of a page, and bytes of values at which a page ends. The limits exist because reading a page blocks the
#: event loop
PAGE_ROWS = 256
PAGE_BYTES = 256 * 1024
#: RocksDB options that Faust sets for each partition; rocksdb_memory.py limits the memory
ROCKSDB_OPTIONS: Mapping[str, int] = {"target_file_size_base": 16 * 1024 * 1024, "max_open_files": 64}


class RowTooLarge(Poison):
    """A row is larger than the changelog accepts. Nothing was written, so the event can be refused."""

    def __init__(self, message: str) -> None:
        super().__init__("oversized", message)


class Writes:
    """The pending changelog entries of one write. An entry settles when changelog and local store have it, or fails."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._error: BaseException | None = None
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: BaseException | None = None) -> None:
        """Record that one entry is in the changelog and in the local store, or that it failed."""
        self._left -= 1
        self._error = self._error or error
        if not self._left and not self._settled.done():  # otherwise the waiter was cancelled
            self._settled.set_result(None)

    async def durable(self) -> None:
        """Wait until all entries have settled. Cancelling this wait does not cancel the sends.

        Raises:
            Transient: the broker did not accept an entry in time. The handler may run again.
            DeploymentFault: the broker permanently refuses an entry.
        """
        await self._settled
        if self._error is not None:
            raise self._error


@contextmanager
def event_scope(event: Any) -> Iterator[None]:
    """Make `event` Faust's current event, so that a table write goes to its partition.

    Faust keeps only a weak reference, so the caller must keep the event alive.
    """
    token = _current_event.set(weakref.ref(event))
    try:
        yield
    finally:
        _current_event.reset(token)


class DurableTable(faust.Table):
    """A Faust table with durable writes. Keys are `str` (UTF-8 in the changelog), values raw `bytes`."""

    #: bytes
    max_value: int = MAX_VALUE
    #: The error after which the local store is no longer used. After this error no offset is stored either, because
    #: the offset would be ahead of the rows.
    broken: BaseException | None = None
    _store_errors: StoreErrors | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete_at: dict[int, float] = {}
        self._sending = defaultdict[int, asyncio.Lock](asyncio.Lock)
        """One lock per partition, so that the rows of a partition are sent in the order of the calls."""
        if self.key_type is str:
            self.key_serializer = "raw"  # Faust would encode it as JSON, with quotes
        self.unacked_rows = UnackedRows()

    def _new_store_by_url(self, url: URL | str) -> Any:
        if URL(str(url)).scheme != "rocksdb":
            return super()._new_store_by_url(url)
        store = PartitionStore(
            url,
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            value_type=self.value_type,
            loop=self.loop,
            options=self.options,
        )
        store.rocksdb_options = SharedMemoryOptions(**ROCKSDB_OPTIONS)
        return store

    def store_errors(self) -> StoreErrors:
        """Return the context that translates errors of the local store."""
        if self._store_errors is None:  # cached: Faust computes the folder at each access, a tenth of an event's time
            self._store_errors = StoreErrors(table=self.name, folder=self.app.conf.tabledir)
        return self._store_errors

    def check_size(self, key: str, value: bytes) -> None:
        """Raise `RowTooLarge` for a value that the changelog would not accept."""
        if len(value) > self.max_value:
            raise RowTooLarge(
                f"table {self.name}: the row of {key!r} would have {len(value)} bytes, more than {self.max_value}"
            )

    def __setitem__(self, key: str, value: bytes) -> None:
        raise TypeError("Faust's write is not durable: use `write`")

    def __delitem__(self, key: str) -> None:
        raise TypeError("Faust's deletion is not durable: use `write`")

    async def write(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        """Send rows to the changelog in their order; None deletes. `partition` defaults to the current event's.

        Returns when the changelog and the local store have the rows. A row is written to the local store only when the
        changelog has it (unacked_rows.py). The rows go directly to the producer: with Faust's buffer, each row would
        pass through a queue, a task and four more layers.

        Raises:
            RowTooLarge: nothing was sent.
            LeaseLost: other workers may own the partition; some rows may have been sent.
            Transient: the disk has too little space, or the broker did not accept the rows. The caller must write the
                same rows again. It is also raised when the local store does not work; then the worker ends.
            DeploymentFault: the broker permanently refuses the rows.
        """
        for key, value in rows.items():
            if value is not None:
                self.check_size(key, value)
        if not rows:
            return
        if partition is None:
            partition = self.partition_for_key(None)
            assert partition is not None  # the current event has a partition
        self.check_store()
        self.app.check_lease()
        unacked = [self.unacked_rows.add(partition, key, value) for key, value in rows.items()]
        self.store_errors().check_room()  # after `add`: the rows are readable then, so a retry finds the decision
        writes = Writes(len(unacked))
        async with self._sending[partition]:  # a send waits when the producer's buffer is full
            for row in unacked:
                self.app.check_lease()
                sent = await self._send(row)
                sent.add_done_callback(partial(self._acknowledged, row, writes))  # called in the order of offsets
        await writes.durable()

    async def _send(self, row: UnackedRow) -> asyncio.Future[RecordMetadata]:
        try:
            return await self.app.producer.send(  # type: ignore[no-any-return]
                self.changelog_topic_name, row.key.encode(), row.value, row.partition, None, None
            )
        except (KafkaError, ProducerSendError, NotReady) as error:  # NotReady: the worker starts, or stops
            raise row_error(self.changelog_topic_name, error.__cause__ or error) from error

    def _acknowledged(self, row: UnackedRow, writes: Writes, sent: asyncio.Future[RecordMetadata]) -> None:
        error = sent.exception()
        if isinstance(error, KafkaError | ProducerSendError):
            error = row_error(self.changelog_topic_name, error.__cause__ or error)
        if error is None:
            try:
                self._store_row(row, sent.result().offset)
            except Transient as broken:
                error = broken
        writes.settle(error)

    def _store_row(self, row: UnackedRow, offset: int) -> None:
        """Write a row that the changelog has into the local store, atomically with its offset. Raises `Transient`."""
        if not self.unacked_rows.acknowledge(row):
            return
        batch = WriteBatch(raw_mode=True)
        if row.value is None:
            batch.delete(row.key.encode())
        else:
            batch.put(row.key.encode(), row.value)
        batch.put(self.data.offset_key, str(offset).encode())
        with self.local_store():
            self.data._db_for_partition(row.partition).write(batch)
            now = time.time()
            if now - self._complete_at.get(row.partition, 0.0) > NOTE_EVERY:
                self.note_complete(row.partition, now)

    def check_store(self) -> None:
        """Raise `Transient` when the local store is no longer used."""
        if self.broken is not None:
            raise Transient("tables", f"table {self.name} is not used any more: {self.broken}") from self.broken

    @contextmanager
    def local_store(self) -> Iterator[None]:
        """Context around a handler's call of the local store. Raises `Transient`.

        An error of the store ends the worker, which commits nothing more. The error does not count as a crash by the
        record: the record is redelivered to a worker with a working store.
        """
        self.check_store()
        try:
            with self.store_errors():
                yield
        except (Transient, Fatal) as error:
            if error.__cause__ is None:  # a translated error of the store always has a cause
                raise
            self.broken = error
            self.app.add_future(self.app.crash(error))
            raise Transient("tables", str(error)) from error

    async def on_rebalance(self, *args: Any, **kwargs: Any) -> None:
        self.unacked_rows.start_assignment()
        with self.store_errors():
            await super().on_rebalance(*args, **kwargs)

    def marker(self, partition: int) -> Marker | None:
        """Return the partition's marker in the local table, which has read it from the changelog."""
        return self._own(partition, MARKER_KEY)

    def was_whole(self, partition: int) -> bool:
        """Return whether this local table has ever passed the check of its changelog (changelog_check.py).

        False if the first load of the table was interrupted.
        """
        return self._own(partition, WHOLE_KEY) is not None

    def note_whole(self, partition: int, marker: Marker) -> None:
        """Record in the local store that this table has passed the check of its changelog."""
        with self.store_errors():
            self.data._db_for_partition(partition).put(WHOLE_KEY.encode(), marker.to_bytes())

    def complete_at(self, partition: int) -> float:
        """Return the time at which this local table was last complete; 0.0 if unknown."""
        with self.store_errors():
            raw = self.data._db_for_partition(partition).get(COMPLETE_AT_KEY.encode())
        return 0.0 if raw is None else float(raw)

    def note_complete(self, partition: int, at: float) -> None:
        """Record in the local store the time at which this table was complete."""
        with self.store_errors():
            self.data._db_for_partition(partition).put(COMPLETE_AT_KEY.encode(), b"%.0f" % at)
        self._complete_at[partition] = at

    async def forget(self, partition: int) -> None:
        """Delete the local table of a partition. The next load reads the changelog from its start."""
        with self.store_errors():
            await self.data.open_anew(partition)

    def _own(self, partition: int, key: str) -> Marker | None:
        with self.store_errors():
            return Marker.of(self.data._db_for_partition(partition).get(key.encode()))

    def written_until(self, partition: int) -> int:
        """Return the changelog offset after the last entry in the local store."""
        with self.store_errors():
            raw = self.data._db_for_partition(partition).get(self.data.offset_key)
        return 0 if raw is None else int(raw) + 1

    async def write_marker(self, partition: int, marker: Marker) -> None:
        """Write a marker durably, like a row: first to the changelog, then with its offset to the local store.

        Raises `Transient`, `LeaseLost`.
        """
        await self.write({MARKER_KEY: marker.to_bytes()}, partition=partition)

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        # Used for standbys. Faust logs an exception of this call and continues with the next entry. The offset has
        # already advanced, so an entry would be missing in the table. `local_store` therefore ends the worker.
        with suppress(Transient), self.local_store():
            super().apply_changelog_batch(batch)


class TableRows:
    """A stage's access to the rows of one table. Without a `partition`, a method needs an `event_scope`."""

    def __init__(self, table: DurableTable) -> None:
        self._table = table
        self._noting = asyncio.Lock()

    @property
    def changelog(self) -> str:
        """Return the name of the changelog topic, `memory-<stage>-<table>-changelog`."""
        return str(self._table.changelog_topic_name)

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        """Return the row of `key` in a partition, by default the current event's partition."""
        if partition is None:
            partition = self._table.partition_for_key(key)
        sent = self._table.unacked_rows.find(partition, key)
        if sent is not None:
            return sent.value
        with self._table.local_store():  # not through Faust's store: it remembers the partition of each key forever
            value: bytes | None = self._table.data._db_for_partition(partition).get(key.encode())
        return value

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        """Write rows in their order (None deletes). Return when the changelog and the local store have the rows.

        `row` returns the new values as soon as the call begins. After an error, some of the rows may be on the
        changelog: the caller must write the same rows again.

        Raises:
            RowTooLarge: one row is too large; no row was written.
            LeaseLost: other workers may own the partition; some rows may have been written.
            Transient: the broker did not accept the rows; or the local store failed, and the worker ends.
        """
        # A tombstone is sent even if the local store has no such row: after a crash the local row may be gone although
        # its tombstone was never sent.
        await self._table.write(rows, partition=partition)

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        """Return the offset of a source partition below which all events were applied at the last growth, or None.

        `partition`: the partition of the local table whose marker has recorded the growth.
        """
        marker = self._table.marker(partition)
        return None if marker is None else marker.applied_before(topic, source)

    def passed_over(self, topic: str, partition: int) -> Sequence[Range]:
        """Return the offset ranges of a source that the group passed over without handling their records."""
        marker = self._table.marker(partition)
        return () if marker is None else marker.passed_over(topic, partition)

    async def note_lost(self, topic: str, partition: int, lost: Range) -> None:
        """Record durably that the log lost these records before the group committed them. Raises as `put`."""
        async with self._noting:  # events of several topics may report losses in one partition
            marker = self._table.marker(partition)
            if marker is not None:
                at = self._table.written_until(partition)
                noted = marker.with_lost(topic, lost).model_copy(update={"written_at": at})
                await self._table.write_marker(partition, noted)

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        """Return the next rows of a partition: at most `PAGE_ROWS`, and no further row after `PAGE_BYTES` of values."""
        start, wanted = max(prefix, after + "\0" if after else ""), prefix.encode()
        found: list[tuple[str, bytes]] = []
        size = 0
        with self._table.local_store():
            store = self._table.data
            for key, value in store._db_for_partition(partition).items(from_key=start.encode()):
                if not key.startswith(wanted):
                    break
                if key == store.offset_key or key.startswith(_OWN_KEYS):
                    continue
                found.append((key.decode(), value))
                size += len(value)
                if len(found) == PAGE_ROWS or size >= PAGE_BYTES:
                    break
        return found


def open_rows(app: faust.App, name: str) -> TableRows:
    """Create a table of `app`. Call it once per name, before the app starts."""
    table = app.Table(
        name,
        key_type=str,
        value_type=bytes,
        partitions=app.conf.topic_partitions,
        recovery_buffer_size=RECOVERY_BUFFER,
    )
    return TableRows(table)

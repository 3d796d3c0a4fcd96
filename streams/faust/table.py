"""Changelog-backed rows of a stage. A row is durable before the event that changed it is acknowledged.

Faust sends a changelog entry and does not wait for it (`faust/tables/base.py:279`). A failed send is only logged, and
the event is committed nevertheless. Here a write returns when the changelog has its rows, or raises.
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
#: bytes; well below the producer's largest request (4 MiB): a larger value would crash the worker at every restart
MAX_VALUE = 3 * 1024 * 1024
#: seconds between two notes of the time at which the local table was complete
NOTE_EVERY = 60.0
#: entries applied to the local store at once in recovery; times MAX_VALUE, so many bytes at most lie in memory
RECOVERY_BUFFER = 100
#: rows of a page, and bytes of values after which it ends: a page is read in one go
PAGE_ROWS = 256
PAGE_BYTES = 256 * 1024
#: the options of RocksDB that Faust passes on for each partition; rocksdb_memory.py bounds the memory
ROCKSDB_OPTIONS: Mapping[str, int] = {"target_file_size_base": 16 * 1024 * 1024, "max_open_files": 64}


class RowTooLarge(Poison):
    """A row is larger than the changelog takes. Nothing was written, so the event is refused and nothing else."""

    def __init__(self, message: str) -> None:
        super().__init__("oversized", message)


class Writes:
    """The changelog entries of one write that are not in the changelog and the local store yet."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._error: BaseException | None = None
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: BaseException | None = None) -> None:
        """Note that one entry is in both, or that it failed."""
        self._left -= 1
        self._error = self._error or error
        if not self._left and not self._settled.done():  # else nobody waits any more
            self._settled.set_result(None)

    async def durable(self) -> None:
        """Wait until none is on its way. Cancelling this wait does not cancel the sends.

        Raises:
            Transient: the broker did not take one in time. The handler may run again.
            DeploymentFault: the broker will never take one.
        """
        await self._settled
        if self._error is not None:
            raise self._error


@contextmanager
def event_scope(event: Any) -> Iterator[None]:
    """Make `event` Faust's current event, so that a table write goes to its partition.

    Faust keeps a weak reference, so the caller keeps the event alive.
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
    #: The error after which the local store is not used any more. No offset is stored after it either: the offset would
    #: be ahead of the rows.
    broken: BaseException | None = None
    _store_errors: StoreErrors | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete_at: dict[int, float] = {}
        self._sending = defaultdict[int, asyncio.Lock](asyncio.Lock)
        """By partition: its rows are sent in the order of the calls."""
        if self.key_type is str:
            self.key_serializer = "raw"  # Faust would wrap it as JSON, quotes and all
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
        if self._store_errors is None:  # Faust computes the folder at each access, a tenth of an event's time
            self._store_errors = StoreErrors(table=self.name, folder=self.app.conf.tabledir)
        return self._store_errors

    def check_size(self, key: str, value: bytes) -> None:
        """Raises `RowTooLarge` for a value that the changelog would not take."""
        if len(value) > self.max_value:
            raise RowTooLarge(
                f"table {self.name}: the row of {key!r} would have {len(value)} bytes, more than {self.max_value}"
            )

    def __setitem__(self, key: str, value: bytes) -> None:
        raise TypeError("Faust's write is not durable: use `write`")

    def __delitem__(self, key: str) -> None:
        raise TypeError("Faust's deletion is not durable: use `write`")

    async def write(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        """Send rows to the changelog in their order; None deletes. `partition`: by default that of the current event.

        Returns when the changelog and the local store have them. The local store gets a row when the changelog has it
        (unacked_rows.py). The rows go straight to the producer: through Faust's buffer each would pass a queue, a task
        and four further layers.

        Raises:
            RowTooLarge: nothing was sent.
            LeaseLost: other workers may own the partition; some rows may have been sent.
            Transient: the disk has too little room, or the broker did not take them: write the same rows again. Or the
                local store does not work and the worker ends.
            DeploymentFault: the broker will never take them.
        """
        for key, value in rows.items():
            if value is not None:
                self.check_size(key, value)
        if not rows:
            return
        if partition is None:
            partition = self.partition_for_key(None)
            assert partition is not None  # of the current event
        self.check_store()
        self.app.check_lease()
        unacked = [self.unacked_rows.add(partition, key, value) for key, value in rows.items()]
        self.store_errors().check_room()  # after `add`: the decision is not made again
        writes = Writes(len(unacked))
        async with self._sending[partition]:  # a send waits when the producer has too much to send
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
        """Raise `Transient` when the local store is not used any more."""
        if self.broken is not None:
            raise Transient("tables", f"table {self.name} is not used any more: {self.broken}") from self.broken

    @contextmanager
    def local_store(self) -> Iterator[None]:
        """Surround the handlers' calls of the local store.

        An error of the store ends the worker, which commits nothing more. It does not count as a crash caused by the
        record, which is redelivered to a worker whose store works. Raises `Transient`.
        """
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
        self.unacked_rows.start_assignment()
        with self.store_errors():
            await super().on_rebalance(*args, **kwargs)

    def marker(self, partition: int) -> Marker | None:
        """Return the marker that the local table has read from its changelog."""
        return self._own(partition, MARKER_KEY)

    def was_whole(self, partition: int) -> bool:
        """Whether this local table was once found whole. It was not when its first load was cut off."""
        return self._own(partition, WHOLE_KEY) is not None

    def note_whole(self, partition: int, marker: Marker) -> None:
        """Note in the local store that this table was found whole."""
        with self.store_errors():
            self.data._db_for_partition(partition).put(WHOLE_KEY.encode(), marker.to_bytes())

    def complete_at(self, partition: int) -> float:
        """Return the time at which this local table was last complete; 0.0 where it is not known."""
        with self.store_errors():
            raw = self.data._db_for_partition(partition).get(COMPLETE_AT_KEY.encode())
        return 0.0 if raw is None else float(raw)

    def note_complete(self, partition: int, at: float) -> None:
        """Note in the local store the time at which this table was complete."""
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
        """Return the changelog's offset behind the last entry that the local store has."""
        with self.store_errors():
            raw = self.data._db_for_partition(partition).get(self.data.offset_key)
        return 0 if raw is None else int(raw) + 1

    async def write_marker(self, partition: int, marker: Marker) -> None:
        """Write a marker durably to the changelog, then with its offset to the local store, like a row.

        Raises `Transient`, `LeaseLost`.
        """
        await self.write({MARKER_KEY: marker.to_bytes()}, partition=partition)

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        # For standbys. Faust logs an exception of this call and goes on with the next entry. Its offset counts already,
        # so the table would have a hole. The worker ends instead.
        with suppress(Transient), self.local_store():
            super().apply_changelog_batch(batch)


class TableRows:
    """The rows of one table as a stage uses them. Without a `partition`, a method needs an `event_scope`."""

    def __init__(self, table: DurableTable) -> None:
        self._table = table
        self._noting = asyncio.Lock()

    @property
    def changelog(self) -> str:
        """Return the name of the changelog topic, `memory-<stage>-<table>-changelog`."""
        return str(self._table.changelog_topic_name)

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        """Read the row of `key` in a partition, by default the current event's."""
        if partition is None:
            partition = self._table.partition_for_key(key)
        sent = self._table.unacked_rows.find(partition, key)
        if sent is not None:
            return sent.value
        with self._table.local_store():  # not through Faust's store: it remembers the partition of each key for ever
            value: bytes | None = self._table.data._db_for_partition(partition).get(key.encode())
        return value

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        """Write rows in their order (None deletes). Return when the changelog and the local store have them.

        `row` reads them from the call on. After an error the changelog may have some of them: write the same rows
        again.

        Raises:
            RowTooLarge: one row is too large; none was written.
            LeaseLost: other workers may own the partition; some rows may have been written.
            Transient: the broker did not take them; or the local store did not, and the worker ends.
        """
        # A tombstone is sent whether or not the row is here: after a crash the local row may be gone although its
        # tombstone was never sent.
        await self._table.write(rows, partition=partition)

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        """Return the offset of a source partition below which everything was applied when rows were moved to
        `partition`."""
        marker = self._table.marker(partition)
        return None if marker is None else marker.applied_before(topic, source)

    def passed_over(self, topic: str, partition: int) -> Sequence[Range]:
        """Return the offsets of a source that the group has passed over without handling their records."""
        marker = self._table.marker(partition)
        return () if marker is None else marker.passed_over(topic, partition)

    async def note_lost(self, topic: str, partition: int, lost: Range) -> None:
        """Note durably that the log lost these records before the group had committed them. Raises as `put`."""
        async with self._noting:  # events of several topics may note losses in one partition
            marker = self._table.marker(partition)
            if marker is not None:
                at = self._table.written_until(partition)
                noted = marker.with_lost(topic, lost).model_copy(update={"written_at": at})
                await self._table.write_marker(partition, noted)

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        """Return the next rows of a partition, at most `PAGE_ROWS`, and no more after `PAGE_BYTES` of values."""
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

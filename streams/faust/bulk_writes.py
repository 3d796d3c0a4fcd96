"""Bulk writes into the local store of a table, and the translation of its errors.

The store is RocksDB (`rocksdict`) with one database per partition (`faust/stores/rocksdb.py`). `BulkWrites` differs
from Faust's `apply_changelog_batch` in two points. First, it writes the offset of the last entry together with that
entry, so that no crash leaves an offset ahead of its rows. Second, it writes without RocksDB's write-ahead log, which
halves the bytes written. After a crash, the store has the state of its last flush, and the load continues from the
offset in that state. `BulkWrites` flushes at its end, before any later write that uses the write-ahead log.

All calls of the store run in a thread. But `rocksdict` holds the GIL during a write, also while RocksDB makes the write
wait for the disk (two write buffers are full, or too many files are not merged yet). That wait would block the event
loop. So a write is limited in size, and begins only when RocksDB will not make it wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

import structlog
from rocksdict import WriteBatch, WriteOptions

from ...schemas.errors import Fatal, Transient
from ..log.disk_room import TABLES_ROOM, check_room
from .blocking_work import in_thread

log = structlog.get_logger(__name__)

#: System messages for a full disk (ENOSPC, EFBIG, EDQUOT) in RocksDB's errors.
NO_ROOM = ("No space left on device", "File too large", "Disk quota exceeded")
WRITE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values in one write, which takes forty milliseconds on an idle core. Each write becomes one file
and causes about three syncs of the disk. With writes of 512 KiB, a load took six times as long on a disk on which a
sync takes 0.3 s."""
FILES_MAX: Final = 16
"""Number of unmerged files from which no write begins. RocksDB slows writes down at 20."""
ROOM_WAIT: Final = 30.0
"""Maximum seconds that a write is delayed. After this time the write begins, although RocksDB may make it wait."""
ROOM_POLL: Final = 0.002
"""Seconds between two checks whether RocksDB would make a write wait."""


class Entry(Protocol):
    """A record of a changelog."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


def store_failed(error: BaseException, *, table: str, folder: Path) -> Transient | Fatal:
    """Translate an error of the local store: Transient for a full disk, Fatal for any other.

    With a full disk the worker ends without a commit. When space is free again, a restarted worker continues from the
    changelog.
    """
    if any(message in str(error) for message in NO_ROOM):
        return Transient(
            "tables",
            f"table {table}: no room under {folder}: {error}",
            remedy=f"free some space on the disk of {folder}; nothing is lost, the worker continues where it stopped",
        )
    return Fatal(
        f"table {table}: the local store under {folder} does not work: {error}; "
        "stop the worker, delete that folder, and start it again: the table is restored from its changelog"
    )


class StoreErrors:
    """A context around calls of the store: errors of RocksDB become `Transient` (no room) or `Fatal`."""

    def __init__(self, *, table: str, folder: Path) -> None:
        self._table, self._folder = table, folder

    def check_room(self) -> None:
        """Raise `Transient`, and log the error, when the disk has less room than `TABLES_ROOM`."""
        try:
            check_room("tables", self._folder, needed=TABLES_ROOM)
        except Transient as error:
            log.warning("table_write_failed", table=self._table, error=str(error), remedy=error.remedy)
            raise

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (type(error) is Exception or isinstance(error, OSError)):  # rocksdict: plain Exception
            raise store_failed(error, table=self._table, folder=self._folder) from error


class BulkWrites:
    """Bulk writes to one partition, within an `async with` block.

    Nothing else may write to the partition within the block. At the end of the block all rows are on the disk.
    """

    def __init__(self, store: Any, partition: int) -> None:
        self._db = store._db_for_partition(partition)
        self._offset_key: bytes = store.offset_key

    async def __aenter__(self) -> BulkWrites:
        without_log = WriteOptions()
        without_log.disable_wal = True
        self._db.set_write_options(without_log)
        return self

    async def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write rows (None deletes). The last write also stores `offset`, up to which the store is complete."""
        await in_thread(self._put, rows, offset)

    def _put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        batch, size = WriteBatch(raw_mode=True), 0
        for key, value in rows.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
                size += len(value)
            size += len(key)
            if size >= WRITE_BYTES:
                self._write(batch)
                batch, size = WriteBatch(raw_mode=True), 0
        batch.put(self._offset_key, str(offset).encode())
        self._write(batch)
        self._db.flush(wait=False)  # runs while the next rows are read

    def _write(self, batch: WriteBatch) -> None:
        self._wait_for_room()
        self._db.write(batch)

    def _wait_for_room(self) -> None:
        deadline = time.monotonic() + ROOM_WAIT
        while time.monotonic() < deadline and not self._db.property_int_value("rocksdb.background-errors"):
            full = self._db.property_int_value("rocksdb.num-immutable-mem-table")
            if not full and self._db.property_int_value("rocksdb.num-files-at-level0") < FILES_MAX:
                return
            time.sleep(ROOM_POLL)

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._end)

    def _end(self) -> None:
        self._db.set_write_options(WriteOptions())
        self._db.flush()

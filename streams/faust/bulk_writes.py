"""Bulk writes into the local store of a table, and the translation of its errors.

The store is RocksDB (`rocksdict`), one database a partition (`faust/stores/rocksdb.py`). There are two differences to
Faust's `apply_changelog_batch`. Entries and the offset that they reach are one atomic batch, so that no crash leaves an
offset ahead of its rows. And there is no write-ahead log, which halves the bytes written. Without it a crash takes the
store back to its last flush, rows and offset together. `BulkWrites` flushes at its end, before the next write that uses
the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rocksdict import WriteBatch, WriteOptions

from ...schemas.errors import Fatal, Transient

#: Messages of the system for a full disk (ENOSPC, EFBIG, EDQUOT), as RocksDB passes them on.
NO_ROOM = ("No space left on device", "File too large", "Disk quota exceeded")


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

    With a full disk the worker ends, and nothing was committed. A start with free space goes on from the changelog.
    """
    if any(message in str(error) for message in NO_ROOM):
        return Transient(
            "tables",
            f"table {table}: no room under {folder}: {error}",
            remedy=f"free some space on the disk of {folder}; nothing is lost, the worker goes on where it was",
        )
    return Fatal(
        f"table {table}: the local store under {folder} does not work: {error}; "
        "stop the worker, delete that folder, and start it again: the table is restored from its changelog"
    )


class StoreErrors:
    """A context around calls of the store: errors of RocksDB become `Transient` (no room) or `Fatal`."""

    def __init__(self, *, table: str, folder: Path) -> None:
        self._table, self._folder = table, folder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (type(error) is Exception or isinstance(error, OSError)):  # rocksdict: plain Exception
            raise store_failed(error, table=self._table, folder=self._folder) from error


class BulkWrites:
    """Bulk writes to one partition: `with BulkWrites(store, partition) as writes: writes.put(rows, offset)`.

    Nothing else may write to the partition within the block. At its end everything is on the disk.
    """

    def __init__(self, store: Any, partition: int) -> None:
        self._db = store._db_for_partition(partition)
        self._offset_key: bytes = store.offset_key

    def __enter__(self) -> BulkWrites:
        without_log = WriteOptions()
        without_log.disable_wal = True
        self._db.set_write_options(without_log)
        return self

    def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write rows (None deletes) and, with them, the offset up to which the store has everything."""
        batch = WriteBatch(raw_mode=True)
        for key, value in rows.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(self._offset_key, str(offset).encode())
        self._db.write(batch)

    def __exit__(self, *_: object) -> None:
        self._db.set_write_options(WriteOptions())
        self._db.flush()

"""Writing many entries into a table's local store at once, and what an error of that store means.

RocksDB by way of `rocksdict`, one database a partition (`faust/stores/rocksdb.py`). Two things are different from
Faust's `apply_changelog_batch`: entries and the offset that they reach are one atomic batch, so that no crash leaves
an offset ahead of its rows; and there is no write-ahead log, which halves what is written. Without one a crash takes
the store back to its last flush, rows and offset together, and `BulkWrites` flushes when it ends, before anything is
written with the log again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rocksdict import WriteBatch, WriteOptions

from ...schemas.errors import Fatal, Transient

#: What the system says when there is no room (ENOSPC, EFBIG, EDQUOT), as RocksDB passes it on.
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
    """What an error of the local store means. A full disk passes: the worker ends, nothing was committed, and a start
    with room goes on from the changelog."""
    if any(words in str(error) for words in NO_ROOM):
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
    """Around calls of the store: what RocksDB raises becomes `Transient` (no room) or `Fatal`, naming the folder."""

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
    """`with BulkWrites(store, partition) as writes: writes.put(rows, offset)`. Other writes to this partition wait
    until the block has ended; then everything is on the disk."""

    def __init__(self, store: Any, partition: int) -> None:
        self._db = store._db_for_partition(partition)
        self._offset_key: bytes = store.offset_key

    def __enter__(self) -> BulkWrites:
        without_log = WriteOptions()
        without_log.disable_wal = True
        self._db.set_write_options(without_log)
        return self

    def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        """These rows (None: deleted), and that the store now has everything up to `offset`."""
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

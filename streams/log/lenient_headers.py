r"""Reads Kafka records whose header names are not UTF-8, as any producer may write them: Kafka's broker never looks.

aiokafka's parser decodes the names strictly, inside the fetcher (`aiokafka/record/_crecords/default_records.pyx`), so
one such record ends every consumer that comes to it, again after each restart, before any code of ours has seen it.
Here its own fast parser goes first, untouched: a wrapper around each batch and each record took a third of a restore.
Where it gives up, the rest of what was fetched is read by aiokafka's slow one with names decoded leniently (`b"\xff"`
becomes `\xff` in four characters), and the record is a record like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
"""Bytes: a batch begins with its base offset; then its length, counted from behind itself."""
_MAGIC_AT = 16
_WITH_HEADERS = 2
"""The format ("magic") since which records have headers."""


class KeptRecords(MemoryRecords):  # type: ignore[misc,unused-ignore]
    """aiokafka's own parser of the batches that a broker sent for one partition, with the bytes that it was given."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data = data


class TolerantPartition(PartitionRecords):  # type: ignore[misc,unused-ignore]
    """The records of one partition as the fetcher takes them. As long as nothing is odd, all of it is aiokafka's."""

    _records: Any
    _records_iterator: Any
    _lenient = False

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._records_iterator)
            except StopIteration:
                self._records_iterator = None  # as aiokafka does: breaks a cycle
                raise
            except (UnicodeDecodeError, CorruptRecordException):  # the slow parser tells one by the other
                if self._lenient:
                    raise
                self._lenient = True
                self._records = _LenientRecords(self._records.data, behind=self.next_fetch_offset)
                self._records_iterator = self._unpack_records()  # passes over what was read of the batch


class _LenientRecords:
    """Like `MemoryRecords`, from the first batch on that reaches to `behind` or further."""

    def __init__(self, data: bytes, *, behind: int) -> None:
        self._data = data
        self._records = MemoryRecords(data)
        self._place = 0
        self._ahead: Any = self._parsed()
        while self._ahead is not None and self._ahead.next_offset <= behind:
            self._ahead = self._parsed()

    def has_next(self) -> bool:
        return self._ahead is not None

    def next_batch(self) -> Any:
        batch, self._ahead = self._ahead, self._parsed()
        return batch

    def _parsed(self) -> Any:
        batch = self._records.next_batch() if self._records.has_next() else None
        if batch is None:
            return None
        begin = self._place
        (length,) = _LENGTH.unpack_from(self._data, begin + _LENGTH_AT)
        self._place = begin + _LENGTH_AT + _LENGTH.size + length
        if self._data[begin + _MAGIC_AT] < _WITH_HEADERS or batch.is_control_batch:
            return batch
        return _LenientBatch(batch, memoryview(self._data)[begin : self._place])


class _LenientBatch:
    """Everything but the records is the batch's own."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        return _leniently(self._raw)


def _leniently(raw: memoryview) -> Iterator[Any]:
    """All records of a batch. Raises CorruptRecordException where more is wrong than a name."""
    batch: Any = _DefaultRecordBatchPy(raw)
    batch._maybe_uncompress()
    batch._buffer = _LenientBytes(batch._buffer)
    return iter(batch)


class _LenientBytes(bytearray):
    """Bytes whose every slice decodes: the parser's only `decode` is that of header names."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _LenientBytes(found) if isinstance(place, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return super().decode(encoding, "backslashreplace")


def read_odd_headers() -> None:
    """From now on every aiokafka consumer of this process reads them. The fetcher makes its parsers by these names and
    keeps the bytes to itself, so there is no object to wrap."""
    fetcher.MemoryRecords = KeptRecords
    fetcher.PartitionRecords = TolerantPartition

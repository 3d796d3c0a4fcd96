r"""Reads Kafka records whose header names are not UTF-8, as any producer may write them: Kafka's broker never looks.

aiokafka's parser decodes the names strictly, inside the fetcher (`aiokafka/record/_crecords/default_records.pyx`), so
one such record ends every consumer that comes to it, again after each restart, before any code of ours has seen it.
Here its own fast parser goes first. Where it gives up, the rest of that batch is read by aiokafka's slow one with names
decoded leniently (`b"\xff"` becomes `\xff` in four characters), and the record is a record like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
"""Bytes: a batch begins with its base offset; then its length, counted from behind itself."""
_MAGIC_AT = 16
_WITH_HEADERS = 2
"""The format ("magic") since which records have headers."""


class TolerantRecords:
    """`MemoryRecords` of aiokafka: the batches that a broker sent for one partition."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._records = MemoryRecords(data)
        self._place = 0

    def size_in_bytes(self) -> int:
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        if batch is None:
            return None
        begin = self._place
        (length,) = _LENGTH.unpack_from(self._data, begin + _LENGTH_AT)
        self._place = begin + _LENGTH_AT + _LENGTH.size + length
        if self._data[begin + _MAGIC_AT] < _WITH_HEADERS or batch.is_control_batch:
            return batch
        return _TolerantBatch(batch, memoryview(self._data)[begin : self._place])


class _TolerantBatch:
    """A batch that was parsed by nobody yet. Everything but the records is the batch's own."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        read = 0
        try:
            for record in self._batch:
                yield record
                read += 1
        except (UnicodeDecodeError, CorruptRecordException):  # the slow parser tells one by the other
            yield from islice(_leniently(self._raw), read, None)


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
    """From now on every aiokafka consumer of this process reads them. The fetcher makes its parsers by this name and
    keeps the bytes to itself, so there is no object to wrap."""
    fetcher.MemoryRecords = TolerantRecords

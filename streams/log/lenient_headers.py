r"""Lenient decoding of header names that are not UTF-8. Any producer can write such names: the broker does not check.

aiokafka's parser decodes header names strictly in the fetcher (`aiokafka/record/_crecords/default_records.pyx`). One
record with such a name stops every consumer that reaches the record, also after a restart, before our code gets the
record. Here aiokafka's fast parser runs first, unchanged, because a wrapper around each batch and record took a third
of a bulk load's time. When the fast parser fails, aiokafka's slow parser reads the rest of the fetch and decodes names
leniently (`b"\xff"` becomes the four characters `\xff`). The record is then handled like any other record.
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
from aiokafka.record.util import decode_varint_py

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
"""Byte position of the length field of a batch. The field counts the bytes that follow it."""
_MAGIC_AT = 16
_WITH_HEADERS = 2
"""Number ("magic") of the first record format that has headers."""


class RawRecords(MemoryRecords):  # type: ignore[misc,unused-ignore]
    """aiokafka's parser of one partition's batches, with a reference to the raw bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data = data


class TolerantPartition(PartitionRecords):  # type: ignore[misc,unused-ignore]
    """The records of one partition for the fetcher. The lenient parser takes over at a name that is not UTF-8."""

    _records: Any
    _records_iterator: Any
    _lenient = False

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._records_iterator)
            except StopIteration:
                self._records_iterator = None  # as in aiokafka: breaks a reference cycle
                raise
            # aiokafka's slow parser raises CorruptRecordException from UnicodeDecodeError.
            except (UnicodeDecodeError, CorruptRecordException):
                if self._lenient:
                    raise
                self._lenient = True
                self._records = _LenientRecords(self._records.data, behind=self.next_fetch_offset)
                self._records_iterator = self._unpack_records()  # skips the records that were already read


class _LenientRecords:
    """A lenient `MemoryRecords`. It skips batches that end before offset `behind`."""

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
    """A batch of aiokafka with leniently decoded records."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        return _leniently(self._raw)


class _CheckedBatch(_DefaultRecordBatchPy):  # type: ignore[misc,unused-ignore]
    """aiokafka's slow parser with bounds checks.

    aiokafka's compiled `decode_varint` reads past the end of a batch that claims more records than it contains. This
    can crash the process.
    """

    def _read_msg(self) -> Any:
        return super()._read_msg(decode_varint=decode_varint_py)


def _leniently(raw: memoryview) -> Iterator[Any]:
    """Iterate over the records of a batch. Raises CorruptRecordException when other data than a name is invalid."""
    batch: Any = _CheckedBatch(raw)
    batch._maybe_uncompress()
    batch._buffer = _LenientBytes(batch._buffer)
    return iter(batch)


class _LenientBytes(bytearray):
    """Bytes whose slices decode leniently. The parser decodes only header names."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _LenientBytes(found) if isinstance(place, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return super().decode(encoding, "backslashreplace")


def decode_headers_leniently() -> None:
    """Make every aiokafka consumer of this process decode header names leniently.

    This replaces two names in aiokafka's fetcher module. The fetcher creates its parsers itself, so there is no object
    to wrap.
    """
    fetcher.MemoryRecords = RawRecords
    fetcher.PartitionRecords = TolerantPartition

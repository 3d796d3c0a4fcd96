"""Batches as a broker sends them, with header names that are not UTF-8, against aiokafka's own reader and ours."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from memstream.streams.log.lenient_headers import RawRecords, TolerantPartition, decode_headers_leniently
from tests.support.raw_records import GZIP, NONE, Odd, batch_of

GOOD: Odd = (b"k", b"good", [(b"ce_id", b"1"), (b"empty", None)])
ODD: Odd = (b"k", b"odd", [(b"\xff\xfe", b"x"), (b"r\xe9sum\xe9", None), (b"ce_id", b"2")])
NAMES = [r"\xff\xfe", r"r\xe9sum\xe9", "ce_id"]


def fetched(data: bytes, *, partition: Any = TolerantPartition, records: Any = RawRecords, offset: int = 0) -> Any:
    """Return the records as the fetcher returns them, one by one, from `offset` on."""
    return partition(
        TopicPartition("t", 0),
        records(data),
        aborted_transactions=[],
        fetch_offset=offset,
        key_deserializer=None,
        value_deserializer=None,
        check_crcs=True,
        isolation_level=READ_COMMITTED,
    )


def shown(records: list[Any]) -> list[tuple[int, bytes, list[str]]]:
    return [(each.offset, each.value, [name for name, _ in each.headers]) for each in records]


def test_aiokafka_itself_stops_at_such_a_name() -> None:
    """When this fails, lenient_headers.py can be removed."""
    with pytest.raises((UnicodeDecodeError, CorruptRecordException)):
        list(fetched(batch_of([GOOD, ODD]), partition=PartitionRecords, records=MemoryRecords))


@pytest.mark.parametrize("compression", [NONE, GZIP])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_an_odd_name_is_escaped_and_its_neighbours_are_read_once(place: int, compression: int) -> None:
    records = [GOOD] * 5
    records[place] = ODD
    found = list(fetched(batch_of(records, compression=compression)))
    names = [["ce_id", "empty"]] * 5
    names[place] = NAMES
    assert shown(found) == [(n, records[n][1], names[n]) for n in range(5)]
    assert found[place].headers == ((NAMES[0], b"x"), (NAMES[1], None), ("ce_id", b"2"))
    assert all(each.key == b"k" and each.timestamp > 0 for each in found)


def numbered(batches: list[list[Odd]], compression: int = NONE, *, wanted: int = 0) -> bytes:
    """Build batches with consecutive offsets, from the batch with offset `wanted` on."""
    data, offset = b"", 0
    for records in batches:
        batch = bytearray(batch_of(records, compression=compression))
        struct.pack_into(">q", batch, 0, offset)  # not under the checksum: a broker sets it
        offset += len(records)
        data += bytes(batch) if offset > wanted else b""
    return data


@pytest.mark.parametrize("compression", [NONE, GZIP])
@pytest.mark.parametrize("offset", range(7))
def test_several_batches_and_one_that_is_cut_off(offset: int, compression: int) -> None:
    data = numbered([[GOOD, GOOD], [ODD], [GOOD, ODD], [GOOD], [ODD]], compression, wanted=offset)
    reading = fetched(data + batch_of([GOOD])[:-1], offset=offset)  # a fetch ends in the middle of a batch
    found = [(each.offset, each.value) for each in reading]
    values = [b"good", b"good", b"odd", b"good", b"odd", b"good", b"odd"]
    assert found == list(enumerate(values))[offset:]
    assert reading.next_fetch_offset == 7


def test_records_with_utf8_names_are_read_by_aiokafka_alone() -> None:
    data = numbered([[GOOD, GOOD], [GOOD]])
    reading = fetched(data)
    assert len(list(reading)) == 3
    assert isinstance(reading._records, MemoryRecords)
    assert reading._records.size_in_bytes() == len(data)


def test_a_record_that_is_corrupt_stays_an_error() -> None:
    data = bytearray(batch_of([GOOD, ODD, GOOD]))
    struct.pack_into(">i", data, 57, 9)  # more records than there are
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    reading = fetched(bytes(data))
    assert [next(reading).value for _ in range(3)] == [b"good", b"odd", b"good"]
    with pytest.raises(CorruptRecordException):
        next(reading)


def test_a_batch_whose_checksum_is_wrong_stays_an_error() -> None:
    data = bytearray(numbered([[GOOD], [ODD, GOOD]]))
    data[-1] ^= 1
    reading = fetched(bytes(data))
    assert next(reading).value == b"good"
    with pytest.raises(CorruptRecordException):
        next(reading)
    assert reading.next_fetch_offset == 1


def test_every_consumer_of_the_process_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "MemoryRecords", MemoryRecords)
    monkeypatch.setattr(fetcher, "PartitionRecords", PartitionRecords)
    decode_headers_leniently()
    decode_headers_leniently()
    assert fetcher.MemoryRecords is RawRecords
    assert fetcher.PartitionRecords is TolerantPartition

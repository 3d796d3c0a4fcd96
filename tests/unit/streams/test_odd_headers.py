"""Batches as a broker sends them, with header names that are not UTF-8, against aiokafka's own reader and ours."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords

from memstream.streams.transports.odd_headers import TolerantRecords, read_odd_headers
from tests.support.odd_records import GZIP, NONE, Odd, batch_of

GOOD: Odd = (b"k", b"good", [(b"ce_id", b"1"), (b"empty", None)])
ODD: Odd = (b"k", b"odd", [(b"\xff\xfe", b"x"), (b"r\xe9sum\xe9", None), (b"ce_id", b"2")])
NAMES = [r"\xff\xfe", r"r\xe9sum\xe9", "ce_id"]


def read(records: Any) -> list[Any]:
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        found += list(batch)
    return found


def shown(records: list[Any]) -> list[tuple[int, bytes, list[str]]]:
    return [(each.offset, each.value, [name for name, _ in each.headers]) for each in records]


def test_aiokafka_itself_stops_at_such_a_name() -> None:
    """When it no longer does, odd_headers.py can go."""
    with pytest.raises((UnicodeDecodeError, CorruptRecordException)):
        read(MemoryRecords(batch_of([GOOD, ODD])))


@pytest.mark.parametrize("compression", [NONE, GZIP])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_an_odd_name_is_escaped_and_its_neighbours_are_read_once(place: int, compression: int) -> None:
    records = [GOOD] * 5
    records[place] = ODD
    found = read(TolerantRecords(batch_of(records, compression=compression)))
    names = [["ce_id", "empty"]] * 5
    names[place] = NAMES
    assert shown(found) == [(n, records[n][1], names[n]) for n in range(5)]
    assert found[place].headers == [(NAMES[0], b"x"), (NAMES[1], None), ("ce_id", b"2")]
    assert all(each.key == b"k" and each.timestamp > 0 for each in found)


def test_several_batches_and_one_that_is_cut_off() -> None:
    batches = [batch_of([GOOD, GOOD]), batch_of([ODD]), batch_of([GOOD, ODD], compression=GZIP), batch_of([GOOD])]
    data = b"".join(batches) + batch_of([GOOD])[:-1]  # a fetch ends in the middle of a batch
    records = TolerantRecords(data)
    assert records.size_in_bytes() == MemoryRecords(data).size_in_bytes()
    assert [value for _, value, _ in shown(read(records))] == [b"good", b"good", b"odd", b"good", b"odd", b"good"]


def test_what_is_asked_of_a_batch_is_answered_by_aiokafka() -> None:
    data = batch_of([GOOD, ODD])
    ours, theirs = TolerantRecords(data).next_batch(), MemoryRecords(data).next_batch()
    for name in ("base_offset", "next_offset", "producer_id", "is_transactional", "is_control_batch"):
        assert getattr(ours, name) == getattr(theirs, name)


def test_a_record_that_is_corrupt_stays_an_error() -> None:
    data = bytearray(batch_of([GOOD, ODD, GOOD]))
    struct.pack_into(">i", data, 57, 9)  # more records than there are
    found = iter(TolerantRecords(bytes(data)).next_batch())
    assert [next(found).value for _ in range(3)] == [b"good", b"odd", b"good"]
    with pytest.raises(CorruptRecordException):
        next(found)


def test_every_consumer_of_the_process_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "MemoryRecords", MemoryRecords)
    read_odd_headers()
    read_odd_headers()
    assert fetcher.MemoryRecords is TolerantRecords

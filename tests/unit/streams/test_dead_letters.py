"""Dead letters: the raw refused record, and headers as other tools expect them, byte for byte."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import Poison
from memstream.streams.engine.dead_letters import HEAD_BYTES, WHOLE_MAX_BYTES, dead_letter
from memstream.streams.log.port import Headers, Position, Record

MIB = 1024 * 1024


def record(value: bytes | None, *, key: bytes | None = b"acme/u1/s1", headers: Headers = ()) -> Record:
    return Record(Position("memory.turns", 11, 4711), key, value, headers, 1_763_632_800_123)


def dead_letter_of(refused: Record, error: BaseException | None = None, **fields: object):  # type: ignore[no-untyped-def]
    options = {"stage": "observer", "reason": "invalid", "attempts": 1} | fields
    return dead_letter(refused, error=error or Poison("invalid", "no"), **options)  # type: ignore[arg-type]


def test_every_header_byte_for_byte() -> None:
    refused = record(json.dumps({"tenant_id": "acme", "x": 1}).encode(), headers=(("trace", b"\x00\xff"),))
    letter = dead_letter_of(refused, Poison("invalid", "user_id: Field required"))
    assert letter.topic == "memory.turns.dlq"
    assert (letter.key, letter.value) == (refused.key, refused.value)
    assert letter.headers == (
        ("trace", b"\x00\xff"),
        ("kafka_dlt-original-topic", b"memory.turns"),
        ("kafka_dlt-original-partition", b"11"),
        ("kafka_dlt-original-offset", b"4711"),
        ("kafka_dlt-original-timestamp", b"1763632800123"),
        ("kafka_dlt-original-consumer-group", b"memory-observer"),
        ("kafka_dlt-exception-fqcn", b"memstream.schemas.errors.Poison"),
        ("kafka_dlt-exception-message", b"user_id: Field required"),
        ("memstream-stage", b"observer"),
        ("memstream-attempts", b"1"),
        ("memstream-reason", b"invalid"),
        ("memstream-tenant", b"acme"),
    )


def test_the_exception_is_the_cause_of_the_poison() -> None:
    poison = Poison("fatal", "KeyError: 'x'")
    poison.__cause__ = KeyError("x")
    headers = dict(dead_letter_of(record(b"{}"), poison, reason="fatal", attempts=3).headers)
    assert headers["kafka_dlt-exception-fqcn"] == b"builtins.KeyError"
    assert headers["kafka_dlt-exception-message"] == b"'x'"
    assert headers["memstream-reason"] == b"fatal"
    assert headers["memstream-attempts"] == b"3"


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b'{"tenant_id": 7}'])
def test_the_tenant_is_left_out_when_it_cannot_be_read(value: bytes | None) -> None:
    letter = dead_letter_of(record(value))
    assert "memstream-tenant" not in dict(letter.headers)
    assert letter.value == value, "a null stays a null"


def test_a_null_key_stays_null() -> None:
    assert dead_letter_of(record(b"x", key=None)).key is None


def test_up_to_a_mebibyte_the_value_is_whole() -> None:
    value = b"x" * MIB
    letter = dead_letter_of(record(value))
    assert letter.value == value
    assert "memstream-value-sha256" not in dict(letter.headers)


def test_beyond_a_mebibyte_the_first_64_kib_and_the_hash_are_kept() -> None:
    value = bytes(range(256)) * (MIB // 256) + b"!"
    letter = dead_letter_of(record(value))
    assert letter.value == value[: 64 * 1024]
    headers = dict(letter.headers)
    assert headers["memstream-value-sha256"] == hashlib.sha256(value).hexdigest().encode()
    assert headers["memstream-value-bytes"] == b"1048577"


def test_a_key_beyond_a_mebibyte_is_cut_alike() -> None:
    key = b"k" * (MIB + 1)
    letter = dead_letter_of(record(b"v", key=key))
    assert letter.key == key[:HEAD_BYTES]
    assert dict(letter.headers)["memstream-key-sha256"] == hashlib.sha256(key).hexdigest().encode()


def test_headers_that_would_not_fit_are_left_out() -> None:
    letter = dead_letter_of(record(b"v", headers=(("a", b"x" * MIB),)))
    assert "a" not in dict(letter.headers)
    letter = dead_letter_of(record(b"v", headers=(("a", b"x" * (MIB - 1)),)))
    assert "a" in dict(letter.headers)


@given(
    st.none() | st.binary(max_size=50),
    st.none() | st.binary(max_size=50),
    st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.binary(max_size=9)), max_size=3),
    st.text(),
)
def test_every_record_can_become_a_dead_letter(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]], message: str
) -> None:
    letter = dead_letter_of(record(value, key=key, headers=tuple(headers)), Poison("invalid", message))
    assert (letter.key, letter.value) == (key, value)
    assert letter.headers[: len(headers)] == tuple(headers)
    assert len(dict(letter.headers)["kafka_dlt-exception-message"]) <= 4_000
    letter.model_dump_json()  # it may be part of an outcome


def test_the_largest_dead_letter_fits_into_its_topic() -> None:
    refused = record(b"v" * WHOLE_MAX_BYTES, key=b"k" * WHOLE_MAX_BYTES, headers=(("h", b"h" * (MIB - 1)),))
    letter = dead_letter_of(refused, Poison("invalid", "😀" * 5_000))
    size = len(letter.key) + len(letter.value) + sum(len(name) + len(raw) for name, raw in letter.headers)
    assert size < 4 * MIB - 64 * 1024

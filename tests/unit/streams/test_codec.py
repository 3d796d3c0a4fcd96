"""Decoding of hostile bytes: they raise Poison with the right reason, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.base import Contract
from memstream.schemas.commands import Command
from memstream.schemas.episodes import EpisodesRecorded
from memstream.schemas.errors import Poison
from memstream.schemas.observations import Observed
from memstream.schemas.turns import Turn
from memstream.streams.engine.codec import RECORD_MAX_BYTES, decode, decode_turn_value, lane_key, tenant_of
from memstream.streams.log.port import Position, Record

CONTRACTS: tuple[type[Contract], ...] = (Turn, Command, Observed, EpisodesRecorded)
LEAST: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s1",
    "turn_id": "t1",
    "messages": [{"role": "user", "content": "hello"}],
}


def record(value: bytes | None, *, headers: tuple[tuple[str, bytes], ...] = (), key: bytes | None = b"k") -> Record:
    return Record(Position("memory.turns", 0, 7), key, value, headers, 1_700_000_000_000)


def with_content(content: str) -> bytes:
    """Build a turn with this raw JSON as content."""
    fields = {name: value for name, value in LEAST.items() if name != "messages"}
    head = json.dumps(fields)[:-1]
    return f'{head}, "messages": [{{"role": "user", "content": {content}}}]}}'.encode("utf-8", "surrogatepass")


def decoded(raw: Record, contract: type[Contract], *, max_bytes: int = RECORD_MAX_BYTES) -> Contract:
    """Decode a record as its stage does: a turn in every form in which producers send it."""
    if contract is Turn:
        return decode_turn_value(raw, max_bytes=max_bytes).turn
    return decode(raw, contract, max_bytes=max_bytes)


def turn_of(value: bytes, **more: Any) -> Turn:
    found = decoded(record(value, **more), Turn)
    assert isinstance(found, Turn)
    return found


def refused(value: bytes | None, **more: Any) -> Poison:
    with pytest.raises(Poison) as caught:
        decoded(record(value, **more), Turn)
    return caught.value


def reason_of(hostile: Record, contract: type[Contract]) -> str | None:
    """Return the reason of the refusal, None for a decoded record."""
    try:
        assert isinstance(decoded(hostile, contract), contract)
    except Poison as poison:
        return poison.reason
    return None


# ------------------------------------------------------------------------------------------------------------- hostile
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="null value"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(with_content('"x"').replace(b"hello", b"\xff").replace(b'"x"', b'"\xff"'), id="not UTF-8 within"),
        pytest.param(b"hello", id="not JSON"),
        pytest.param(b'{"tenant_id": "acme"', id="cut off"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"a":' * 100_000, id="deep objects"),
        pytest.param(json.dumps(LEAST).encode()[:-1] + b', "x": ' + b"[" * 9_000 + b"}", id="deep extra"),
        pytest.param(with_content("9" * 5_000), id="a number that nothing can hold"),
    ],
)
def test_bytes_that_are_not_json_are_undecodable(value: bytes | None) -> None:
    assert refused(value).reason == "undecodable"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"7", id="a number"),
        pytest.param(b'"hello"', id="a string"),
        pytest.param(b"{}", id="nothing in it"),
        pytest.param(with_content("7"), id="content is a number"),
        pytest.param(with_content("9" * 4_000), id="content is a huge number"),
        pytest.param(json.dumps(LEAST | {"ends_session": 10**4000}).encode(), id="a huge number for a bool"),
        pytest.param(json.dumps(LEAST | {"metadata": {"x": "y" * 5_000}}).encode(), id="metadata too large"),
        pytest.param(json.dumps(LEAST | {"tenant_id": "a\u0000b"}).encode(), id="a control character in an id"),
        pytest.param(json.dumps(LEAST | {"occurred_at": "yesterday"}).encode(), id="no time"),
        pytest.param(json.dumps(LEAST | {"occurred_at": 10**30}).encode(), id="a time far away"),
    ],
)
def test_json_outside_the_contract_is_invalid(value: bytes) -> None:
    assert refused(value).reason == "invalid"


@pytest.mark.parametrize(
    "content", ['"\\u0000"', '"🦜👩‍👩‍👧‍👦"', '"\u200b\u200d\ufeff"', '"\\ud83e\\udd9c"', '""', "null"]
)
def test_strange_texts_are_accepted(content: str) -> None:
    turn = turn_of(with_content(content))
    text = json.loads(content)
    assert turn.messages[0].content == (text if text is None else text.translate({0: None, 0xFEFF: None}))


@pytest.mark.parametrize("extra", [b"1e400", b"-0.0", b"9" * 4_000, b"NaN", b"[[[1]]]"])
def test_strange_numbers_in_unknown_fields_are_accepted(extra: bytes) -> None:
    value = json.dumps(LEAST).encode()[:-1] + b', "future": ' + extra + b"}"
    assert reason_of(record(value), Turn) in (None, "undecodable", "invalid")


def test_too_large_is_oversized_before_it_is_parsed() -> None:
    with pytest.raises(Poison) as caught:
        decoded(record(b"[" * 101), Turn, max_bytes=100)
    assert caught.value.reason == "oversized"
    assert "101 bytes; at most 100" in str(caught.value)
    assert refused(b" " * (RECORD_MAX_BYTES + 1)).reason == "oversized"
    value = json.dumps(LEAST).encode()
    assert isinstance(decoded(record(value), Turn, max_bytes=len(value)), Turn)


def test_the_message_names_fields_without_their_content() -> None:
    poison = refused(json.dumps(LEAST | {"scope": "my secret"}).encode())
    assert str(poison).startswith("scope: ")
    assert "secret" not in str(poison)


# ------------------------------------------------------------------------------------------------------------- version
@pytest.mark.parametrize("version", ["v2", "v0", "v99999", "v" + "9" * 5_000])
def test_another_major_version_is_unsupported(version: str) -> None:
    poison = refused(json.dumps(LEAST).encode(), headers=(("ce_type", f"memstream.turn.{version}".encode()),))
    assert poison.reason == "unsupported_version"


@pytest.mark.parametrize(
    "header",
    [
        b"memstream.turn.v1",
        b"",
        b"something",
        b"\xff",
        b"x.v",
        b"x.v1.2.vx",
        "x.v²".encode(),
        b"com.acme.chat.turn.v2",
        b"com.memstream.turn.v2",
        b"memstreamer.turn.v2",
    ],
)
def test_no_or_the_known_version_is_read(header: bytes) -> None:
    assert turn_of(json.dumps(LEAST).encode(), headers=(("ce_type", header),)).turn_id == "t1"


def test_unknown_fields_of_a_later_minor_version_are_tolerated() -> None:
    turn = turn_of(json.dumps(LEAST | {"later": {"deep": [1]}}).encode())
    assert turn.model_extra == {"later": {"deep": [1]}}
    command: dict[str, Any] = {
        "command_id": "c1",
        "kind": "observe",
        "tenant_id": "acme",
        "issued_at": "2026-11-20T10:00:00Z",
    }
    command |= {"session": {"user_id": "u1", "session_id": "s1", "later": 1}, "later": 1}
    assert decode(record(json.dumps(command).encode()), Command).command_id == "c1"


# ---------------------------------------------------------------------------------------------------------- any bytes
numbers = st.integers() | st.floats() | st.just(10**400)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
names = sorted({name for contract in CONTRACTS for name in contract.model_fields})
objects = st.dictionaries(st.sampled_from(names) | st.text(max_size=9), json_values, max_size=8)
values = (
    st.binary(max_size=300)
    | json_values.map(lambda value: json.dumps(value).encode())
    | objects.map(lambda fields: json.dumps(LEAST | fields).encode())
    | objects.map(lambda fields: json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass"))
)


@given(
    st.sampled_from(CONTRACTS),
    st.none() | values,
    st.lists(st.tuples(st.just("ce_type") | st.text(max_size=9), st.binary(max_size=30)), max_size=3),
    st.none() | st.binary(max_size=30),
)
def test_hostile_records_raise_nothing_but_poison(
    contract: type[Contract], value: bytes | None, headers: list[tuple[str, bytes]], key: bytes | None
) -> None:
    hostile = record(value, headers=tuple(headers), key=key)
    lane_key(hostile)
    tenant = tenant_of(value)
    assert tenant is None or 0 < len(tenant.encode()) <= 512
    assert reason_of(hostile, contract) in (None, "undecodable", "invalid", "unsupported_version")


@given(st.binary(min_size=1, max_size=8), st.integers(0, 200), st.booleans())
def test_damaged_turns_raise_nothing_but_poison(noise: bytes, at: int, replaces: bool) -> None:
    good = json.dumps(LEAST).encode()
    at %= len(good)
    damaged = good[:at] + noise + good[at + (len(noise) if replaces else 0) :]
    assert reason_of(record(damaged), Turn) in (None, "undecodable", "invalid")


# -------------------------------------------------------------------------------------------------------------- tenant
@pytest.mark.parametrize(
    ("value", "tenant"),
    [
        (b'{"tenant_id": "acme"}', "acme"),
        ('{"tenant_id": "Bäcker & 🥐"}'.encode(), "Bäcker & 🥐"),
        ('{"tenant_id": "a\u00a0b\u200b"}'.encode(), "a\u00a0b\u200b"),
        (b'{"tenant_id": "acme", "messages": 7}', "acme"),
        (b'{"tenant_id": ""}', None),
        (b'{"tenant_id": 7}', None),
        (b'{"tenant_id": "a\\u000ab"}', None),
        (b'{"tenant_id": "\\ud800"}', None),
        (json.dumps({"tenant_id": "x" * 129}).encode(), None),
        (b'["tenant_id"]', None),
        (b"{", None),
        (b"\xff", None),
        (b"[" * 200_000, None),
        (b'{"tenant_id": ' + b"9" * 5_000 + b"}", None),
        (b'{"tenant_id": "acme", "x": "' + b"y" * (1024 * 1024) + b'"}', None),
        (None, None),
    ],
)
def test_the_tenant_of_a_refused_record_where_it_can_be_read(value: bytes | None, tenant: str | None) -> None:
    assert tenant_of(value) == tenant


def test_the_lane_of_an_undecodable_record_is_its_raw_key() -> None:
    assert lane_key(record(b"x", key=b"\xff\x00a")) == "\xff\x00a"
    assert lane_key(record(b"x", key=None)) == ""


def test_the_lane_of_a_record_without_a_key_is_the_session_that_its_value_names() -> None:
    named = {"tenant_id": "a b", "user_id": "u/1", "session_id": "s"}
    assert lane_key(record(json.dumps(named).encode(), key=None)) == "a%20b/u%2F1/s"
    for damaged in (
        {},
        {"tenant_id": "a", "user_id": "u"},
        named | {"user_id": 7},
        named | {"session_id": ""},
        named | {"user_id": "a\udc00"},
    ):
        assert lane_key(record(json.dumps(damaged).encode(), key=None)) == ""
    assert lane_key(record(json.dumps(named).encode(), key=b"k")) == "k"

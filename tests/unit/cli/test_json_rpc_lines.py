"""Lines on the standard input of `memstream mcp`: each is a message for the SDK, or is answered with an error."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import INVALID_REQUEST, PARSE_ERROR

from memstream.cli.process.json_rpc_lines import LineError, Readable, read_line
from memstream.cli.process.line_reader import LINE_MAX, Line, whole_lines

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
NOTE: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
HUGE = "x" * (LINE_MAX + 10)


def line(raw: bytes) -> Line:
    return Line(raw[: LINE_MAX + 1], len(raw), raw[-4096:] if len(raw) > LINE_MAX else b"")


def read(raw: bytes | str) -> list[Readable | LineError]:
    return list(read_line(line(raw.encode() if isinstance(raw, str) else raw)))


@pytest.mark.parametrize(
    ("raw", "messages"),
    [
        (json.dumps(PING), [PING]),
        (json.dumps(PING) + "\r", [PING]),
        ("\ufeff" + json.dumps(PING), [PING]),
        (json.dumps([PING, NOTE]), [PING, NOTE]),
        (json.dumps({**PING, "params": {"name": "half \ud83d"}}), [{**PING, "params": {"name": "half \ufffd"}}]),
        (b'{"jsonrpc":"2.0","id":"a","method":"x\xff"}', [{"jsonrpc": "2.0", "id": "a", "method": "x\ufffd"}]),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}), [{"jsonrpc": "2.0", "id": 1, "result": {}}]),
        ("", []),
        (" \r", []),
    ],
)
def test_what_is_a_message_is_read(raw: bytes | str, messages: list[Any]) -> None:
    found = read(raw)
    assert [json.loads(each.text) for each in found if isinstance(each, Readable)] == messages
    assert len(found) == len(messages)


@pytest.mark.parametrize(
    ("raw", "code", "request_id"),
    [
        ("garbage", PARSE_ERROR, None),
        ('{"jsonrpc":"2.0","id":7,"method":"ping"', PARSE_ERROR, 7),
        ('{"jsonrpc":"2.0","id":"a\\"b","method":"pi', PARSE_ERROR, 'a"b'),
        ('{"jsonrpc":"2.0","params":{"id":5},"id":8,"method":', PARSE_ERROR, 8),
        ('{"params":{"id":5},"method":"x', PARSE_ERROR, None),
        ('{"params":{"text":"{\\"id\\":5}"},"id":9,', PARSE_ERROR, 9),
        ('{"id":7,"method":"ping"}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
        ("5", INVALID_REQUEST, None),
        ("[]", INVALID_REQUEST, None),
        ("[5]", INVALID_REQUEST, None),
        (json.dumps({**PING, "params": {"text": HUGE}}), INVALID_REQUEST, 7),
        (
            json.dumps({"method": "x", "params": {"id": 5, "text": HUGE}, "jsonrpc": "2.0", "id": 11}),
            INVALID_REQUEST,
            11,
        ),
        (json.dumps({"params": {"text": HUGE}, "id": "z", "jsonrpc": "2.0", "method": "x"}), INVALID_REQUEST, "z"),
        (json.dumps({"method": "x", "params": {"text": HUGE, "id": 5}}), INVALID_REQUEST, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_message_is_answered_with_its_id(raw: str, code: int, request_id: str | int | None) -> None:
    (error,) = read(raw)
    assert isinstance(error, LineError)
    assert (error.code, error.id) == (code, request_id)


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: ('{"id":1,' + text).encode()))
def test_no_line_is_passed_over_in_silence(raw: bytes) -> None:
    found = read(raw.replace(b"\n", b""))
    assert found or not raw.replace(b"\n", b"").strip(b" \t\r\x0b\x0c")


def test_a_broken_line_costs_time_in_proportion_to_its_length() -> None:
    for raw in ('{"a":"' + '\\"' * 200_000, '{"' + "\\" * 400_001, "{" * 400_000, '{"id":' * 100_000):
        (error,) = read(raw)
        assert isinstance(error, LineError)


async def test_a_long_line_keeps_both_ends_and_its_size() -> None:
    raw = b"a" + b"x" * (2 * LINE_MAX) + b"z\nnext"
    first, second = [each async for each in whole_lines(io.BytesIO(raw))]
    assert (first.size, first.start[:1], first.end[-1:], len(first.end)) == (2 * LINE_MAX + 2, b"a", b"z", 4096)
    assert second == Line(b"next", 4)

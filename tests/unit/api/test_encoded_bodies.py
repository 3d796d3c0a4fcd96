"""Bodies with Content-Encoding: gzip are read within its bounds, other bodies are refused with what to do."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator
from functools import cache
from itertools import pairwise

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.api.limits import Limits
from tests.support.api_server import NoLog, app_over, bearer, called
from tests.unit.api.test_mcp import JAKES, mcp_server, scripted
from tests.unit.api.test_turns import TURN

JSON = {"Content-Type": "application/json"}
BODY = json.dumps(TURN).encode()
PACKED = gzip.compress(BODY)
BOMB = gzip.compress(b" " * 50_000_000)

REFUSED = {
    "brotli": ("br", BODY, 415, "Content-Encoding: gzip"),
    "deflate": ("deflate", zlib.compress(BODY), 415, "Content-Encoding: gzip"),
    "gzip twice": ("gzip, gzip", gzip.compress(PACKED), 415, "Content-Encoding: gzip"),
    "no gzip": ("gzip", BODY, 422, "is not valid gzip"),
    "cut off": ("gzip", PACKED[:-9], 422, "ends before its gzip data does"),
    "nothing": ("gzip", b"", 422, "ends before its gzip data does"),
    "another checksum": ("gzip", PACKED[:-8] + b"\0" * 8, 422, "is not valid gzip"),
    "two members": ("gzip", PACKED + PACKED, 422, "has data after the end"),
    "a bomb": ("gzip", BOMB, 413, "bytes"),
    "a bomb in a bomb": ("gzip", gzip.compress(BOMB), 422, "body: "),
}


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", " gzip ", "identity, gzip", "identity", ""])
async def test_an_encoded_turn_is_the_turn(encoding: str) -> None:
    log = NoLog()
    body = PACKED if "gzip" in encoding.lower() else BODY
    answer = await called(app_over(log=log)).post(
        "/v1/turns", content=body, headers=JSON | {"Content-Encoding": encoding}
    )
    assert answer.status_code == 202, answer.text
    assert [json.loads(value or b"") for _, _, value, _ in log.appended] == [TURN]


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_read_is_refused(case: str) -> None:
    encoding, body, status, said = REFUSED[case]
    log = NoLog()
    answer = await called(app_over(log=log)).post(
        "/v1/turns", content=body, headers=JSON | {"Content-Encoding": encoding}
    )
    assert (answer.status_code, log.appended) == (status, [])
    assert said in answer.json()["detail"]
    assert answer.headers.get("Accept-Encoding") == ("gzip" if status == 415 else None)


async def test_the_limit_holds_for_both_forms() -> None:
    limits = Limits(body=len(BODY))
    api = called(app_over(limits=limits))
    for content, status in ((PACKED, 202), (gzip.compress(BODY + b" "), 413), (BODY + b" ", 413)):
        headers = JSON | ({"Content-Encoding": "gzip"} if content[:1] == b"\x1f" else {})
        assert (await api.post("/v1/turns", content=content, headers=headers)).status_code == status


@cache
def turns_app() -> tuple[FastAPI, NoLog]:
    log = NoLog()
    return app_over(log=log), log


@given(
    cuts=st.lists(st.integers(0, len(PACKED)), max_size=6),
    damage=st.integers(0, len(PACKED) - 1),
    by=st.integers(0, 255),
)
@settings(max_examples=25, deadline=None)
async def test_pieces_and_damage_never_break_the_server(cuts: list[int], damage: int, by: int) -> None:
    """Whole, a body is read however it is cut. With a byte changed it is refused, or has the same content."""
    app, log = turns_app()
    log.appended.clear()
    edges = [0, *sorted(cuts), len(PACKED)]

    async def pieces(body: bytes) -> AsyncIterator[bytes]:
        for begin, end in pairwise(edges):
            yield body[begin:end]

    api = called(app)
    headers = JSON | {"Content-Encoding": "gzip"}
    assert (await api.post("/v1/turns", content=pieces(PACKED), headers=headers)).status_code == 202
    changed = PACKED[:damage] + bytes([PACKED[damage] ^ by]) + PACKED[damage + 1 :]
    assert (await api.post("/v1/turns", content=pieces(changed), headers=headers)).status_code in (202, 413, 422)
    assert {json.dumps(json.loads(value or b"")) for _, _, value, _ in log.appended} == {json.dumps(TURN)}


async def test_a_message_of_mcp_may_be_encoded() -> None:
    tools = scripted()
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"query": "x"}},
    }
    headers = {**bearer(JAKES), "Accept": "application/json, text/event-stream", **JSON, "Content-Encoding": "gzip"}
    async with mcp_server(tools) as url, httpx.AsyncClient() as http:
        answer = await http.post(url, content=gzip.compress(json.dumps(call).encode()), headers=headers)
        assert (answer.status_code, len(tools.calls)) == (200, 1), answer.text
        for content, encoding, status in ((BOMB, "gzip", 413), (BODY, "gzip", 422), (BODY, "br", 415)):
            refused = await http.post(url, content=content, headers=headers | {"Content-Encoding": encoding})
            assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        unknown = await http.post(url, content=BOMB, headers=headers | {"Authorization": "Bearer mst_unknown"})
    assert (unknown.status_code, len(tools.calls)) == (401, 1), "nobody's body is inflated"

"""How the body of a chat completion is decoded: streams, usage, and what is none."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from memstream.adapters.completions.chat_reply import decode_reply
from memstream.adapters.ports import Usage

TEXT: Final = "One.\u2028Two.\u0085Three.\x0b\x1e{} data: x"
"""A text with ends of lines that are none of a stream's."""


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def lines(*chunks: dict[str, Any], before: str = "data: ", end: str = "\n\n") -> bytes:
    return "".join(before + json.dumps(each, ensure_ascii=False) + end for each in chunks).encode()


CHUNKS: Final = (chunk(role="assistant", content="A "), chunk(content=TEXT), chunk(content=" Z"))


@pytest.mark.parametrize(
    "body",
    [
        lines(*CHUNKS) + b"data: [DONE]\n\n",
        lines(*CHUNKS, before=": a comment\r\nevent: delta\r\ndata:", end="\r\n\r\n"),
        lines(*CHUNKS, end="\r\r"),
        lines(*CHUNKS, before="", end="\n"),
        b"\xef\xbb\xbf" + lines(*CHUNKS),
    ],
)
def test_a_stream_is_joined_without_a_loss(body: bytes) -> None:
    reply = decode_reply(body)
    assert reply is not None
    assert reply.texts == (f"A {TEXT} Z",)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(calls=1, input_tokens=3, output_tokens=4)),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(calls=1, input_tokens=3, output_tokens=4)),
        ({"prompt_tokens": -1, "completion_tokens": 4}, None),
        ({"prompt_tokens": "3", "completion_tokens": 4}, None),
        (None, None),
    ],
)
def test_usage_is_read_by_either_name(usage: Any, counted: Usage | None) -> None:
    reply = decode_reply(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode())
    assert reply is not None
    assert reply.usage == counted


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        json.dumps({"error": {"message": "overloaded"}}).encode(),
        json.dumps(
            {"choices": [{"error": {"code": 502}, "finish_reason": "error", "message": {"content": ""}}]}
        ).encode(),
        lines({"error": {"message": "overloaded"}}),
    ],
)
def test_what_is_no_completion_is_tried_again_later(body: bytes) -> None:
    assert decode_reply(body) is None

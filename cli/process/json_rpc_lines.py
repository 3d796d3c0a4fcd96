"""Parser of JSON-RPC lines on standard input: valid messages for the protocol's SDK, errors for invalid lines.

The SDK ignores a line that is not a valid message. Without an error answer, the client would wait forever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcp_types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic import JsonValue, ValidationError

from ...schemas.front_door.json_text import NotJson, parse_json, repair
from .line_reader import LINE_MAX, Line

Id = str | int | None
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE: Final = re.compile(r'\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?=[,}]|$)', re.DOTALL)
_LAST: Final = re.compile(
    r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}\s*$', re.DOTALL
)
"""An id at the end of a message, optionally followed by `jsonrpc` and `method`."""


@dataclass(frozen=True, slots=True)
class Readable:
    """Valid message for the SDK."""

    text: str


@dataclass(frozen=True, slots=True)
class LineError:
    """Error answer to an invalid line."""

    code: int
    message: str
    id: Id


def read_line(line: Line) -> Iterator[Readable | LineError]:
    """Yield the line's message, each message of a batch, or the error to answer. An empty line yields nothing."""
    if line.size > LINE_MAX:
        why = f"the line has {line.size} bytes; at most {LINE_MAX} are read. Send less in one request"
        yield LineError(INVALID_REQUEST, why, _id_of_cut(line))
        return
    raw = line.start.strip()
    if not raw:
        return
    try:
        found = repair(parse_json(raw.decode("utf-8", "replace").encode())).value
    except NotJson as error:
        yield LineError(PARSE_ERROR, f"the line {error}", _id_within(raw.decode("utf-8", "replace")))
        return
    if not isinstance(found, list):
        yield _message(found)
    elif found:
        yield from map(_message, found)
    else:
        yield LineError(INVALID_REQUEST, "the batch is empty: send a request", None)


def _message(found: JsonValue) -> Readable | LineError:
    given = found.get("id") if isinstance(found, dict) else None
    named = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if isinstance(found, dict) and "method" in found and "id" in found and named is None:
        return LineError(INVALID_REQUEST, "the id must be a string or an integer", None)
    text = json.dumps(found, ensure_ascii=False)
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        return LineError(INVALID_REQUEST, "not a JSON-RPC 2.0 message: it needs jsonrpc, method and id", named)
    return Readable(text)


def _id_of_cut(line: Line) -> Id:
    """Return the id of a line that was cut in the middle. Clients write the id at the start or at the end."""
    found = _id_within(line.start.decode("utf-8", "replace"))
    if found is None and (last := _LAST.search(line.end.decode("utf-8", "replace"))) is not None:
        return _id_value(last[1])
    return found


def _id_within(text: str) -> Id:
    """Return the id at the outermost level of a broken or cut message, or None."""
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            depth += 1
        elif mark in ("}", "]"):
            depth -= 1
        elif depth == 1 and token[1] == "id" and (value := _VALUE.match(text, token.end())) is not None:
            return _id_value(value[1])
    return None


def _id_value(text: str) -> Id:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, str | int) else None

"""Lines of an import from the items of a foreign file, and turns from a conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import JsonValue

from ...schemas.base import TAG_MAX, TAGS_MAX
from ...schemas.front_door.json_text import NotJson, parse_json, repair
from ...schemas.imports import ImportFault
from ...schemas.times import read_time
from ...schemas.turns import MESSAGES_MAX, TURN_MAX_BYTES
from ..import_file import FileLine

Fields = Mapping[str, Any]
Convert = Callable[[Fields], Iterable[tuple[Literal["imported_turn", "imported_fact", "left_out"], Mapping[str, Any]]]]
"""A function that returns the kinds and the records of the lines of an item. Raises ValueError for a wrong item."""
TURN_ROOM: Final = TURN_MAX_BYTES - 16 * 1024
"""Bytes of the messages of a turn. The rest is for its ids and tags."""
END: Final = b'{"kind":"end"}'
"""The last line of an import."""
LEFT_OUT: Final = "left_out"
"""Kind of a line for an item that the format leaves out, and that the result counts as skipped."""
AS_WRITTEN: Final = "correct the item, or remove it from the file"


def converted(
    items: Iterable[FileLine | ImportFault], name: str, convert: Convert, *, end: int, number: int
) -> Iterator[FileLine | ImportFault]:
    """Yield the lines of items, and a line of the kind `end`.

    `end` and `number`: offset and line behind which the items begin. Only the last line of an item ends behind the
    item, so an import that stops within an item reads the whole item again.
    """
    for item in items:
        if isinstance(item, ImportFault):
            yield item
            continue
        try:
            lines = [*convert(_fields_of(item.text))]
        except ValueError as error:
            yield ImportFault(file=name, line=item.number, what=f"the item {error}", what_to_do=AS_WRITTEN)
            continue
        for kind, record in lines[:-1]:
            yield FileLine(item.number, _text(kind, item.number, record), end, number)
        end, number = item.end, item.last
        for kind, record in lines[-1:]:
            yield FileLine(item.number, _text(kind, item.number, record), end, number)
    yield FileLine(number, END, end, number)


def _fields_of(text: bytes) -> Fields:
    try:
        value = repair(parse_json(text)).value
    except NotJson as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("is no JSON object")
    return value


def _text(kind: str, line: int, record: Mapping[str, Any]) -> bytes:
    return json.dumps({"kind": kind, "line": line, "record": record}, ensure_ascii=False).encode()


def given_time(value: JsonValue) -> str | None:
    """Return a time as RFC 3339 text, or None for a missing time. Raises ValueError."""
    return None if value in (None, "") else read_time(value).isoformat()


def statement(content: object, **fields: object) -> tuple[Any, dict[str, Any]]:
    """Return the line of a statement, without empty fields. Raises ValueError for a missing text."""
    if not isinstance(content, str) or not content.strip():
        raise ValueError("has no text")
    kept = {name: each for name, each in fields.items() if each not in (None, "", [], {}, ())}
    return "imported_fact", {"content": content.strip(), **kept}


def short_tags(*values: object) -> list[str]:
    """Return the texts among the values, cut to the length of a tag, each once."""
    texts = (each.strip()[:TAG_MAX] for each in values if isinstance(each, str) and each.strip())
    return [*dict.fromkeys(texts)][:TAGS_MAX]


def conversation_turns(
    session_id: str, messages: Sequence[Fields], *, tags: Sequence[str] = (), at: str | None = None
) -> list[dict[str, Any]]:
    """Return the turns of a conversation. Each message of a user begins a turn.

    The id of a turn is a hash of its messages, so that a later file with the same turn has the same id. `at`: the time
    of messages without a time.
    """
    turns = []
    for group in _groups(messages):
        said = json.dumps(group, ensure_ascii=False, sort_keys=True).encode()
        turn: dict[str, Any] = {
            "session_id": session_id,
            "turn_id": hashlib.sha256(said).hexdigest()[:32],
            "messages": group,
            "tags": [*tags],
        }
        if at is not None and not any(each.get("created_at") for each in group):
            turn["occurred_at"] = at
        turns.append(turn)
    return turns


def _groups(messages: Sequence[Fields]) -> Iterator[list[Fields]]:
    group: list[Fields] = []
    size = 0
    for each in messages:
        more = len(json.dumps(each, ensure_ascii=False).encode()) + 2
        asks = each["role"] == "user" and group and group[-1]["role"] != "user"
        if group and (asks or len(group) == MESSAGES_MAX or size + more > TURN_ROOM):
            yield group
            group, size = [], 0
        group.append(each)
        size += more
    if group:
        yield group

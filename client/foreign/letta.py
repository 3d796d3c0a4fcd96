"""Reader of Letta: an agent file (`.af`) with messages of agents and memory blocks, or a list of the passages of an
archival memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_items
from .items import Fields, conversation_turns, converted, given_time, short_tags, statement

NAMES: Final = ("agents", "blocks")
PERSONA: Final = "persona"
"""Label of the block about the agent itself. It is an instruction and not knowledge."""
SEND: Final = "send_message"
"""The tool by which an agent answers."""


def read_letta(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each turn, for each line of a block, and for each passage."""
    yield from converted(read_items(source, NAMES, end, number), source.name, _lines, end=end, number=number)


def _lines(item: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    if "label" in item:
        yield from _block(item)
        return
    if "text" in item:
        yield from _passage(item)
        return
    messages = item.get("messages")
    if not isinstance(messages, list) or not isinstance(item.get("name") or item.get("id"), str):
        raise ValueError("is no agent with messages, no block with a label and no passage with a text")
    said = [made for each in messages if (made := _message(each)) is not None]
    for turn in conversation_turns(f"letta-{item.get('name') or item['id']}", said):
        yield "imported_turn", turn


def _block(block: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    label, value = block["label"], block.get("value")
    if not isinstance(label, str) or not isinstance(value, str):
        raise ValueError("is a block without a text")
    for line in value.splitlines() if label != PERSONA else ():
        if line.strip():
            yield statement(line, metadata={"block": label})


def _passage(passage: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the statement of a passage. A passage of a file is a part of a document and no statement."""
    tags, metadata = passage.get("tags") or [], passage.get("metadata") or {}
    if not isinstance(tags, list) or not isinstance(metadata, dict):
        raise ValueError("has tags or metadata in another form than Letta writes")
    if not passage.get("is_deleted") and not passage.get("file_id"):
        at = given_time(passage.get("created_at"))
        yield statement(passage["text"], said_at=at, tags=short_tags(*tags), metadata=metadata)


def _message(message: object) -> dict[str, Any] | None:
    """Return a message that a person wrote or read, or None."""
    if not isinstance(message, dict):
        raise ValueError("has a message that is no object")
    role, text = message.get("role"), _text(message.get("content"))
    if role == "assistant":
        text = "\n".join([*filter(None, (text if not message.get("tool_calls") else "",)), *_sent(message)])
    elif role == "user":
        text = _unpacked(text)
    if role not in ("user", "assistant") or not text.strip():
        return None
    at = given_time(message.get("created_at"))
    return {"role": role, "content": text} | ({} if at is None else {"created_at": at})


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (each.get("text") for each in parts if isinstance(each, dict) and each.get("type") == "text")
    return "\n".join(each for each in texts if isinstance(each, str))


def _sent(message: Fields) -> Iterator[str]:
    """Yield the texts that the agent sent by its tool."""
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name") == SEND:
            text = _object(function.get("arguments")).get("message")
            if isinstance(text, str):
                yield text


def _unpacked(text: str) -> str:
    """Return the text of a message that Letta packed into JSON. Events of the system, such as heartbeats, are empty."""
    packed = _object(text)
    if not isinstance(packed.get("type"), str):
        return text
    return str(packed.get("message") or "") if packed["type"] == "user_message" else ""


def _object(text: object) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) and text.lstrip().startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

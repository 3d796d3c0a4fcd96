"""Reader of `conversations.json` of a ChatGPT export: a list of conversations, each a tree of messages.

The turns are the texts of the user and of the assistant on the current branch. docs/reference/import.md lists what is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_list
from .items import Fields, conversation_turns, converted, given_time, short_tags

ROLES: Final = ("user", "assistant")
TEXTS: Final = ("text", "multimodal_text")
"""Types of content with parts that a person reads. Other types are reasoning, code for tools, and their output."""


def read_chatgpt(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each turn."""
    yield from converted(read_list(source, end, number), source.name, _lines, end=end, number=number)


def _lines(conversation: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    found = conversation.get("conversation_id") or conversation.get("id")
    if not isinstance(found, str):
        raise ValueError("has no conversation_id")
    tags = short_tags(conversation.get("title"))
    messages = [made for each in _branch(conversation) if (made := _message(each)) is not None]
    at = given_time(conversation.get("create_time"))
    for turn in conversation_turns(f"chatgpt-{found}", messages, tags=tags, at=at):
        yield "imported_turn", turn


def _branch(conversation: Fields) -> list[Fields]:
    """Return the messages from the root to the current node."""
    nodes = conversation.get("mapping")
    if not isinstance(nodes, dict):
        raise ValueError("has no mapping of messages")
    node_id = conversation.get("current_node")
    branch: list[Fields] = []
    seen: set[str] = set()
    while isinstance(node_id, str):
        node = nodes.get(node_id)
        if not isinstance(node, dict) or node_id in seen:
            raise ValueError("has a branch of messages that does not lead to its beginning")
        seen.add(node_id)
        if isinstance(node.get("message"), dict):
            branch.append(node["message"])
        node_id = node.get("parent")
    if not seen:
        raise ValueError("has no current_node")
    return branch[::-1]


def _message(message: Fields) -> dict[str, Any] | None:
    """Return a message that a person wrote or read, or None."""
    author, content, metadata = (message.get(name) or {} for name in ("author", "content", "metadata"))
    if not (isinstance(author, dict) and isinstance(content, dict) and isinstance(metadata, dict)):
        raise ValueError("has a message without author or content")
    shown = message.get("recipient") in (None, "all") and not metadata.get("is_visually_hidden_from_conversation")
    if author.get("role") not in ROLES or content.get("content_type", "text") not in TEXTS or not shown:
        return None
    parts = content.get("parts") or []
    text = "\n".join(each for each in parts if isinstance(each, str) and each.strip())
    if not text:
        return None
    at = given_time(message.get("create_time"))
    return {"role": author["role"], "content": text} | ({} if at is None else {"created_at": at})

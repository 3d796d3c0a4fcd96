"""Reader of a graph of Zep or Graphiti: edges, nodes and episodes, as lists of an object or as one list alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_items
from .items import Fields, conversation_turns, converted, given_time, statement

NAMES: Final = ("edges", "facts", "nodes", "episodes")
ROLES: Final = ("user", "assistant")
USER: Final = "User"
"""Label of the node of the user."""
_SPOKEN: Final = re.compile(r"^(user|assistant): ", re.MULTILINE)
"""Beginning of a message in an episode of Graphiti."""


def read_zep(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each edge with a fact, each node with a summary, and each episode that is a message."""
    yield from converted(read_items(source, NAMES, end, number), source.name, _lines, end=end, number=number)


def _lines(item: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    if "content" in item:
        yield from _said(item)
    elif "summary" in item:
        yield from _summary(item)
    else:
        yield _fact(item)


def _fact(edge: Fields) -> tuple[Any, dict[str, Any]]:
    relation = {"relation": edge["name"]} if isinstance(edge.get("name"), str) else {}
    return statement(
        edge.get("fact"),
        said_at=given_time(edge.get("reference_time") or edge.get("created_at")),
        valid_from=given_time(edge.get("valid_at")),
        valid_to=given_time(edge.get("invalid_at") or edge.get("expired_at")),
        metadata={**_attributes(edge), **relation},
    )


def _summary(node: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the summary of an entity, about this entity. An empty summary is no statement."""
    name, labels = node.get("name"), node.get("labels") or []
    if not isinstance(name, str) or not isinstance(labels, list):
        raise ValueError("is a node without a name, or with labels that are no list")
    if node["summary"]:
        yield statement(
            node["summary"],
            subject=None if USER in labels else name.strip(),
            said_at=given_time(node.get("created_at")),
            metadata=_attributes(node),
        )


def _said(episode: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the turns of an episode of messages. Other episodes are documents and data."""
    content, role = episode["content"], episode.get("role_type")
    if not isinstance(content, str):
        raise ValueError("is an episode without a text")
    if episode.get("source") != "message":
        return
    parts = _SPOKEN.split(content)[1:] if role is None else [role, content]
    said = [
        {"role": who, "content": text.strip()}
        for who, text in zip(parts[::2], parts[1::2], strict=True)
        if who in ROLES and text.strip()
    ]
    session = next(filter(None, map(episode.get, ("thread_id", "session_id", "group_id"))), "graph")
    at = given_time(episode.get("valid_at") or episode.get("created_at"))
    for turn in conversation_turns(f"zep-{session}", said, at=at):
        yield "imported_turn", turn


def _attributes(item: Fields) -> dict[str, Any]:
    attributes = item.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise ValueError("has attributes that are no object")
    return attributes

"""Reader of a JSON export of AgentOS: an object with the list `traces`, or a list of traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_items
from .items import Fields, converted, given_time, short_tags, statement

NAMES: Final = ("traces",)
OF_USER: Final = (None, "user", "thread")
"""Scopes of traces that are the user's."""
CATEGORIES: Final = {"episodic": "event", "prospective": "goal"}


def read_agentos(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each trace that is not deleted."""
    yield from converted(read_items(source, NAMES, end, number), source.name, _lines, end=end, number=number)


def _lines(trace: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    if trace.get("deleted"):
        return
    if trace.get("scope") not in OF_USER:
        raise ValueError(f"has the scope {str(trace['scope'])[:40]}, which is not the user's")
    tags, metadata = _value(trace.get("tags"), list), _value(trace.get("metadata"), dict)
    yield statement(
        trace.get("content"),
        category=CATEGORIES.get(str(trace.get("type"))),
        said_at=given_time(trace.get("created_at") or trace.get("createdAt")),
        tags=short_tags(*tags),
        metadata={name: each for name, each in metadata.items() if name != "import_hash"}
        | ({"type": trace["type"]} if isinstance(trace.get("type"), str) else {}),
    )


def _value(given: object, kind: type[Any]) -> Any:
    """Return a list or an object, which newer versions write as a text with JSON. Raises ValueError."""
    try:
        value = json.loads(given) if isinstance(given, str) and given else given
    except (ValueError, RecursionError):
        value = given
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ValueError("has tags or metadata in another form than AgentOS writes")
    return value

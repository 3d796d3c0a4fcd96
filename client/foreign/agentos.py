"""Reader of an export of AgentOS: a SQLite database, a JSON object with the list `traces`, or a list of traces."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from ...schemas.base import CONTENT_MAX
from ...schemas.imports import ImportFault
from ..formats.sqlite_import import MAGIC, opened_database, stored_columns, unreadable_database
from ..import_file import FileLine, ImportRefused, ImportSource, read_items
from .items import LEFT_OUT, Fields, converted, given_time, short_tags, statement

LISTS: Final = ("traces", "nodes", "documents", "images")
TRACES: Final = "memory_traces"
TABLES: Final = {
    TRACES: ("content", "type", "scope", "created_at", "tags", "metadata", "deleted"),
    "knowledge_nodes": ("type", "label", "properties", "created_at"),
    "documents": ("content_hash",),
    "document_images": ("mime_type",),
}
"""Tables that are read, in this order, and their columns."""
VALUE_MAX: Final = 1024 * 1024
"""Bytes of a value that is read."""
OF_USER: Final = (None, "user", "thread")
"""Scopes of traces that are the user's."""
CATEGORIES: Final = {"episodic": "event", "prospective": "goal"}
OWN: Final = ("import_hash", "content_hash", "decay", "scopeId")
"""Metadata that AgentOS computes."""


def read_agentos(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each trace that is not deleted, each memory of the graph, and each document."""
    source.file.seek(0)
    is_database = source.file.read(len(MAGIC)) == MAGIC
    items = _rows(source, number) if is_database else read_items(source, LISTS, end, number)
    yield from converted(items, source.name, _lines, end=end, number=number)


def _rows(source: ImportSource, number: int) -> Iterator[FileLine]:
    """Yield the rows of the tables behind row `number`, counted over all tables. Raises ImportRefused."""
    try:
        with opened_database(source) as db:
            tables = [each for each in TABLES if set(TABLES[each]) <= set(stored_columns(db, each))]
            if TRACES not in tables:
                raise ImportRefused(f"{source.name} has no table {TRACES} of AgentOS: export again, or as JSON")
            sizes = {each: db.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in tables}
            rows, before = sum(sizes.values()), 0
            for table in tables:
                passed = max(0, min(sizes[table], number - before))
                for place, item in enumerate(_items(db, table, passed), before + passed + 1):
                    yield FileLine(place, item, source.size * place // rows, place)
                before += sizes[table]
    except sqlite3.Error as error:
        raise unreadable_database(source, error) from None


def _items(db: sqlite3.Connection, table: str, passed: int) -> Iterator[bytes]:
    """Yield the rows of a table behind the first ones as JSON, without values that are too long or no text."""
    fitting = (f"CASE WHEN length(CAST({each} AS BLOB)) <= {VALUE_MAX} THEN {each} END" for each in TABLES[table])
    for row in db.execute(f"SELECT {', '.join(fitting)} FROM {table} ORDER BY rowid LIMIT -1 OFFSET ?", (passed,)):
        fields = dict(zip(TABLES[table], row, strict=True))
        yield json.dumps(fields, ensure_ascii=False, default=lambda _: None).encode()


def _lines(item: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    if "label" in item:
        yield from _remembered(item)
    elif "content" not in item and ("content_hash" in item or "mime_type" in item):
        yield LEFT_OUT, {}  # a document or an image
    elif not item.get("deleted"):
        yield _stated(item)


def _stated(trace: Fields) -> tuple[Any, dict[str, Any]]:
    tags, metadata = _value(trace.get("tags"), list), _value(trace.get("metadata"), dict)
    if "document_id" in metadata:
        return LEFT_OUT, {}  # a part of a document is no statement about the user
    if trace.get("scope") not in OF_USER:
        raise ValueError(f"has the scope {str(trace['scope'])[:40]}, which is not the user's")
    return statement(
        trace.get("content"),
        category=CATEGORIES.get(str(trace.get("type"))),
        said_at=given_time(trace.get("created_at") or trace.get("createdAt")),
        tags=short_tags(*tags),
        metadata={name: each for name, each in metadata.items() if name not in OWN}
        | ({"type": trace["type"]} if isinstance(trace.get("type"), str) else {}),
    )


def _remembered(node: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the memory of a node of the graph. Other nodes are names without a statement."""
    if node.get("type") != "memory":
        return
    properties = _value(node.get("properties"), dict)
    texts = [each for name in ("_description", "_summary") if isinstance(each := properties.get(name), str)]
    fitting = (each for each in texts if each.strip() and len(each.strip()) <= CONTENT_MAX)
    yield statement(
        next(fitting, node["label"]),
        category="event",
        said_at=given_time(node.get("created_at")),
        valid_from=given_time(properties.get("_occurredAt")),
        metadata={"type": "memory"},
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

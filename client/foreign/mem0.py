"""Reader of memories of mem0: the JSON answer of `get_all`, an object with the list `results` or the list alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_items
from .items import Fields, converted, given_time, short_tags, statement

NAMES: Final = ("results", "memories")


def read_mem0(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each memory."""
    yield from converted(read_items(source, NAMES, end, number), source.name, _lines, end=end, number=number)


def _lines(memory: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    metadata, categories = memory.get("metadata") or {}, memory.get("categories") or []
    if not isinstance(metadata, dict) or not isinstance(categories, list):
        raise ValueError("has metadata or categories in another form than mem0 writes")
    named = {name: memory[name] for name in ("agent_id", "run_id", "app_id") if isinstance(memory.get(name), str)}
    yield statement(
        memory.get("memory"),
        user_id=memory.get("user_id"),
        said_at=given_time(memory.get("updated_at") or memory.get("created_at")),
        valid_to=given_time(memory.get("expiration_date")),
        tags=short_tags(*categories),
        metadata={**metadata, **named},
    )

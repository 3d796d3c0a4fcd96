"""Reader of a graph of Zep or Graphiti: the edges, as an object with the list `edges` or as the list alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...schemas.imports import ImportFault
from ..import_file import FileLine, ImportSource, read_items
from .items import Fields, converted, given_time, statement

NAMES: Final = ("edges", "facts")


def read_zep(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each edge with a fact."""
    yield from converted(read_items(source, NAMES, end, number), source.name, _lines, end=end, number=number)


def _lines(edge: Fields) -> Iterator[tuple[Any, dict[str, Any]]]:
    attributes = edge.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise ValueError("has attributes that are no object")
    relation = {"relation": edge["name"]} if isinstance(edge.get("name"), str) else {}
    yield statement(
        edge.get("fact"),
        said_at=given_time(edge.get("reference_time") or edge.get("created_at")),
        valid_from=given_time(edge.get("valid_at")),
        valid_to=given_time(edge.get("invalid_at") or edge.get("expired_at")),
        metadata={**attributes, **relation},
    )

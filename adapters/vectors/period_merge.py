"""Merges of what several periods answered. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from ...schemas.collections import FieldKind
from ..ports import OrderDirection, RankedPoint, StoredPoint

P = TypeVar("P", bound=RankedPoint)


def by_score(lists: Iterable[Sequence[P]], *, limit: int) -> list[P]:
    """Merge lists that are ordered by score, best first. Of equal scores the earlier list comes first."""
    return sorted((each for found in lists for each in found), key=lambda each: -each.score)[:limit]


def scored(lists: Iterable[Sequence[StoredPoint]], *, limit: int) -> list[StoredPoint]:
    """As `by_score`, of stored points."""
    merged = sorted((each for found in lists for each in found), key=lambda each: -(each.score or 0.0))
    return merged[:limit]


def by_id(lists: Iterable[Sequence[StoredPoint]], *, limit: int | None = None) -> list[StoredPoint]:
    """Merge lists that are ordered by id."""
    return sorted((each for found in lists for each in found), key=lambda each: each.id)[:limit]


def by_value(
    lists: Iterable[Sequence[StoredPoint]],
    *,
    field: str,
    kind: FieldKind,
    direction: OrderDirection = "asc",
    limit: int | None = None,
) -> list[StoredPoint]:
    """Merge lists that are ordered by a field. Records without a value come last in both directions."""
    value_of = _reader(kind)
    together = [(value_of(each.payload.get(field)), each) for found in lists for each in found]
    valued = [each for each in together if each[0] is not None]
    valued.sort(key=lambda each: each[0], reverse=direction == "desc")
    return [each for _, each in valued + [each for each in together if each[0] is None]][:limit]


def _reader(kind: FieldKind) -> Callable[[Any], Any]:
    """Return a function that makes a field's values comparable. None: there is no value."""
    return _time if kind == "datetime" else lambda value: value


def _time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None

"""Merges of what several periods answered. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from ...schemas.collections import FieldKind
from ..ports import OrderDirection, RankedPoint, StoredPoint

P = TypeVar("P", bound=RankedPoint)


def by_score(lists: Iterable[Sequence[P]], *, limit: int) -> list[P]:
    """Merge lists that are ordered by score, best first. Of equal scores the earlier list comes first. Of each list
    only what is needed is read."""
    return list(islice(merge(*lists, key=lambda each: -each.score), limit))


def shares(sizes: Sequence[int], *, limit: int) -> list[int]:
    """Return how many of the best `limit` are asked of each part, of these sizes: what is expected in it when they are
    spread evenly, and four standard deviations. `exhausted` tells where that was too few."""
    every = max(1, sum(sizes))
    expected = [limit * size / every for size in sizes]
    return [min(limit, 1 + math.ceil(mean + 4 * math.sqrt(mean))) for mean in expected]


def exhausted(
    lists: Sequence[Sequence[RankedPoint]], asked: Sequence[int], *, best: Sequence[RankedPoint], limit: int
) -> set[int]:
    """Return the places of the lists that may lack one of the best: as long as was asked, and their last would still be
    among the `best` of them all."""
    least = best[-1].score if len(best) == limit else -math.inf
    return {
        place
        for place, (found, most) in enumerate(zip(lists, asked, strict=True))
        if most < limit and len(found) >= most and found[-1].score >= least
    }


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

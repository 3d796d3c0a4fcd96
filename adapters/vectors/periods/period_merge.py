"""Pure merges of the answers of several periods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from ....schemas.collections import FieldKind
from ...ports import OrderDirection, RankedPoint, StoredPoint

P = TypeVar("P", bound=RankedPoint)


def by_score(lists: Iterable[Sequence[P]], *, limit: int) -> list[P]:
    """Merge lists that are sorted by score, best first. With equal scores, the earlier list comes first. The lists are
    read only as far as needed."""
    return list(islice(merge(*lists, key=lambda each: -each.score), limit))


def shares(sizes: Sequence[int], *, limit: int) -> list[int]:
    """Return the number of results to request from each part, for a search of the best `limit` results of all parts.
    `sizes` has the number of records of each part. The result is the expected number if the best results are evenly
    distributed, plus four standard deviations. `exhausted` finds the parts for which this number was too small."""
    every = max(1, sum(sizes))
    expected = [limit * size / every for size in sizes]
    return [min(limit, 1 + math.ceil(mean + 4 * math.sqrt(mean))) for mean in expected]


def exhausted(
    lists: Sequence[Sequence[RankedPoint]], asked: Sequence[int], *, best: Sequence[RankedPoint], limit: int
) -> set[int]:
    """Return the indexes of the lists that may lack one of the best results. Each of these lists has as many results
    as were requested (`asked`), and its last result is at least as good as the last of `best`. Therefore its part may
    have further results that are as good."""
    least = best[-1].score if len(best) == limit else -math.inf
    return {
        place
        for place, (found, most) in enumerate(zip(lists, asked, strict=True))
        if most < limit and len(found) >= most and found[-1].score >= least
    }


def scored(lists: Iterable[Sequence[StoredPoint]], *, limit: int) -> list[StoredPoint]:
    """Merge lists of stored points by score, best first."""
    merged = sorted((each for found in lists for each in found), key=lambda each: -(each.score or 0.0))
    return merged[:limit]


def by_id(lists: Iterable[Sequence[StoredPoint]], *, limit: int | None = None) -> list[StoredPoint]:
    """Merge lists that are sorted by id."""
    return sorted((each for found in lists for each in found), key=lambda each: each.id)[:limit]


def by_value(
    lists: Iterable[Sequence[StoredPoint]],
    *,
    field: str,
    kind: FieldKind,
    direction: OrderDirection = "asc",
    limit: int | None = None,
) -> list[StoredPoint]:
    """Merge lists that are sorted by a field. Records without a value come last in both directions."""
    value_of = _reader(kind)
    together = [(value_of(each.payload.get(field)), each) for found in lists for each in found]
    valued = [each for each in together if each[0] is not None]
    valued.sort(key=lambda each: each[0], reverse=direction == "desc")
    return [each for _, each in valued + [each for each in together if each[0] is None]][:limit]


def _reader(kind: FieldKind) -> Callable[[Any], Any]:
    """Return a function that converts a field's value to a comparable value. None: the record has no value."""
    return _time if kind == "datetime" else lambda value: value


def _time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None

"""Rows of tables in tests: dictionaries with pages, whole partitions, and the taking over of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memstream.streams.engine.decision import Rows
from memstream.streams.engine.handler import Stage

PAGE = 3
"""Rows of a page in a test: few, so that a search needs several."""


def page_of(rows: Mapping[str, bytes], *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
    """Return the next rows of a dictionary as `Rows.page` does."""
    return [(key, rows[key]) for key in sorted(rows) if key.startswith(prefix) and key > after][:PAGE]


def all_rows(rows: Rows, partition: int) -> dict[str, bytes]:
    """Read a whole partition."""
    found: dict[str, bytes] = {}
    after = ""
    while page := rows.page(partition, after=after):
        found |= dict(page)
        after = page[-1][0]
    return found


async def take_over(stage: Stage[Any], rows: Rows, partitions: Iterable[int] = (0,)) -> None:
    """Give these partitions to a stage, and take all others from it."""
    given = frozenset(partitions)
    stage.retain(given)
    for partition in sorted(given):
        await stage.rediscover(partition, rows)

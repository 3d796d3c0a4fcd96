"""Pages over a store that orders by time alone: each record once, the newest first, equal times by id."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models

from memstream.adapters.ports import StoredPoint, VectorStore
from memstream.recall.paging import read_page
from memstream.schemas.cloudevents import rfc3339

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
AT = "occurred_at"
TIMES = st.lists(st.integers(0, 3), max_size=14)
"""Few values, so that many records have the same time."""


class Records:
    """Records by id, each with a time. Records with equal times come in any order, as the port allows."""

    def __init__(self, times: list[int]) -> None:
        self.times = {self.identity(n): NOW + timedelta(minutes=each) for n, each in enumerate(times)}
        self.reads = 0

    @staticmethod
    def identity(number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, str(number)))

    async def select(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter,
        order_by: str | None = None,
        direction: str = "asc",
        limit: int,
        from_id: str | None = None,
    ) -> list[StoredPoint]:
        assert direction == ("asc" if order_by is None else "desc")
        self.reads += 1
        fits = [each for each in self.times if self.fits(each, where) and (from_id is None or each >= from_id)]
        key: Callable[[str], Any] = (
            (lambda each: each) if order_by is None else (lambda each: -self.times[each].timestamp())
        )
        return [StoredPoint(each, {AT: rfc3339(self.times[each])}) for each in sorted(fits, key=key)[:limit]]

    def fits(self, identity: str, condition: Any) -> bool:
        if isinstance(condition, models.Filter):
            must = condition.must or []
            return all(self.fits(identity, each) for each in (must if isinstance(must, list) else [must]))
        assert condition.key == AT
        span, at = condition.range, self.times[identity]
        return all(
            (span.lt is None or at < span.lt, span.lte is None or at <= span.lte, span.gte is None or at >= span.gte)
        )

    def page(self, limit: int, cursor: str | None, *, ordered: bool) -> tuple[list[str], str | None]:
        page = asyncio.run(
            read_page(
                cast(VectorStore, self),
                "episodes",
                tenant_id="acme",
                where=models.Filter(),
                order_by=AT if ordered else None,
                limit=limit,
                cursor=cursor,
            )
        )
        return [each.id for each in page.items], page.next

    def pages(self, limit: int, cursor: str | None = None, *, ordered: bool = True) -> list[list[str]]:
        items, following = self.page(limit, cursor, ordered=ordered)
        return [items, *(self.pages(limit, following, ordered=ordered) if following else [])]

    @property
    def newest_first(self) -> list[str]:
        return sorted(sorted(self.times), key=lambda each: self.times[each], reverse=True)


def flat(pages: list[list[str]]) -> list[str]:
    return [each for page in pages for each in page]


@given(TIMES, st.integers(1, 6))
def test_each_once_the_newest_first_in_full_pages(times: list[int], limit: int) -> None:
    records = Records(times)
    pages = records.pages(limit)
    assert flat(pages) == records.newest_first
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert pages[-1] or not times
    assert records.reads <= 3 * len(pages)


@given(TIMES, st.integers(1, 6))
def test_without_a_time_by_id(times: list[int], limit: int) -> None:
    records = Records(times)
    assert flat(records.pages(limit, ordered=False)) == sorted(records.times)


@given(TIMES, st.integers(1, 6), st.integers(0, 3), st.data())
def test_what_comes_and_goes_meanwhile_moves_nothing(
    times: list[int], limit: int, new: int, data: st.DataObject
) -> None:
    """A new record appears if its place is on a later page. A deleted record disappears. Every other record is seen
    once."""
    records = Records(times)
    first, cursor = records.page(limit, None, ordered=True)
    if cursor is None:
        return
    rest = records.newest_first[limit:]
    gone = data.draw(st.sampled_from(rest))
    comes = records.identity(1_000)
    del records.times[gone]
    records.times[comes] = NOW + timedelta(minutes=new)
    seen = flat(records.pages(limit, cursor))
    assert [each for each in seen if each != comes] == [each for each in rest if each != gone]
    assert seen == [each for each in records.newest_first if each in seen]
    assert not set(first) & set(seen)

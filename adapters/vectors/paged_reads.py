"""Reads of all matching records, page by page, ordered by id or by a field."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from ...schemas.errors import Fatal
from ..ports import OrderDirection, StoredPoint
from . import point_validation
from .batch_requests import PAGE
from .engine import DENSE, EngineRow, QdrantEngine, ReadConsistency
from .errors import translate_errors
from .shards import Shards


class PagedReads:
    """Reads in pages of `PAGE` records.

    A read is not a snapshot: a record that changes during the read may be returned in its old or new form. Between two
    pages, the read lets other tasks run, because the embedded engine blocks the event loop while it reads a page.
    """

    def __init__(self, *, engine: QdrantEngine, consistency: ReadConsistency, shards: Shards) -> None:
        self._engine = engine
        self._consistency = consistency
        self._shards = shards

    async def by_id(
        self,
        collection: str,
        *,
        tenant_id: str,
        condition: models.Filter,
        limit: int | None,
        from_id: str | None = None,
        wanted: bool | list[str],
    ) -> list[StoredPoint]:
        """Read the records ordered by id, starting at `from_id`."""
        result: list[StoredPoint] = []
        offset: Any = from_id
        while limit is None or len(result) < limit:
            records, offset = await self._page(
                collection, tenant_id, condition, size=_size(limit, result), wanted=wanted, offset=offset
            )
            result += _found(records, tenant_id, collection)
            if offset is None:
                break
            await asyncio.sleep(0)
        return result

    async def by_field(
        self,
        collection: str,
        *,
        tenant_id: str,
        condition: models.Filter,
        order_by: str,
        direction: OrderDirection,
        limit: int | None,
        wanted: bool | list[str],
    ) -> list[StoredPoint]:
        """Read the records ordered by a field. Records without a value come last in both directions."""
        result = await self._with_value(collection, tenant_id, condition, order_by, direction, limit, wanted)
        if limit is not None and len(result) >= limit:
            return result
        lacking = models.IsEmptyCondition(is_empty=models.PayloadField(key=order_by))
        return result + await self.by_id(
            collection,
            tenant_id=tenant_id,
            condition=models.Filter(must=[condition, lacking]),
            limit=None if limit is None else limit - len(result),
            wanted=wanted,
        )

    async def _with_value(
        self,
        collection: str,
        tenant_id: str,
        condition: models.Filter,
        order_by: str,
        direction: OrderDirection,
        limit: int | None,
        wanted: bool | list[str],
    ) -> list[StoredPoint]:
        """Read the records with a value. Ordered pages have no offset: the next page starts at the last value, and
        excludes the ids with this value that were already returned."""
        result: list[StoredPoint] = []
        order = models.OrderBy(key=order_by, direction=models.Direction(direction))
        seen: list[Any] = []
        while limit is None or len(result) < limit:
            size = _size(limit, result)
            excluded = [models.HasIdCondition(has_id=seen)] if seen else None
            rest = models.Filter(must=[condition], must_not=excluded)
            records, _ = await self._page(collection, tenant_id, rest, size=size, wanted=wanted, order=order)
            result += _found(records, tenant_id, collection)
            if len(records) < size:
                break
            last = records[-1].order_value
            if last is None:
                raise Fatal(f"{collection}: Qdrant did not return the order value ({order_by}) of a record")
            if last != order.start_from:
                seen = []
            seen += [each.id for each in records if each.order_value == last]
            order = models.OrderBy(key=order_by, direction=order.direction, start_from=last)
            await asyncio.sleep(0)
        return result

    async def _page(
        self,
        collection: str,
        tenant_id: str,
        condition: models.Filter,
        *,
        size: int,
        wanted: bool | list[str],
        offset: Any = None,
        order: models.OrderBy | None = None,
    ) -> tuple[Sequence[EngineRow], Any]:
        """Read one page. Return its records and the offset of the next page; None after the last page and for an
        ordered page."""
        with translate_errors(f"reading from {collection}" + (f" in the order of {order.key}" if order else "")):
            return await self._engine.scroll(
                collection,
                condition,
                limit=size,
                offset=offset,
                order_by=order,
                with_payload=wanted,
                consistency=self._consistency,
                shard_key_selector=self._shards.keys(tenant_id),
            )


def _size(limit: int | None, result: Sequence[StoredPoint]) -> int:
    return PAGE if limit is None else min(PAGE, limit - len(result))


def _found(records: Sequence[EngineRow], tenant_id: str, collection: str) -> list[StoredPoint]:
    return point_validation.stored_points(records, tenants=(tenant_id,), collection=collection, dense_name=DENSE)

"""Keyset pages of stored records: newest first; records with equal times are in the order of their ids.

A cursor names the first record of a page, so new records do not move pages. Each page takes at most three requests to
the store.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from qdrant_client import models

from ..adapters.ports import StoredPoint, VectorStore
from ..adapters.vectors.conditions import at, before
from ..schemas import ids
from ..schemas.cloudevents import rfc3339
from ..schemas.errors import Fatal

PAGE_MAX = 200
"""Maximum number of records per page."""
CURSOR_MAX = 256
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """A page. `next`: cursor of the next page, or None at the end."""

    items: tuple[R, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The first record of a page. It may have been deleted since the cursor was issued."""

    collection: str
    id: str
    at: datetime | None
    """The value of the record's order field, or None when records are ordered by id."""

    def cursor(self) -> str:
        """Encode the place as an opaque cursor: base64url of JSON."""
        at = None if self.at is None else rfc3339(self.at)
        return base64.urlsafe_b64encode(json.dumps([self.collection, self.id, at]).encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, cursor: str | None, *, collection: str, ordered: bool) -> Place | None:
        """Decode a cursor. Raises ValueError when it does not belong to this kind of page."""
        if cursor is None:
            return None
        wrong = ValueError("this cursor does not belong to this kind of page; start without a cursor")
        if len(cursor) > CURSOR_MAX or not cursor.isascii():
            raise wrong
        try:
            of, identity, at = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            moment = None if at is None else datetime.fromisoformat(at)
        except (binascii.Error, ValueError, TypeError) as error:
            raise wrong from error
        good = of == collection and isinstance(identity, str) and ids.is_derived(identity)
        if not good or (moment is not None) != ordered or (moment is not None and moment.tzinfo is None):
            raise wrong
        return cls(of, identity, moment)


async def read_page(
    store: VectorStore,
    collection: str,
    *,
    tenant_id: str,
    where: models.Filter,
    order_by: str | None,
    limit: int,
    cursor: str | None,
) -> Page[StoredPoint]:
    """Read one page. `order_by` names an indexed field with a time in every record; None orders by id.

    Raises ValueError when the limit or the cursor is invalid.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise ValueError(f"the limit must be 1 to {PAGE_MAX}, not {limit}")
    start = Place.read(cursor, collection=collection, ordered=order_by is not None)
    keyset = _Keyset(store, collection, tenant_id, where)
    found = await keyset.read(start, order_by, limit + 1)
    if len(found) <= limit:
        return Page(tuple(found))
    beyond = found[limit]
    place = Place(collection, beyond.id, None if order_by is None else _moment(beyond, order_by))
    return Page(tuple(found[:limit]), place.cursor())


@dataclass(frozen=True, slots=True)
class _Keyset:
    store: VectorStore
    collection: str
    tenant_id: str
    where: models.Filter

    async def read(self, start: Place | None, order_by: str | None, count: int) -> list[StoredPoint]:
        if order_by is None:
            return await self._by_id(None, from_id=None if start is None else start.id, limit=count)
        if start is None or start.at is None:
            return await self._older(order_by, None, count)
        found = await self._by_id(at(order_by, start.at), from_id=start.id, limit=count)
        if len(found) < count:
            found += await self._older(order_by, start.at, count - len(found))
        return found

    async def _older(self, order_by: str, than: datetime | None, count: int) -> list[StoredPoint]:
        """Read records older than `than`. The store orders records only by time, and the page may end between records
        with equal times. So the records with the last returned time are read again, in the order of their ids."""
        older = None if than is None else before(order_by, than)
        found = await self.store.select(
            self.collection,
            tenant_id=self.tenant_id,
            where=self._and(older),
            order_by=order_by,
            direction="desc",
            limit=count,
        )
        if len(found) < count:
            return _in_order(found, order_by)
        last = _moment(found[-1], order_by)
        whole = _in_order([each for each in found if _moment(each, order_by) != last], order_by)
        return whole + await self._by_id(at(order_by, last), from_id=None, limit=count - len(whole))

    async def _by_id(self, condition: models.Condition | None, *, from_id: str | None, limit: int) -> list[StoredPoint]:
        return await self.store.select(
            self.collection, tenant_id=self.tenant_id, where=self._and(condition), from_id=from_id, limit=limit
        )

    def _and(self, condition: models.Condition | None) -> models.Filter:
        return self.where if condition is None else models.Filter(must=[self.where, condition])


def _in_order(found: Sequence[StoredPoint], order_by: str) -> list[StoredPoint]:
    by_id = sorted(found, key=lambda each: each.id)
    return sorted(by_id, key=lambda each: _moment(each, order_by), reverse=True)


def _moment(found: StoredPoint, field: str) -> datetime:
    try:
        return datetime.fromisoformat(str(found.payload.get(field)))
    except ValueError as error:
        raise Fatal(f"the stored record {found.id} has no time in {field!r}") from error

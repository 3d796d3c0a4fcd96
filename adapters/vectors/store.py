"""The vector store: every read and write of the stages and commands, over any `QdrantEngine`.

What it adds to an engine: a tenant inside every query, and looked at again in every payload that comes back;
conditional writes; paging; one encoder for words; the memory of which embedder filled a collection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from ...schemas.collections import COLLECTIONS, TENANT_FIELD, CollectionSpec
from ...schemas.errors import Fatal
from ...schemas.ids import is_derived
from ..ports import CasResult, EmbedderIdentity, Found, OrderDirection, Payload, Point
from . import checks
from .collections import checked_version, ensure_collections
from .engine import DENSE, SPARSE, QdrantEngine
from .errors import translated
from .lexical import LexicalEncoder

PAGE = 1_000
"""Records asked for at once."""
CHUNK_POINTS = 100
CHUNK_BYTES = 8 * 1024 * 1024
"""An upsert is cut here: the server refuses requests above 32 MiB."""
STRONG = models.WriteOrdering.STRONG
MAJORITY = models.ReadConsistencyType.MAJORITY


@dataclass(frozen=True, slots=True)
class _Encoded:
    tenant_id: str
    size: int
    """Bytes of the payload."""
    point: models.PointStruct


class QdrantStore:
    """`VectorStore` (see the port) over an engine.

    Ids must be derived from their tenant (schemas/ids.py does): a write under an id that another tenant's point has
    changes nothing.
    """

    def __init__(
        self,
        *,
        engine: QdrantEngine,
        embedder: EmbedderIdentity,
        on_close: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """`on_close` is called before the engine is closed, in order (the loopback server that stands before it)."""
        self._engine = engine
        self._embedder = embedder
        self._on_close = tuple(on_close)
        self._encoder = LexicalEncoder()
        self._specs = {spec.name: spec for spec in COLLECTIONS}

    # -------------------------------------------------------------------------------------------- collections
    async def ensure(self, *collections: str) -> None:
        """Create what is missing of these collections, by default of all: collection, alias, payload indexes.

        `Fatal` when another embedder filled one, or the server is too old. Safe to run in many processes at once.
        """
        specs = [self._spec(name) for name in collections] if collections else list(COLLECTIONS)
        with translated("preparing the collections"):
            await ensure_collections(self._engine, specs=specs, embedder=self._embedder)

    async def exists(self, collection: str) -> bool:
        """Whether readers can use it: its alias stands and leads to a collection."""
        self._spec(collection)
        with translated(f"looking for {collection}"):
            aliases = {each.alias_name: each.collection_name for each in (await self._engine.get_aliases()).aliases}
            return collection in aliases and await self._engine.collection_exists(aliases[collection])

    async def ping(self) -> None:
        with translated("looking for Qdrant"):
            await self._engine.get_aliases()

    async def version(self) -> str:
        """The server's version (for the embedded engine, of the server whose features it has). `Transient` when it
        does not answer; `Fatal` when it is too old, naming the version that is needed."""
        with translated("looking for Qdrant"):
            return await checked_version(self._engine)

    # -------------------------------------------------------------------------------------------- reads
    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, Found]:
        self._spec(collection)
        result: dict[str, Found] = {}
        for page in _pages([each for each in dict.fromkeys(ids) if is_derived(each)], PAGE):
            for each in await self._by_ids(collection, tenant_id, page, with_dense=with_dense):
                result[each.id] = each
        return result

    async def select(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str | None = None,
        direction: OrderDirection = "asc",
        limit: int | None = None,
    ) -> list[Found]:
        """All that match, in pages of 1 000: not a snapshot, a record that changes meanwhile may come as it was or
        as it is. Records without a value in `order_by` come last, whichever the direction."""
        self._spec(collection)
        condition = _of_tenant(tenant_id, where)
        if order_by is None:
            return await self._select_by_id(collection, tenant_id, condition, limit)
        result = await self._select_ordered(collection, tenant_id, condition, order_by, direction, limit)
        if limit is None or len(result) < limit:
            lacking = models.IsEmptyCondition(is_empty=models.PayloadField(key=order_by))
            rest = None if limit is None else limit - len(result)
            result += await self._select_by_id(collection, tenant_id, models.Filter(must=[condition, lacking]), rest)
        return result

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[Found]:
        self._with_vectors(collection)
        checks.check_dense(dense, self._embedder.dimension, f"{collection}: query")
        return await self._query(collection, tenant_id, list(dense), DENSE, where, limit)

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[Found]:
        """By words (BM25), best first; nothing when `text` has no word that is indexed.

        Scores compare within one answer only: they depend on all texts of the collection, deleted ones included.
        """
        self._with_vectors(collection)
        sparse = self._encoder.query(text)
        if sparse is None:
            return []
        return await self._query(collection, tenant_id, sparse, SPARSE, where, limit)

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int:
        self._spec(collection)
        with translated(f"counting {collection}"):
            return (await self._engine.count(collection, _of_tenant(tenant_id, where), exact=True)).count

    # -------------------------------------------------------------------------------------------- writes
    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        for batch in _batches(self._encoded(collection, points)):
            with translated(f"inserting into {collection}"):
                await self._engine.upsert(
                    collection, batch, wait=True, ordering=STRONG, update_mode=models.UpdateMode.INSERT_ONLY
                )

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        by_tenant: dict[str, list[_Encoded]] = {}
        for each in self._encoded(collection, points):
            by_tenant.setdefault(each.tenant_id, []).append(each)
        for tenant_id, encoded in by_tenant.items():
            for batch in _batches(encoded):
                with translated(f"writing to {collection}"):
                    await self._engine.upsert(
                        collection, batch, wait=True, ordering=STRONG, update_filter=_of_tenant(tenant_id)
                    )

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        """As in the port. A field given as None is removed: Qdrant keeps no null that was set so, and asks for both
        by `is_empty`."""
        self._spec(collection)
        checks.payload_size(fields, f"{collection}: set_payload")
        if TENANT_FIELD in fields:
            raise Fatal(f"{collection}: {TENANT_FIELD} of a point cannot be changed")
        for page in _pages(list(ids), PAGE):
            with translated(f"writing fields in {collection}"):
                await self._engine.set_payload(
                    collection, fields, _with_ids(tenant_id, page), wait=True, ordering=STRONG
                )

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None:
        self._spec(collection)
        for page in _pages(list(ids), PAGE):
            with translated(f"deleting from {collection}"):
                await self._engine.delete(collection, _with_ids(tenant_id, page), wait=True, ordering=STRONG)

    async def compare_and_set(
        self, collection: str, point: Point, *, expected_version: int | None, cause: str
    ) -> CasResult:
        """As in the port. Two writers of one cause may both be told `written`; it is applied once.

        The engine never tells whether a condition matched, hence the second read. A conditional upsert alone would
        insert a point that is missing, and bring an erased row back: hence INSERT_ONLY or UPDATE_ONLY, never both.
        """
        [encoded] = self._encoded(collection, [point])
        tenant_id, written = encoded.tenant_id, encoded.point
        if cause not in _applied(point.payload):
            raise Fatal(f"{collection}: point {point.id} does not carry its cause {cause} in `applied`")
        stored = await self._read_for_write(collection, tenant_id, point.id)
        if stored is not None and cause in _applied(stored.payload):
            return "already"
        if (None if stored is None else stored.payload.get("version")) != expected_version:
            return "conflict"
        with translated(f"writing to {collection} under a condition"):
            if expected_version is None:
                await self._engine.upsert(
                    collection, [written], wait=True, ordering=STRONG, update_mode=models.UpdateMode.INSERT_ONLY
                )
            else:
                await self._engine.upsert(
                    collection,
                    [written],
                    wait=True,
                    ordering=STRONG,
                    update_filter=_of_tenant(tenant_id, _equals("version", expected_version)),
                    update_mode=models.UpdateMode.UPDATE_ONLY,
                )
        stored = await self._read_for_write(collection, tenant_id, point.id)
        return "written" if stored is not None and cause in _applied(stored.payload) else "conflict"

    async def close(self) -> None:
        for close in self._on_close:
            await close()
        with translated("closing Qdrant"):
            await self._engine.close()

    # -------------------------------------------------------------------------------------------- within
    def _spec(self, collection: str) -> CollectionSpec:
        try:
            return self._specs[collection]
        except KeyError:
            raise Fatal(f"there is no collection {collection!r}; known: {', '.join(self._specs)}") from None

    def _with_vectors(self, collection: str) -> None:
        if not self._spec(collection).has_vectors:
            raise Fatal(f"the collection {collection!r} has no vectors to search by")

    async def _read_for_write(self, collection: str, tenant_id: str, point_id: str) -> Found | None:
        rows = await self._by_ids(collection, tenant_id, [point_id], consistency=MAJORITY)
        return rows[0] if rows else None

    async def _by_ids(
        self,
        collection: str,
        tenant_id: str,
        ids: Sequence[str],
        *,
        with_dense: bool = False,
        consistency: models.ReadConsistencyType | None = None,
    ) -> list[Found]:
        # A scroll, not `retrieve`: that one takes no filter, and the tenant belongs into the query.
        with translated(f"reading from {collection}"):
            records, _ = await self._engine.scroll(
                collection,
                _with_ids(tenant_id, ids),
                limit=len(ids),
                with_vectors=[DENSE] if with_dense else False,
                consistency=consistency,
            )
        return self._found(records, tenant_id, collection)

    async def _select_by_id(
        self, collection: str, tenant_id: str, condition: models.Filter, limit: int | None
    ) -> list[Found]:
        result: list[Found] = []
        offset: Any = None
        while limit is None or len(result) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(result))
            with translated(f"reading from {collection}"):
                records, offset = await self._engine.scroll(collection, condition, limit=size, offset=offset)
            result += self._found(records, tenant_id, collection)
            if offset is None:
                break
            await asyncio.sleep(0)  # the embedded engine runs inline: others get their turn between pages
        return result

    async def _select_ordered(
        self,
        collection: str,
        tenant_id: str,
        condition: models.Filter,
        order_by: str,
        direction: OrderDirection,
        limit: int | None,
    ) -> list[Found]:
        """Ordered pages have no offset: the next begins at the last value seen, without the ids seen at that value."""
        result: list[Found] = []
        order = models.OrderBy(key=order_by, direction=models.Direction(direction))
        seen: list[Any] = []
        while limit is None or len(result) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(result))
            excluded = [models.HasIdCondition(has_id=seen)] if seen else None
            with translated(f"reading from {collection} in the order of {order_by}"):
                records, _ = await self._engine.scroll(
                    collection, models.Filter(must=[condition], must_not=excluded), limit=size, order_by=order
                )
            result += self._found(records, tenant_id, collection)
            if len(records) < size:
                break
            last = records[-1].order_value
            if last is None:
                raise Fatal(f"{collection}: Qdrant does not tell the value a record was ordered by ({order_by})")
            if last != order.start_from:
                seen = []
            seen += [each.id for each in records if each.order_value == last]
            order = models.OrderBy(key=order_by, direction=order.direction, start_from=last)
            await asyncio.sleep(0)
        return result

    async def _query(
        self,
        collection: str,
        tenant_id: str,
        query: list[float] | models.SparseVector,
        using: str,
        where: models.Filter | None,
        limit: int,
    ) -> list[Found]:
        with translated(f"searching {collection}"):
            answer = await self._engine.query_points(
                collection, query=query, using=using, query_filter=_of_tenant(tenant_id, where), limit=limit
            )
        return self._found(answer.points, tenant_id, collection)

    def _found(
        self, records: Sequence[models.Record | models.ScoredPoint], tenant_id: str, collection: str
    ) -> list[Found]:
        return checks.found(records, tenant_id=tenant_id, collection=collection, dense_name=DENSE)

    def _encoded(self, collection: str, points: Sequence[Point]) -> list[_Encoded]:
        """All points are looked at before the first is written."""
        spec = self._spec(collection)
        encoded = []
        for point in points:
            what = f"{collection}: point {point.id}"
            tenant_id = checks.tenant_of(point, collection)
            size = checks.payload_size(point.payload, what)
            vector = self._vectors(spec, point, what)
            encoded.append(
                _Encoded(tenant_id, size, models.PointStruct(id=point.id, vector=vector, payload=point.payload))
            )
        return encoded

    def _vectors(self, spec: CollectionSpec, point: Point, what: str) -> dict[str, Any]:
        vectors: dict[str, Any] = {}
        if not spec.has_vectors:
            if point.dense is not None or point.text is not None:
                raise Fatal(f"{what}: the collection {spec.name!r} has no vectors")
            return vectors
        if point.dense is not None:
            checks.check_dense(point.dense, self._embedder.dimension, what)
            vectors[DENSE] = list(point.dense)
        if point.text is not None and (sparse := self._encoder.document(point.text)) is not None:
            vectors[SPARSE] = sparse
        return vectors


def _batches(encoded: Iterable[_Encoded]) -> Iterator[list[models.PointStruct]]:
    """Cut so that each request stays below the server's limits."""
    batch: list[models.PointStruct] = []
    size = 0
    for each in encoded:
        if batch and (len(batch) >= CHUNK_POINTS or size + each.size > CHUNK_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each.point)
        size += each.size
    if batch:
        yield batch


def _equals(key: str, value: str | int) -> models.Filter:
    return models.Filter(must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))])


def _of_tenant(tenant_id: str, where: models.Filter | None = None) -> models.Filter:
    if not tenant_id:
        raise Fatal("a query needs a tenant")
    tenant = _equals(TENANT_FIELD, tenant_id)
    return tenant if where is None else models.Filter(must=[tenant, where])


def _with_ids(tenant_id: str, ids: Sequence[str]) -> models.Filter:
    return _of_tenant(tenant_id, models.Filter(must=[models.HasIdCondition(has_id=list(ids))]))


def _pages(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _applied(payload: Payload) -> Sequence[Any]:
    applied = payload.get("applied")
    return applied if isinstance(applied, list) else ()

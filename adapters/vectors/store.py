"""Vector store: every read and write of stages and commands, over any `QdrantEngine`.

It adds to an engine: a tenant filter in every query, and a second check of the tenant in every returned payload;
conditional writes; batches over concurrent events (point_batcher.py); paging; one encoder for words; and a record of
each collection's embedder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from qdrant_client import models

from ...schemas.collections import COLLECTIONS, TENANT_FIELD, CollectionSpec, Consistency, Sharding, spec_of
from ...schemas.errors import Fatal
from ...schemas.ids import is_derived
from ..batching.coalescer import CoalescePolicy
from ..ports import (
    CasResult,
    EmbedderIdentity,
    NewWindow,
    OrderDirection,
    Payload,
    Point,
    RankedPoint,
    Ranking,
    StoredPoint,
)
from . import point_validation
from .batch_requests import CompareAndSet, EncodedPoint, FilterQuery, PointIds, RequestBatcher
from .collections import check_server_version, ensure_collections
from .embedded.edge import EdgeEngine
from .embedder_change import EmbedderChange
from .engine import DENSE, READ_CONSISTENCY, SEARCH, SPARSE, QdrantEngine
from .errors import translate_errors
from .filters import of_tenant
from .paged_reads import PagedReads
from .point_batcher import POLICY, PointBatcher
from .point_encoder import PointEncoder, VectorQuery, require_vectors
from .shards import Shards, check_cluster, check_method
from .sparse_form import EmbeddingForms

FEW = 64
"""Maximum number of records of a read's first request. This request is batched with concurrent requests. Most reads
need no further request."""


class QdrantStore:
    """`VectorStore` over an engine.

    Ids must be derived from their tenant (schemas/ids.py does this). A write with the id of another tenant's point
    changes nothing.
    """

    def __init__(
        self,
        *,
        engine: QdrantEngine,
        embedder: EmbedderIdentity,
        on_close: Sequence[Callable[[], Awaitable[None]]] = (),
        gathering: CoalescePolicy = POLICY,
        consistency: Consistency = "one",
        sharding: Sharding = "auto",
    ) -> None:
        """`gathering` is the batching policy. `consistency` is the number of replicas that a read asks. `sharding` is
        the sharding method of the collections. `on_close` functions are called in order before the engine is closed
        (for example to stop the loopback server)."""
        self._engine = engine
        self._embedder = embedder
        self._on_close = tuple(on_close)
        self._consistency = READ_CONSISTENCY[consistency]
        self._shards = Shards(sharding)
        self._bulk = RequestBatcher(engine=engine, consistency=self._consistency, shards=self._shards)
        self._records = PointBatcher(bulk=self._bulk, policy=gathering)
        self._pages = PagedReads(engine=engine, consistency=self._consistency, shards=self._shards)
        self._encoder = PointEncoder(embedder)
        self._forms = EmbeddingForms(engine=engine, embedder=embedder)
        self._together: ContextVar[set[str] | None] = ContextVar("memstream_written_together", default=None)
        self._specs = {spec.name: spec for spec in COLLECTIONS}

    # -------------------------------------------------------------------------------------------- collections
    async def ensure(self, *collections: str) -> None:
        """Create the missing parts of these collections (default: all collections): collection, alias, payload indexes.

        Raise `Fatal` when another embedder filled a collection, or when the server is too old. Many processes may call
        this concurrently.
        """
        specs = [self._spec(name) for name in collections] if collections else list(COLLECTIONS)
        with translate_errors("preparing the collections"):
            await ensure_collections(
                self._engine, specs=specs, embedder=self._embedder, by_tenant=self._shards.by_tenant
            )
        self._forms.forget()

    async def exists(self, collection: str) -> bool:
        """Return whether readers can use the collection: its alias exists and points to a collection. Raise `Fatal`
        when the collection's sharding method differs from the settings."""
        self._spec(collection)
        with translate_errors(f"looking for {collection}"):
            aliases = {each.alias_name: each.collection_name for each in (await self._engine.get_aliases()).aliases}
            if collection not in aliases or not await self._engine.collection_exists(aliases[collection]):
                return False
            await check_method(self._engine, aliases[collection], by_tenant=self._shards.by_tenant)
            return True

    def embedder_change(self) -> EmbedderChange:
        """Return the steps that move this store's collections to another embedder."""
        return EmbedderChange(
            engine=self._engine, records=self._bulk, shards=self._shards, consistency=self._consistency
        )

    async def ping(self) -> None:
        with translate_errors("looking for Qdrant"):
            await self._engine.get_aliases()

    async def version(self) -> str:
        """Return the server's version; for the embedded engine, the server version with the same features. Raise
        `Transient` when it does not answer; `Fatal` when it is too old, or does not support tenant shards. The message
        names the requirement."""
        with translate_errors("looking for Qdrant"):
            version = await check_server_version(self._engine)
            if self._shards.by_tenant:
                await check_cluster(self._engine)
            return version

    # -------------------------------------------------------------------------------------------- reads
    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        self._spec(collection)
        return await self._records.read(collection, _named(tenant_id, ids), with_dense=with_dense)

    async def select(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str | None = None,
        direction: OrderDirection = "asc",
        limit: int | None = None,
        from_id: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> list[StoredPoint]:
        """Return all matching records, in pages of 1 000. The result is not a snapshot: a record that changes during
        the read may be returned in its old or new form. Records without a value in `order_by` come last in both
        directions."""
        self._spec(collection)
        condition = of_tenant(tenant_id, where)
        return await self._select(collection, tenant_id, condition, order_by, direction, limit, from_id, fields)

    async def _select(
        self,
        collection: str,
        tenant_id: str,
        condition: models.Filter,
        order_by: str | None,
        direction: OrderDirection,
        limit: int | None,
        from_id: str | None,
        fields: Sequence[str] | None,
    ) -> list[StoredPoint]:
        if order_by is None and from_id is None and fields is None and (limit is None or limit <= FEW):
            size = FEW if limit is None else limit
            keys = self._shards.keys(tenant_id)
            few = models.QueryRequest(filter=condition, limit=size, with_payload=True, shard_key=keys)
            found = await self._records.query(collection, FilterQuery(tenant_id, few))
            if limit is not None or len(found) < size:
                return found
        wanted = True if fields is None else [TENANT_FIELD, *fields]
        if order_by is None:
            return await self._pages.by_id(
                collection, tenant_id=tenant_id, condition=condition, limit=limit, from_id=from_id, wanted=wanted
            )
        if from_id is not None:
            raise Fatal(f"{collection}: from_id needs the order of ids, not the order of {order_by}")
        return await self._pages.by_field(
            collection,
            tenant_id=tenant_id,
            condition=condition,
            order_by=order_by,
            direction=direction,
            limit=limit,
            wanted=wanted,
        )

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        query = self._encoder.dense(self._with_vectors(collection), dense)
        return await self._query(collection, tenant_id, query, DENSE, where, limit)

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """Search by words (BM25), best first. Return an empty list when `text` has no indexed word.

        Scores are comparable within one answer only, because they depend on all texts of the collection, including
        deleted texts.
        """
        self._with_vectors(collection)
        return await self._by_words(collection, tenant_id, self._encoder.words(text), where, limit)

    async def _by_words(
        self,
        collection: str,
        tenant_id: str,
        words: models.SparseVector | None,
        where: models.Filter | None,
        limit: int,
    ) -> list[StoredPoint]:
        return [] if words is None else await self._query(collection, tenant_id, words, SPARSE, where, limit)

    async def search(
        self,
        collection: str,
        *,
        tenant_id: str,
        rankings: Sequence[Ranking],
        where: models.Filter | None = None,
        limit: int,
    ) -> list[Sequence[RankedPoint]]:
        """Run several rankings in one request. A ranking by words without an indexed word is empty and needs no
        request."""
        spec = self._with_vectors(collection)
        queries = [self._encoder.ranking(spec, each) for each in rankings]
        condition, limits = of_tenant(tenant_id, where), [limit] * len(queries)
        found = await self._rank(collection, tenant_id, condition, queries, limits=limits)
        return [list(each) for each in found]

    async def _rank(
        self,
        collection: str,
        tenant_id: str,
        condition: models.Filter,
        queries: Sequence[VectorQuery],
        *,
        limits: Sequence[int],
    ) -> list[Sequence[RankedPoint]]:
        """Run one search for each query. A query of None or a limit of 0 gives an empty result."""
        encode = await self._forms.encode(collection)
        requests = [
            # Built without validation: the vectors are already validated, and each has thousands of numbers.
            models.QueryRequest.model_construct(
                query=encode(query) if isinstance(query, list) else query,
                using=using,
                filter=condition,
                params=SEARCH,
                limit=limit,
                with_payload=False,
                shard_key=self._shards.keys(tenant_id),
            )
            for (query, using), limit in zip(queries, limits, strict=True)
            if query is not None and limit > 0
        ]
        if not requests:
            return [() for _ in queries]
        with translate_errors(f"searching {collection}"):
            answers = iter(await self._engine.query_batch_points(collection, requests, consistency=self._consistency))
        return [
            () if query is None or limit <= 0 else next(answers).points
            for (query, _), limit in zip(queries, limits, strict=True)
        ]

    async def last(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str,
        limit: int,
    ) -> list[StoredPoint]:
        self._spec(collection)
        order = models.OrderByQuery(order_by=models.OrderBy(key=order_by, direction=models.Direction.DESC))
        request = models.QueryRequest(
            query=order,
            filter=of_tenant(tenant_id, where),
            limit=limit,
            with_payload=True,
            shard_key=self._shards.keys(tenant_id),
        )
        return await self._records.query(collection, FilterQuery(tenant_id, request))

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int:
        self._spec(collection)
        with translate_errors(f"counting {collection}"):
            counted = await self._engine.count(
                collection,
                of_tenant(tenant_id, where),
                exact=True,
                shard_key_selector=self._shards.keys(tenant_id),
            )
            return counted.count

    # -------------------------------------------------------------------------------------------- writes
    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        await self._records.insert(collection, await self._encoded(collection, points))
        await self._written(collection)

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        await self._records.put(collection, await self._encoded(collection, points))
        await self._written(collection)

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        """Write single fields. For a value of None, Qdrant removes the field instead of storing a null. `is_empty`
        matches a missing field and a null."""
        self._spec(collection)
        point_validation.payload_size(fields, f"{collection}: set_payload")
        if TENANT_FIELD in fields:
            raise Fatal(f"{collection}: {TENANT_FIELD} of a point cannot be changed")
        await self._records.set_payload(collection, _named(tenant_id, ids), fields)
        await self._written(collection)

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        encode = await self._forms.encode(collection)
        updates = self._encoder.windows(self._spec(collection), points, tenant_id=tenant_id, encode=encode)
        weight = sum(len(point.text or "") for point in points)
        await self._records.update_vectors(collection, updates, weight=weight)
        await self._written(collection)

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None:
        self._spec(collection)
        await self._records.delete(collection, _named(tenant_id, ids))
        await self._written(collection)

    async def compare_and_set(
        self, collection: str, point: Point, *, expected_version: int | None, cause: str
    ) -> CasResult:
        """Write one point conditionally."""
        spec = self._spec(collection)
        [encoded] = await self._encoded(collection, [point])
        if cause not in encoded.applied:
            raise Fatal(f"{collection}: point {point.id} does not have its cause {cause} in `applied`")
        swap = CompareAndSet(encoded, expected_version, cause, spec.counted)
        result = await self._records.compare_and_set(collection, swap)
        await self._written(collection)
        return result

    @asynccontextmanager
    async def writes_together(self) -> AsyncIterator[None]:
        written: set[str] = set()
        token = self._together.set(written)
        try:
            yield
        finally:
            self._together.reset(token)
        await asyncio.gather(*map(self._written, written))

    async def close(self) -> None:
        await self._records.drain()
        for close in self._on_close:
            await close()
        with translate_errors("closing Qdrant"):
            await self._engine.close()

    # -------------------------------------------------------------------------------------------- internals
    async def _encoded(self, collection: str, points: Sequence[Point]) -> list[EncodedPoint]:
        spec = self._spec(collection)
        encode = await self._forms.encode(collection) if spec.has_vectors else list
        return self._encoder.points(spec, points, encode=encode)

    async def _written(self, collection: str) -> None:
        """Return when the writes of a collection are durable. Within a block of `writes_together`, return immediately;
        the end of the block waits."""
        together = self._together.get()
        if together is not None:
            together.add(collection)
        elif isinstance(self._engine, EdgeEngine):
            await self._engine.synced(collection)

    def _spec(self, collection: str) -> CollectionSpec:
        spec = self._specs.get(collection) or spec_of(collection)
        if spec is None:
            raise Fatal(f"there is no collection {collection!r}; known: {', '.join(self._specs)}")
        self._specs.setdefault(collection, spec)
        return spec

    def _with_vectors(self, collection: str) -> CollectionSpec:
        spec = self._spec(collection)
        require_vectors(spec)
        return spec

    async def _query(
        self,
        collection: str,
        tenant_id: str,
        query: list[float] | models.SparseVector,
        using: str,
        where: models.Filter | None,
        limit: int,
    ) -> list[StoredPoint]:
        encode = await self._forms.encode(collection)
        request = models.QueryRequest.model_construct(  # built without validation, as in `_rank`
            query=encode(query) if isinstance(query, list) else query,
            using=using,
            filter=of_tenant(tenant_id, where),
            params=SEARCH,
            limit=limit,
            with_payload=True,
            shard_key=self._shards.keys(tenant_id),
        )
        return await self._records.query(collection, FilterQuery(tenant_id, request))


def _named(tenant_id: str, ids: Sequence[str]) -> PointIds:
    """Return the valid ids. Other ids match no point, and Qdrant refuses ids that are not UUIDs."""
    wanted = tuple(each for each in dict.fromkeys(ids) if is_derived(each))
    return PointIds(point_validation.require_tenant(tenant_id), wanted)

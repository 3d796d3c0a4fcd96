"""Writes and reads by id for several events and tenants, in as few requests as possible.

- read: one scroll over the ids of all tenants; each caller gets only the records of its own tenant
- insert: one upsert, INSERT_ONLY
- put: one upsert whose `update_filter` binds each id to its tenant
- set fields, new vectors, delete: one request whose filter binds each id to its tenant
- query: one batch, each query with its own filter
- compare and set: an INSERT_ONLY upsert for rows that are expected to be absent; an UPDATE_ONLY upsert for the other
  rows; then a read, to find out which writes took effect. The `update_filter` of the UPDATE_ONLY upsert requires for
  each id its tenant, its expected version and its counter fields of another stage, and the absence of its cause.

A filter is evaluated for each point of an upsert, and `has_id` is an ordinary condition. Therefore each point of a
request can have its own condition. The caller validates points (point_validation.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qdrant_client import models

from ...schemas.collections import TENANT_FIELD
from ...schemas.errors import Fatal
from ..ports import CasResult, Payload, StoredPoint
from . import point_validation
from .conditions import equals, same
from .embedded.edge import EdgeEngine
from .engine import DENSE, ORDERING, QdrantEngine, ReadConsistency
from .errors import foreign_answer, translate_errors
from .filters import each_of, either, of_points, of_tenants
from .shards import ShardKeys, Shards

PAGE = 1_000
"""Maximum number of records in one read request."""
CHUNK_POINTS = 100
CHUNK_BYTES = 8 * 1024 * 1024
"""Maximum payload bytes of one upsert request. The server refuses requests above 32 MiB."""


@dataclass(frozen=True, slots=True)
class EncodedPoint:
    """A validated point, in the form that the engine accepts."""

    tenant_id: str
    size: int
    """Bytes of the payload."""
    point: models.PointStruct

    @property
    def id(self) -> str:
        return str(self.point.id)

    @property
    def applied(self) -> Sequence[Any]:
        return applied(self.point.payload or {})


@dataclass(frozen=True, slots=True)
class PointIds:
    """Ids of points of one tenant."""

    tenant_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompareAndSet:
    """One conditional write; see `VectorStore.compare_and_set`."""

    new: EncodedPoint
    expected_version: int | None
    cause: str
    counted: tuple[str, ...] = ()
    """The counter fields of another stage; see `CollectionSpec.counted`."""

    def over(self, row: Payload) -> CompareAndSet | None:
        """Return this write with the counter fields of `row`. None unless the row has the expected version and changed
        counters."""
        payload = self.new.point.payload or {}
        if self.expected_version is None or row.get("version") != self.expected_version:
            return None
        if all(payload.get(field) == row.get(field) for field in self.counted):
            return None
        others = {field: value for field, value in payload.items() if field not in self.counted}
        carried = {field: row[field] for field in self.counted if field in row}
        point = self.new.point.model_copy(update={"payload": others | carried})
        return replace(self, new=replace(self.new, point=point))


@dataclass(frozen=True, slots=True)
class VectorUpdate:
    """New vectors for an existing point."""

    tenant_id: str
    point: models.PointVectors

    @property
    def id(self) -> str:
        return str(self.point.id)


@dataclass(frozen=True, slots=True)
class FilterQuery:
    """A query whose filter contains the tenant."""

    tenant_id: str
    request: models.QueryRequest


class RequestBatcher:
    """Batched requests to one engine. Where tenants have shards, one request for each shard (shards.py).

    Within one call, no two members may name the same point, except in reads. All reads have the same `consistency`,
    including the reads of a compare and set. With an embedded engine, a write returns before it is durable, and the
    caller awaits `EdgeEngine.synced`.
    """

    def __init__(self, *, engine: QdrantEngine, consistency: ReadConsistency, shards: Shards) -> None:
        self._engine = engine
        self._consistency = consistency
        self._shards = shards
        self._wait = not isinstance(engine, EdgeEngine)

    async def read(
        self,
        collection: str,
        requests: Sequence[PointIds],
        *,
        with_dense: bool = False,
    ) -> list[dict[str, StoredPoint]]:
        """Return the existing records of each request, by id. A record of another tenant counts as absent."""
        found: dict[tuple[str, str], StoredPoint] = {}

        async def send(requests: Sequence[PointIds], shard_keys: ShardKeys) -> None:
            ids = list(dict.fromkeys(each for named in requests for each in named.ids))
            tenants = list(dict.fromkeys(named.tenant_id for named in requests))
            for page in pages(ids, PAGE):
                # Use `scroll`: the query must contain the tenant, and `retrieve` accepts no filter.
                with translate_errors(f"reading from {collection}"):
                    records, _ = await self._engine.scroll(
                        collection,
                        of_tenants(tenants, page),
                        limit=len(page),
                        with_vectors=[DENSE] if with_dense else False,
                        consistency=self._consistency,
                        shard_key_selector=shard_keys,
                    )
                for each in point_validation.stored_points(
                    records, tenants=tenants, collection=collection, dense_name=DENSE
                ):
                    found[str(each.payload[TENANT_FIELD]), each.id] = each

        await self._shards.each(requests, send)
        return [
            {each: found[named.tenant_id, each] for each in named.ids if (named.tenant_id, each) in found}
            for named in requests
        ]

    async def query(self, collection: str, requests: Sequence[FilterQuery]) -> list[list[StoredPoint]]:
        doing = f"searching {collection}"
        with translate_errors(doing):
            answers = await self._engine.query_batch_points(
                collection, [each.request for each in requests], consistency=self._consistency
            )
        if len(answers) != len(requests):
            raise foreign_answer(doing, f"{len(answers)} lists for {len(requests)} queries")
        return [
            point_validation.scored_points(answer.points, tenants=(each.tenant_id,), collection=collection)
            for each, answer in zip(requests, answers, strict=True)
        ]

    async def insert(self, collection: str, points: Sequence[EncodedPoint]) -> None:
        await self._upsert(collection, points, f"inserting into {collection}", mode=models.UpdateMode.INSERT_ONLY)

    async def put(self, collection: str, points: Sequence[EncodedPoint]) -> None:
        await self._upsert(collection, points, f"writing to {collection}", only=_own_points)

    async def _upsert(
        self,
        collection: str,
        points: Sequence[EncodedPoint],
        doing: str,
        *,
        only: Callable[[Sequence[EncodedPoint]], models.Filter] | None = None,
        mode: models.UpdateMode | None = None,
    ) -> None:
        """Write points. `only` returns the filter of existing points that a batch may replace; None: all points."""

        async def send(points: Sequence[EncodedPoint], shard_keys: ShardKeys) -> None:
            for batch in _batches(points):
                with translate_errors(doing):
                    await self._engine.upsert(
                        collection,
                        [each.point for each in batch],
                        wait=self._wait,
                        ordering=ORDERING,
                        shard_key_selector=shard_keys,
                        update_filter=None if only is None else only(batch),
                        update_mode=mode,
                    )

        await self._shards.each(points, send)

    async def set_payload(self, collection: str, named: Sequence[PointIds], fields: Payload) -> None:
        async def send(named: Sequence[PointIds], shard_keys: ShardKeys) -> None:
            for page in _named_pages(named):
                with translate_errors(f"writing fields in {collection}"):
                    await self._engine.set_payload(
                        collection,
                        fields,
                        page,
                        wait=self._wait,
                        ordering=ORDERING,
                        shard_key_selector=shard_keys,
                    )

        await self._shards.each(named, send)

    async def update_vectors(self, collection: str, points: Sequence[VectorUpdate]) -> None:
        async def send(points: Sequence[VectorUpdate], shard_keys: ShardKeys) -> None:
            await self._update_vectors(collection, points, shard_keys)

        await self._shards.each(points, send)

    async def _update_vectors(self, collection: str, points: Sequence[VectorUpdate], shard_keys: ShardKeys) -> None:
        """Replace vectors of existing points. The engine refuses a request that contains an absent point. After such a
        refusal, read which points exist, and send a request with these points only. Repeat this when another point
        disappears in the meantime."""
        left = list(points)
        while left:
            groups = ((each.tenant_id, (each.id,)) for each in left)
            try:
                with translate_errors(f"writing vectors in {collection}"):
                    await self._engine.update_vectors(
                        collection,
                        [each.point for each in left],
                        wait=self._wait,
                        ordering=ORDERING,
                        shard_key_selector=shard_keys,
                        update_filter=each_of(groups),
                    )
                return
            except Fatal:
                named = [PointIds(each.tenant_id, (each.id,)) for each in left]
                existing = await self.read(collection, named)
                there = [each for each, found in zip(left, existing, strict=True) if found]
                if len(there) == len(left):
                    raise
                left = there

    async def delete(self, collection: str, named: Sequence[PointIds]) -> None:
        async def send(named: Sequence[PointIds], shard_keys: ShardKeys) -> None:
            for page in _named_pages(named):
                with translate_errors(f"deleting from {collection}"):
                    await self._engine.delete(
                        collection, page, wait=self._wait, ordering=ORDERING, shard_key_selector=shard_keys
                    )

        await self._shards.each(named, send)

    async def compare_and_set(self, collection: str, swaps: Sequence[CompareAndSet]) -> list[CasResult]:
        """Write each row whose condition holds. The engine does not report whether a condition matched, so the rows are
        read afterwards. Each request is INSERT_ONLY or UPDATE_ONLY, because a plain upsert with a filter would also
        insert a missing point, and thus restore an erased row.

        If another stage changed a counter of a row after the caller read the row, the write is repeated with the new
        counters, until the counters no longer change.
        """
        results: dict[str, CasResult] = {}
        left = list(swaps)
        while left:
            # Change existing rows first, so that an old row is closed before the row that replaces it exists.
            await self._replace(collection, [swap for swap in left if swap.expected_version is not None])
            await self.insert(collection, [swap.new for swap in left if swap.expected_version is None])
            found = await self.read(collection, [PointIds(swap.new.tenant_id, (swap.new.id,)) for swap in left])
            again = []
            for swap, rows in zip(left, found, strict=True):
                row = rows[swap.new.id].payload if rows else {}
                results[swap.new.id] = "applied" if swap.cause in applied(row) else "conflict"
                if results[swap.new.id] == "conflict" and (counted := swap.over(row)) is not None:
                    again.append(counted)
            left = again
        return [results[swap.new.id] for swap in swaps]

    async def _replace(self, collection: str, swaps: Sequence[CompareAndSet]) -> None:
        by_id = {swap.new.id: swap for swap in swaps}
        await self._upsert(
            collection,
            [swap.new for swap in swaps],
            f"writing to {collection} under a condition",
            only=lambda batch: either(_before(by_id[each.id]) for each in batch),
            mode=models.UpdateMode.UPDATE_ONLY,
        )


def applied(payload: Payload) -> Sequence[Any]:
    """Return the causes that are recorded in a row."""
    causes = payload.get("applied")
    return causes if isinstance(causes, list) else ()


def pages(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _before(swap: CompareAndSet) -> models.Filter:
    """Match a row that may be replaced: it has the swap's tenant, expected version and counter fields, and does not
    have its cause."""
    new = swap.new
    must = of_points(new.tenant_id, (new.id,), version=swap.expected_version)
    payload = new.point.payload or {}
    must += [same(field, payload.get(field)) for field in swap.counted]
    return models.Filter(must=must, must_not=[equals("applied", swap.cause)])


def _own_points(points: Iterable[EncodedPoint]) -> models.Filter:
    """Match the points that may be overwritten, each only for its own tenant."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for each in points:
        groups[each.tenant_id].append(each.id)
    return each_of(groups.items())


def _named_pages(named: Sequence[PointIds]) -> Iterator[models.Filter]:
    """Build filters of at most `PAGE` ids each."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    left = PAGE
    for each in named:
        for point_id in each.ids:
            if left == 0:
                yield each_of(groups.items())
                groups.clear()
                left = PAGE
            groups[each.tenant_id].append(point_id)
            left -= 1
    if groups:
        yield each_of(groups.items())


def _batches(points: Iterable[EncodedPoint]) -> Iterator[list[EncodedPoint]]:
    """Split the points into requests below the server's limits."""
    batch: list[EncodedPoint] = []
    size = 0
    for each in points:
        if batch and (len(batch) >= CHUNK_POINTS or size + each.size > CHUNK_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch

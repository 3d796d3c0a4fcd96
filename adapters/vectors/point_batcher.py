"""Batches of reads by id and of writes from concurrent events, for each collection.

Each method call serves one caller; `RequestBatcher` converts a batch into requests. Writes to the same point of a
collection are sent one after the other, in call order. Reads are batched separately. Tenants share the batches. A
caller's read comes after the writes that the caller has awaited.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..batching.coalescer import CoalescePolicy, Coalescer
from ..ports import CasResult, Payload, StoredPoint
from .batch_requests import (
    CHUNK_BYTES,
    CompareAndSet,
    EncodedPoint,
    FilterQuery,
    PointIds,
    RequestBatcher,
    VectorUpdate,
)

POLICY: Final = CoalescePolicy(items=64, weight=CHUNK_BYTES, linger=0.01, at_once=2, tenant_items=16)
"""Policy for the writes and for the reads of each collection."""


@dataclass(frozen=True, slots=True)
class _Insert:
    points: tuple[EncodedPoint, ...]


@dataclass(frozen=True, slots=True)
class _Put:
    points: tuple[EncodedPoint, ...]


@dataclass(frozen=True, slots=True)
class _SetFields:
    named: PointIds
    fields: Payload


@dataclass(frozen=True, slots=True)
class _Delete:
    named: PointIds


@dataclass(frozen=True, slots=True)
class _NewVectors:
    points: tuple[VectorUpdate, ...]


_Write = _Insert | _Put | _SetFields | _NewVectors | _Delete | CompareAndSet


class PointBatcher:
    """Batches over one `RequestBatcher`. Callers must validate points first, because an invalid point would fail the
    other writes of its batch."""

    def __init__(self, *, bulk: RequestBatcher, policy: CoalescePolicy) -> None:
        self._bulk = bulk
        self._policy = policy
        self._writes: dict[str, Coalescer[_Write, CasResult | None]] = {}
        self._reads: dict[str, Coalescer[tuple[PointIds, bool], dict[str, StoredPoint]]] = {}
        self._queries: dict[str, Coalescer[FilterQuery, list[StoredPoint]]] = {}

    async def read(self, collection: str, named: PointIds, *, with_dense: bool) -> dict[str, StoredPoint]:
        if not named.ids:
            return {}
        queue = self._reads.get(collection)
        if queue is None:

            async def run(requests: Sequence[tuple[PointIds, bool]]) -> list[dict[str, StoredPoint]]:
                return await self._bulk.read(collection, [each for each, _ in requests], with_dense=requests[0][1])

            queue = self._reads[collection] = Coalescer(run=run, policy=self._policy)
        return await queue.ask((named, with_dense), tenant=named.tenant_id, kind=with_dense, size=len(named.ids))

    async def query(self, collection: str, filter_query: FilterQuery) -> list[StoredPoint]:
        queue = self._queries.get(collection)
        if queue is None:

            async def run(together: Sequence[FilterQuery]) -> list[list[StoredPoint]]:
                return await self._bulk.query(collection, together)

            queue = self._queries[collection] = Coalescer(run=run, policy=self._policy)
        return await queue.ask(filter_query, tenant=filter_query.tenant_id)

    async def insert(self, collection: str, points: Sequence[EncodedPoint]) -> None:
        await self._write_points(collection, _Insert(tuple(points)))

    async def put(self, collection: str, points: Sequence[EncodedPoint]) -> None:
        await self._write_points(collection, _Put(tuple(points)))

    async def set_payload(self, collection: str, named: PointIds, fields: Payload) -> None:
        # Only writes that set the same fields to the same values can share a request.
        kind = ("set", json.dumps(fields, sort_keys=True, ensure_ascii=False))
        if named.ids:
            await self._queue(collection).ask(
                _SetFields(named, fields),
                tenant=named.tenant_id,
                kind=kind,
                keys=frozenset(named.ids),
                size=len(named.ids),
                weight=len(kind[1]),
            )

    async def update_vectors(self, collection: str, points: Sequence[VectorUpdate], *, weight: int) -> None:
        if points:
            await self._queue(collection).ask(
                _NewVectors(tuple(points)),
                tenant=points[0].tenant_id,
                kind="vectors",
                keys=frozenset(each.id for each in points),
                size=len(points),
                weight=weight,
            )

    async def delete(self, collection: str, named: PointIds) -> None:
        if named.ids:
            await self._queue(collection).ask(
                _Delete(named),
                tenant=named.tenant_id,
                kind="delete",
                keys=frozenset(named.ids),
                size=len(named.ids),
            )

    async def compare_and_set(self, collection: str, swap: CompareAndSet) -> CasResult:
        result = await self._queue(collection).ask(
            swap, tenant=swap.new.tenant_id, kind="swap", keys=frozenset((swap.new.id,)), weight=swap.new.size
        )
        assert result is not None
        return result

    async def drain(self) -> None:
        """Wait until no call is running."""
        await asyncio.gather(
            *(queue.drain() for queue in self._writes.values()),
            *(queue.drain() for queue in self._reads.values()),
            *(queue.drain() for queue in self._queries.values()),
        )

    async def _write_points(self, collection: str, write: _Insert | _Put) -> None:
        if write.points:
            await self._queue(collection).ask(
                write,
                tenant=write.points[0].tenant_id,
                kind="insert" if isinstance(write, _Insert) else "put",
                keys=frozenset(each.id for each in write.points),
                size=len(write.points),
                weight=sum(each.size for each in write.points),
            )

    def _queue(self, collection: str) -> Coalescer[_Write, CasResult | None]:
        queue = self._writes.get(collection)
        if queue is None:

            async def run(writes: Sequence[_Write]) -> Sequence[CasResult | None]:
                return await self._run(collection, writes)

            queue = self._writes[collection] = Coalescer(run=run, policy=self._policy)
        return queue

    async def _run(self, collection: str, writes: Sequence[_Write]) -> Sequence[CasResult | None]:
        """Send one batch of writes of one kind."""
        swaps = [each for each in writes if isinstance(each, CompareAndSet)]
        if swaps:
            return await self._bulk.compare_and_set(collection, swaps)
        inserted = [point for each in writes if isinstance(each, _Insert) for point in each.points]
        put = [point for each in writes if isinstance(each, _Put) for point in each.points]
        fields = [each for each in writes if isinstance(each, _SetFields)]
        vectors = [point for each in writes if isinstance(each, _NewVectors) for point in each.points]
        deleted = [each.named for each in writes if isinstance(each, _Delete)]
        if inserted:
            await self._bulk.insert(collection, inserted)
        if put:
            await self._bulk.put(collection, put)
        if fields:
            await self._bulk.set_payload(collection, [each.named for each in fields], fields[0].fields)
        if vectors:
            await self._bulk.update_vectors(collection, vectors)
        if deleted:
            await self._bulk.delete(collection, deleted)
        return [None] * len(writes)

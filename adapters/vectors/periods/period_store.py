"""Vector store with collections that are partitioned by period: one collection per quarter. A read covers all quarters.
An old quarter is dropped as a whole.

A Qdrant alias points to one collection, so one alias cannot cover several periods. A read queries all existing periods
concurrently, and merges the answers by score, value or id. Qdrant weighs a word by its rarity within one collection, so
a search by words needs common weights for all periods (period_words.py). With one period, nothing is merged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from datetime import datetime
from typing import TypeVar

from qdrant_client import models

from ....schemas.collections import COLLECTIONS, CollectionSpec, Consistency, FieldKind, Sharding
from ....schemas.errors import DeploymentFault
from ....schemas.periods import Period, period_collection
from ...batching.coalescer import CoalescePolicy
from ...ports import EmbedderIdentity, NewWindow, OrderDirection, Payload, Point, RankedPoint, Ranking, StoredPoint
from ..collections import ensure_collections
from ..engine import QdrantEngine
from ..errors import translate_errors
from ..filters import of_tenant
from ..point_batcher import POLICY
from ..point_encoder import VectorQuery
from ..store import QdrantStore
from .parts import PeriodPart, ended, forgotten, parts_of
from .period_merge import by_id, by_score, by_value, exhausted, scored, shares
from .period_words import PeriodWords, weighed

LOOK_SECONDS = 5.0
"""Seconds between checks for periods that other processes opened or dropped. The process that opens a period knows it
immediately."""
T = TypeVar("T")


class PeriodStore(QdrantStore):
    """`PeriodVectorStore`, and `VectorStore` for all collections."""

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
        super().__init__(
            engine=engine,
            embedder=embedder,
            on_close=on_close,
            gathering=gathering,
            consistency=consistency,
            sharding=sharding,
        )
        self._known: dict[str, tuple[float, tuple[PeriodPart, ...]]] = {}
        self._words = PeriodWords(engine, consistency=self._consistency)

    # -------------------------------------------------------------------------------------------- periods
    async def periods(self, collection: str, *, opened: bool = False) -> tuple[Period, ...]:
        parts = [part for part in await self._look(collection) if not (opened and part.taken_over)]
        return tuple(sorted(period for part in parts for period in part.periods))

    async def open_period(self, collection: str, period: Period, *, newest: Period) -> str:
        name = period_collection(collection, period)
        if any(period in part.periods for part in await self._parts(collection)):
            return name
        parts = await self._look(collection)
        if parts and not any(part.periods for part in parts):
            await self._take_over(parts[0], max(period, newest))
            parts = await self._look(collection)
        if not any(period in part.periods for part in parts):
            await self._create(name, like=parts[0].behind if parts else None)
            await self._look(collection)
        return name

    async def drop_periods(self, collection: str, *, before: datetime) -> tuple[str, ...]:
        with translate_errors(f"dropping periods of {collection}"):
            names = [part.behind for part in ended(await self._look(collection), before=before)]
            every = [each.name for each in (await self._engine.get_collections()).collections]
            names += forgotten(collection, every, await self._aliases(), before=before)
            dropped = [name for name in names if await self._engine.delete_collection(name)]
        await self._look(collection)
        return tuple(dropped)

    async def _create(self, name: str, *, like: str | None) -> None:
        """Create the collection of a period. Tenants with their own shard in the collection `like` get their own shard
        here, too."""
        with translate_errors(f"opening {name}"):
            await ensure_collections(
                self._engine,
                specs=[self._spec(name)],
                embedder=self._embedder,
                by_tenant=self._shards.by_tenant,
                shards_of=like,
            )
        self._forms.forget()

    async def _take_over(self, part: PeriodPart, period: Period) -> None:
        """Assign a period to a collection that was filled before periods existed."""
        alias = models.CreateAlias(collection_name=part.behind, alias_name=period_collection(part.collection, period))
        with translate_errors(f"naming the period of {part.behind}"):
            await self._engine.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])

    # -------------------------------------------------------------------------------------------- collections
    async def ensure(self, *collections: str) -> None:
        names = collections or tuple(spec.name for spec in COLLECTIONS)
        await self.version()  # first, because a server that is too old may reject the next requests
        wanted: list[str] = []
        for name in names:
            parts = await self._look(name) if self._spec(name).by_period else ()
            wanted += [part.name for part in parts] or [name]
        await super().ensure(*wanted)
        self._known.clear()

    async def exists(self, collection: str) -> bool:
        if self._spec(collection).by_period:
            return bool(await self._look(collection))
        return await super().exists(collection)

    # -------------------------------------------------------------------------------------------- reads
    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        read = super().get
        if not self._spec(collection).by_period:
            return await read(collection, tenant_id=tenant_id, ids=ids, with_dense=with_dense)
        answers = await self._ask(
            collection, lambda name: read(name, tenant_id=tenant_id, ids=ids, with_dense=with_dense)
        )
        # The newest part comes first. Therefore, when a record is in two parts, its copy in the older part wins.
        return {each.id: each._replace(collection=name) for name, found in answers for each in found.values()}

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
        whole, spec = super()._select, self._spec(collection)
        if not spec.by_period:
            return await whole(collection, tenant_id, condition, order_by, direction, limit, from_id, fields)
        merged_by = order_by if len(await self._parts(collection)) > 1 else None
        extra = merged_by is not None and fields is not None and merged_by not in fields
        wanted = [*(fields or ()), order_by or ""] if extra else fields

        async def read(name: str) -> list[StoredPoint]:
            return await whole(name, tenant_id, condition, order_by, direction, limit, from_id, wanted)

        lists = [found for _, found in await self._ask(collection, read)]
        if len(lists) < 2:
            return lists[0] if lists else []
        if merged_by is None:
            return by_id(lists, limit=limit)
        merged = by_value(lists, field=merged_by, kind=_kind(spec, merged_by), direction=direction, limit=limit)
        return [_without(each, merged_by) for each in merged] if extra else merged

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        read = super().nearest
        if not self._spec(collection).by_period:
            return await read(collection, tenant_id=tenant_id, dense=dense, where=where, limit=limit)
        answers = await self._ask(
            collection, lambda name: read(name, tenant_id=tenant_id, dense=dense, where=where, limit=limit)
        )
        return scored([found for _, found in answers], limit=limit)

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        if not self._spec(collection).by_period:
            return await super().lexical(collection, tenant_id=tenant_id, text=text, where=where, limit=limit)
        words = self._encoder.words(text)
        if words is None:
            return []
        weights = await self._words.weights(await self._parts(collection), words.indices)
        answers = await self._ask(
            collection, lambda name: self._by_words(name, tenant_id, weighed(words, weights.get(name)), where, limit)
        )
        return scored([found for _, found in answers], limit=limit)

    async def search(
        self,
        collection: str,
        *,
        tenant_id: str,
        rankings: Sequence[Ranking],
        where: models.Filter | None = None,
        limit: int,
    ) -> list[Sequence[RankedPoint]]:
        if not self._spec(collection).by_period:
            return await super().search(collection, tenant_id=tenant_id, rankings=rankings, where=where, limit=limit)
        condition = of_tenant(tenant_id, where)
        queries = [self._encoder.ranking(self._spec(collection), each) for each in rankings]
        terms = {index for query, _ in queries if isinstance(query, models.SparseVector) for index in query.indices}
        parts = await self._parts(collection)
        weights = await self._words.weights(parts, terms)
        share = await self._shares(parts, limit)

        async def read(name: str, limits: Sequence[int]) -> list[Sequence[RankedPoint]]:
            own: list[VectorQuery] = [
                (weighed(query, weights.get(name)) if isinstance(query, models.SparseVector) else query, using)
                for query, using in queries
            ]
            return await self._rank(name, tenant_id, condition, own, limits=limits)

        found = dict(await self._ask(collection, lambda name: read(name, [share.get(name, limit)] * len(queries))))
        asked = [share.get(name, limit) for name in found]
        best = [by_score(lists, limit=limit) for lists in zip(*found.values(), strict=True)]
        short = [
            exhausted(lists, asked, best=best[place], limit=limit)
            for place, lists in enumerate(zip(*found.values(), strict=True))
        ]
        more = {name: [limit if place in places else 0 for places in short] for place, name in enumerate(found)}
        again = {name: limits for name, limits in more.items() if any(limits)}
        if not again:
            return [*best] or [() for _ in queries]
        for name, fuller in await self._ask(collection, lambda name: read(name, again[name]), only=again):
            found[name] = [new or old for new, old in zip(fuller, found[name], strict=True)]
        return [by_score(lists, limit=limit) for lists in zip(*found.values(), strict=True)]

    async def _shares(self, parts: Sequence[PeriodPart], limit: int) -> dict[str, int]:
        """Return the number of results to request first from each part, by its name."""
        if len(parts) < 2:
            return {}
        sizes = await self._words.sizes(parts)
        return dict(zip((part.name for part in parts), shares(sizes, limit=limit), strict=True))

    async def last(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str,
        limit: int,
    ) -> list[StoredPoint]:
        read, spec = super().last, self._spec(collection)
        if not spec.by_period:
            return await read(collection, tenant_id=tenant_id, where=where, order_by=order_by, limit=limit)
        answers = await self._ask(
            collection, lambda name: read(name, tenant_id=tenant_id, where=where, order_by=order_by, limit=limit)
        )
        lists = [[each._replace(collection=name) for each in found] for name, found in answers]
        return by_value(lists, field=order_by, kind=_kind(spec, order_by), direction="desc", limit=limit)

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int:
        read = super().count
        if not self._spec(collection).by_period:
            return await read(collection, tenant_id=tenant_id, where=where)
        answers = await self._ask(collection, lambda name: read(name, tenant_id=tenant_id, where=where))
        return sum(found for _, found in answers)

    # -------------------------------------------------------------------------------------------- writes
    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        await super().insert(await self._newest(collection), points)

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        await super().put(await self._newest(collection), points)

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        write = super().set_payload
        await self._change(collection, lambda name: write(name, tenant_id=tenant_id, ids=ids, fields=fields))

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        write = super().rewindow
        await self._change(collection, lambda name: write(name, tenant_id=tenant_id, points=points))

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None:
        write = super().delete
        await self._change(collection, lambda name: write(name, tenant_id=tenant_id, ids=ids))

    # -------------------------------------------------------------------------------------------- internals
    async def _aliases(self) -> dict[str, str]:
        return {each.alias_name: each.collection_name for each in (await self._engine.get_aliases()).aliases}

    async def _look(self, collection: str) -> tuple[PeriodPart, ...]:
        """Return the current parts from the engine."""
        with translate_errors(f"looking for the periods of {collection}"):
            aliases = await self._aliases()
        parts = parts_of(collection, aliases)
        self._known[collection] = (time.monotonic(), parts)
        return parts

    async def _parts(self, collection: str) -> tuple[PeriodPart, ...]:
        """Return the cached parts, newest first. Refresh them when they are older than `LOOK_SECONDS`."""
        seen, parts = self._known.get(collection, (0.0, ()))
        if parts and time.monotonic() - seen <= LOOK_SECONDS:
            return parts
        if parts:
            self._known[collection] = (time.monotonic(), parts)  # other reads use these parts during the refresh
        return await self._look(collection)

    async def _newest(self, collection: str) -> str:
        parts = await self._parts(collection) if self._spec(collection).by_period else ()
        return parts[0].name if parts else collection

    async def _ask(
        self, collection: str, ask: Callable[[str], Awaitable[T]], *, only: Container[str] | None = None
    ) -> list[tuple[str, T]]:
        """Query all parts concurrently, or only the parts named in `only`. Return their names and answers, newest
        first. A part that was dropped in the meantime is left out."""
        parts = [part for part in await self._parts(collection) if only is None or part.name in only]
        if len(parts) == 1:
            answers = [await self._answer(collection, parts[0], ask)]
        else:
            answers = await asyncio.gather(*(self._answer(collection, part, ask) for part in parts))
        return [(part.name, answer[0]) for part, answer in zip(parts, answers, strict=True) if answer]

    async def _answer(self, collection: str, part: PeriodPart, ask: Callable[[str], Awaitable[T]]) -> tuple[T, ...]:
        try:
            return (await ask(part.name),)
        except DeploymentFault:  # the collection does not exist
            if any(each.name == part.name for each in await self._look(collection)):
                raise
            return ()

    async def _change(self, collection: str, change: Callable[[str], Awaitable[None]]) -> None:
        if self._spec(collection).by_period:
            await self._ask(collection, change)
        else:
            await change(collection)


def _kind(spec: CollectionSpec, path: str) -> FieldKind:
    return next((field.kind for field in spec.fields if field.path == path), "keyword")


def _without(point: StoredPoint, field: str) -> StoredPoint:
    return point._replace(payload={name: value for name, value in point.payload.items() if name != field})

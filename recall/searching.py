"""The searches of one read: all at once, each with the same deadline, each failing alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from qdrant_client import models

from ..adapters.ports import Embedder, Found, Payload, VectorStore
from ..memory.fusion import ListName, RankedList
from ..memory.policies import RecallPolicy
from ..schemas.collections import EPISODES, FACTS, TURNS, WORKING
from ..schemas.errors import Poison, Transient
from ..schemas.recalled import TIERS, Tier
from .filters import where
from .request import RecallRequest

COLLECTION_OF: dict[Tier, str] = {"semantic": FACTS, "working": WORKING, "episodic": EPISODES, "turns": TURNS}
ORDERS: dict[Tier, tuple[str, ...]] = {
    "semantic": ("reinforcement_count", "recorded_at"),
    "episodic": ("importance", "occurred_at"),
}
"""Without a cue: what counts most, and what is newest, of each the pool. Both are needed: in a young memory nothing is
reinforced yet, and in an old one the best are not among the newest."""
WORKING_MAX = 64
"""Entries that a working set can have."""

T = TypeVar("T")
Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of the read that did not answer."""

    part: str
    """`embedder`, or `<tier>.<search>`."""
    why: str


@dataclass(slots=True)
class Pool:
    """The candidates of a tier: each record once, and the ranked lists that named it."""

    payloads: dict[str, Payload] = field(default_factory=dict)
    lists: list[RankedList] = field(default_factory=list)

    def take(self, found: Sequence[Found]) -> None:
        for each in found:
            self.payloads.setdefault(each.id, each.payload)


@dataclass(frozen=True, slots=True)
class Searched:
    pools: dict[Tier, Pool]
    missing: tuple[Missing, ...]


class Searching:
    """One read's searches. Made for one read, used once."""

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        collections: Collection[str],
        policy: RecallPolicy,
        request: RecallRequest,
        now: datetime,
    ) -> None:
        """`collections` are those that exist; a tier without one holds nothing."""
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._request = request
        wheres = {tier: where(tier, request, now=now) for tier in TIERS if COLLECTION_OF[tier] in collections}
        self._where = {tier: condition for tier, condition in wheres.items() if condition is not None}
        self._pools: dict[Tier, Pool] = {tier: Pool() for tier in self._where}
        self._missing: list[Missing] = []
        self._deadline = 0.0

    async def run(self) -> Searched:
        """What was found and what did not answer. `Fatal` when an invariant is broken."""
        self._deadline = asyncio.get_running_loop().time() + self._policy.patience
        try:
            async with asyncio.TaskGroup() as group:
                self._start(group)
        except ExceptionGroup as failed:  # a broken invariant, seen by one search or by several
            raise failed.exceptions[0] from failed
        return Searched(self._pools, tuple(sorted(self._missing, key=lambda each: each.part)))

    def _start(self, group: asyncio.TaskGroup) -> None:
        cue = self._request.asked
        searched = [tier for tier in self._where if tier != "working"]
        if "working" in self._where:
            group.create_task(self._all_working())
        if cue is None:
            for tier in searched:
                for order in ORDERS.get(tier, ()):
                    group.create_task(self._ordered(tier, order))
        elif searched:
            embedding = group.create_task(self._embedded(cue))
            for tier in searched:
                group.create_task(self._lexical(tier, cue))
                group.create_task(self._dense(tier, embedding))

    # -------------------------------------------------------------------------------------------- searches
    async def _all_working(self) -> None:
        collection, condition = self._place("working")
        found = await self._part(
            "working.all",
            lambda: self._store.select(
                collection, tenant_id=self._request.tenant_id, where=condition, limit=WORKING_MAX
            ),
        )
        self._pools["working"].take(found or ())

    async def _ordered(self, tier: Tier, order: str) -> None:
        collection, condition = self._place(tier)
        found = await self._part(
            f"{tier}.{order}",
            lambda: self._store.select(
                collection,
                tenant_id=self._request.tenant_id,
                where=condition,
                order_by=order,
                direction="desc",
                limit=self._policy.pool,
            ),
        )
        self._pools[tier].take(found or ())

    async def _embedded(self, cue: str) -> Vector | None:
        async def embed() -> Vector:
            [vector] = await self._embedder.embed([cue], tenant_id=self._request.tenant_id)
            return vector

        return await self._part("embedder", embed)

    async def _lexical(self, tier: Tier, cue: str) -> None:
        collection, condition = self._place(tier)
        found = await self._part(
            f"{tier}.lexical",
            lambda: self._store.lexical(
                collection, tenant_id=self._request.tenant_id, text=cue, where=condition, limit=self._policy.pool
            ),
        )
        self._listed(tier, "lexical", found)

    async def _dense(self, tier: Tier, embedding: asyncio.Task[Vector | None]) -> None:
        collection, condition = self._place(tier)
        vector = await embedding
        if vector is None:
            return  # `embedder` is named as missing
        found = await self._part(
            f"{tier}.dense",
            lambda: self._store.nearest(
                collection, tenant_id=self._request.tenant_id, dense=vector, where=condition, limit=self._policy.pool
            ),
        )
        self._listed(tier, "dense", found)

    # -------------------------------------------------------------------------------------------- within
    def _place(self, tier: Tier) -> tuple[str, models.Filter]:
        return COLLECTION_OF[tier], self._where[tier]

    def _listed(self, tier: Tier, name: ListName, found: Sequence[Found] | None) -> None:
        if found is not None:
            self._pools[tier].lists.append(RankedList(name, [each.id for each in found]))
            self._pools[tier].take(found)

    async def _part(self, name: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """Its answer; None, and its name among the missing, when it is away, refuses or is slow."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await ask()
        except TimeoutError:
            self._missing.append(Missing(name, f"no answer within {self._policy.patience:g} s"))
        except (Transient, Poison) as error:
            self._missing.append(Missing(name, str(error)))
        return None

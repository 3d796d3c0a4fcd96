"""What is stored of one owner, as the steps of a run look at it. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals, is_empty
from ...schemas.collections import EPISODES, FACTS
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactState, StoredFact
from ...streams.engine.retry import Calls
from .steps.base import RunRequest

READ_MAX: Final = 2_000
"""Records of an owner that one step reads; beyond, those with the least ids."""


@dataclass(frozen=True, slots=True)
class OwnerReader:
    """Every read names tenant and owner. Raises Transient where the store is away for longer than events wait."""

    store: VectorStore
    calls: Calls

    async def facts(
        self, asked: RunRequest, state: FactState = "active", *, limit: int = READ_MAX
    ) -> tuple[StoredFact, ...]:
        """Oldest first."""
        where = models.Filter(must=[of_owner(asked), equals("state", state)])
        found = await self.calls.call(
            "store", lambda: self.store.select(FACTS, tenant_id=asked.tenant_id, where=where, limit=limit)
        )
        return oldest_first(found)

    async def count_facts(self, asked: RunRequest) -> int:
        """Active ones."""
        where = models.Filter(must=[of_owner(asked), equals("state", "active")])
        return await self.calls.call("store", lambda: self.store.count(FACTS, tenant_id=asked.tenant_id, where=where))

    async def facts_by_id(self, asked: RunRequest, wanted: Sequence[str]) -> dict[str, StoredFact]:
        """Of this owner, in any state."""
        if not wanted:
            return {}
        found = await self.calls.call(
            "store", lambda: self.store.get(FACTS, tenant_id=asked.tenant_id, ids=tuple(wanted))
        )
        facts = (StoredFact.from_payload(each.payload) for each in found.values())
        return {fact.fact_id: fact for fact in facts if fact.owner_key == asked.owner_key}

    async def believed(self, asked: RunRequest, observations: Sequence[str]) -> dict[str, bool]:
        """Of these, the observations that a fact of the owner stands on, and whether one that is active does."""
        if not observations:
            return {}
        told = any_of("evidence[].observation_id", observations)
        where = models.Filter(must=[of_owner(asked), told])
        found = await self.calls.call("store", lambda: self.store.select(FACTS, tenant_id=asked.tenant_id, where=where))
        believed: dict[str, bool] = {}
        for fact in oldest_first(found):
            for each in fact.evidence:
                believed[each.observation_id] = believed.get(each.observation_id, False) or fact.state == "active"
        return believed

    async def episodes(self, asked: RunRequest, *, with_dense: bool = False) -> tuple[StoredPoint, ...]:
        """All that stand, by time, also those of which a gist is left; `with_dense`: with their vectors. Summaries are
        not among them: they tell again what was observed turn by turn."""
        where = models.Filter(must=[of_owner(asked), is_empty("deleted_at")])
        found = await self.calls.call(
            "store",
            lambda: self.store.select(
                EPISODES, tenant_id=asked.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        found = [each for each in found if not as_episode(each).is_summary]
        if not with_dense or not found:
            return tuple(found)
        named = [each.id for each in found]
        vectors = await self.calls.call(
            "store", lambda: self.store.get(EPISODES, tenant_id=asked.tenant_id, ids=named, with_dense=True)
        )
        return tuple(vectors[each.id] for each in found if each.id in vectors)


def oldest_first(found: Sequence[StoredPoint]) -> tuple[StoredFact, ...]:
    facts = (StoredFact.from_payload(each.payload) for each in found)
    return tuple(sorted(facts, key=lambda fact: (fact.recorded_at, fact.fact_id)))


def as_episode(found: StoredPoint) -> StoredEpisode:
    return StoredEpisode.from_payload(found.payload)


def of_owner(asked: RunRequest) -> models.FieldCondition:
    return equals("owner_key", asked.owner_key)

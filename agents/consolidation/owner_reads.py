"""Reads of one owner's records for the steps of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals, is_empty
from ...schemas import ids
from ...schemas.collections import EPISODES, FACTS
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactState, StoredFact
from ...streams.engine.retry import Calls
from .step import RunRequest

READ_MAX: Final = 2_000
"""Maximum number of records that one read of a step returns: the facts with the lowest ids, or the oldest episodes."""


@dataclass(frozen=True, slots=True)
class OwnerReader:
    """Reader of one owner's records. Every read filters by tenant and owner.

    Raises Transient if the store is unreachable.
    """

    store: VectorStore
    calls: Calls

    async def facts(
        self, request: RunRequest, state: FactState = "active", *, limit: int = READ_MAX
    ) -> tuple[StoredFact, ...]:
        """Read the owner's facts in this state, oldest first."""
        where = models.Filter(must=[of_owner(request), equals("state", state)])
        found = await self.calls.call(
            "store", lambda: self.store.select(FACTS, tenant_id=request.tenant_id, where=where, limit=limit)
        )
        return oldest_first(found)

    async def page(
        self, request: RunRequest, collection: str, where: models.Filter, *, after: str, size: int
    ) -> tuple[list[StoredPoint], str]:
        """Read a page of matching records in id order, starting at the record `after` ("" means the first).

        Return the page and the id at which the next page starts, or "" after the last page. When the record `after` was
        deleted, the page starts at the next record.
        """
        found = await self.calls.call(
            "store",
            lambda: self.store.select(
                collection, tenant_id=request.tenant_id, where=where, limit=size + 1, from_id=after or None
            ),
        )
        return found[:size], found[size].id if len(found) > size else ""

    async def oldest_beyond(
        self,
        request: RunRequest,
        collection: str,
        among: Sequence[models.Condition],
        *,
        kept: int,
        last: models.Condition,
        order_by: str,
        at_once: int,
    ) -> list[StoredPoint]:
        """Read the owner's oldest records in excess of `kept`, at most `at_once`.

        Records that match `last` are returned only when there are not enough other records.
        """
        store, tenant_id, conditions = self.store, request.tenant_id, [of_owner(request), *among]
        where = models.Filter(must=conditions)
        number = await self.calls.call("store", lambda: store.count(collection, tenant_id=tenant_id, where=where))

        async def oldest(where: models.Filter, limit: int) -> list[StoredPoint]:
            return await self.calls.call(
                "store",
                lambda: store.select(collection, tenant_id=tenant_id, where=where, order_by=order_by, limit=limit),
            )

        beyond = min(number - kept, at_once)
        if beyond <= 0:
            return []
        found = await oldest(models.Filter(must=conditions, must_not=[last]), beyond)
        if len(found) < beyond:
            found += await oldest(models.Filter(must=[*conditions, last]), beyond - len(found))
        return found

    async def youngest_facts(self, request: RunRequest, *, limit: int) -> list[StoredPoint]:
        """Read the owner's most recently recorded active facts, newest first."""
        where = models.Filter(must=[of_owner(request), equals("state", "active")])
        return await self.calls.call(
            "store",
            lambda: self.store.last(
                FACTS, tenant_id=request.tenant_id, where=where, order_by="recorded_at", limit=limit
            ),
        )

    async def facts_by_id(self, request: RunRequest, fact_ids: Sequence[str]) -> dict[str, StoredFact]:
        """Read the owner's facts with these ids, in any state."""
        if not fact_ids:
            return {}
        found = await self.calls.call(
            "store", lambda: self.store.get(FACTS, tenant_id=request.tenant_id, ids=tuple(fact_ids))
        )
        facts = (StoredFact.from_payload(each.payload) for each in found.values())
        return {fact.fact_id: fact for fact in facts if fact.owner_key == request.owner_key}

    async def believed(self, request: RunRequest, observation_ids: Sequence[str]) -> dict[str, bool]:
        """Return, for each observation that is evidence of a fact, whether at least one of these facts is active.

        The keys are the ids of the observations.
        """
        if not observation_ids:
            return {}
        where = models.Filter(must=[of_owner(request), any_of("evidence[].observation_id", observation_ids)])
        found = await self.calls.call(
            "store", lambda: self.store.select(FACTS, tenant_id=request.tenant_id, where=where)
        )
        believed: dict[str, bool] = {}
        for fact in oldest_first(found):
            for each in fact.evidence:
                believed[each.observation_id] = believed.get(each.observation_id, False) or fact.state == "active"
        return believed

    async def episodes(self, request: RunRequest, *, with_dense: bool = False) -> tuple[StoredPoint, ...]:
        """Read the owner's episodes in the order of `occurred_at`, including gists, without deleted episodes.

        Summaries are left out, because the episodes of single turns have the same content. `with_dense`: include
        vectors.
        """
        where = models.Filter(must=[of_owner(request), is_empty("deleted_at")])
        found = await self.calls.call(
            "store",
            lambda: self.store.select(
                EPISODES, tenant_id=request.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        found = [each for each in found if not as_episode(each).is_summary]
        if not with_dense or not found:
            return tuple(found)
        named = [each.id for each in found]
        vectors = await self.calls.call(
            "store", lambda: self.store.get(EPISODES, tenant_id=request.tenant_id, ids=named, with_dense=True)
        )
        return tuple(vectors[each.id] for each in found if each.id in vectors)

    async def episodes_by_id(
        self, tenant_id: str, owner_key: str, episode_ids: Sequence[str]
    ) -> dict[str, StoredEpisode]:
        """Read the owner's episodes with these ids, including deleted episodes."""
        wanted = [each for each in dict.fromkeys(episode_ids) if ids.is_derived(each)]
        found = await self.calls.call("store", lambda: self.store.get(EPISODES, tenant_id=tenant_id, ids=wanted))
        episodes = (as_episode(each) for each in found.values())
        return {episode.episode_id: episode for episode in episodes if episode.owner_key == owner_key}


def of_owner(request: RunRequest) -> models.FieldCondition:
    return equals("owner_key", request.owner_key)


def oldest_first(found: Sequence[StoredPoint]) -> tuple[StoredFact, ...]:
    facts = (StoredFact.from_payload(each.payload) for each in found)
    return tuple(sorted(facts, key=lambda fact: (fact.recorded_at, fact.fact_id)))


def as_episode(found: StoredPoint) -> StoredEpisode:
    return StoredEpisode.from_payload(found.payload)

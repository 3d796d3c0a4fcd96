"""Standard phase: old episodes that are recalled again and again become facts. No model."""

from __future__ import annotations

from dataclasses import dataclass

from qdrant_client import models

from ...memory.policies import ConsolidationPolicy
from ...memory.promotion import promoted, worth_promoting
from ...schemas.collections import FACTS
from ...schemas.facts import StoredFact
from .looking import Lookup, as_episode, of_owner
from .rows import OwnerRow, PartName
from .steps import Asked, Did


@dataclass(frozen=True, slots=True)
class Promote:
    """What a fact stands on already, in whatever state that is, is not proposed again."""

    lookup: Lookup
    policy: ConsolidationPolicy
    part: PartName = "standard"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        standing = [as_episode(each) for each in await self.lookup.episodes(asked)]
        found = worth_promoting(standing, now=asked.now, policy=self.policy)
        if not found:
            return Did("nothing", row)
        changes = promoted(found, known=await self._known(asked, [each.observation_id for each in found]))
        if not changes:
            return Did("nothing", row)
        return Did("done", row, {"promoted": len(changes)}, changes=changes)

    async def _known(self, asked: Asked, observations: list[str]) -> set[str]:
        """Of these, the ones that some fact of the owner has among its evidence."""
        told = models.FieldCondition(key="evidence[].observation_id", match=models.MatchAny(any=observations))
        where = models.Filter(must=[of_owner(asked), told])
        store = self.lookup.store
        found = await self.lookup.calls.call(
            "store", lambda: store.select(FACTS, tenant_id=asked.tenant_id, where=where)
        )
        facts = (StoredFact.from_payload(each.payload) for each in found)
        return {evidence.observation_id for fact in facts for evidence in fact.evidence}

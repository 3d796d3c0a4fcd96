"""Standard phase: old episodes that are recalled again and again become facts. No model."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.promotion import promotion_changes, select_promotable
from ..owner_reads import OwnerReader, as_episode
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class PromoteStep:
    """What a fact stands on already, in whatever state that is, is not proposed again."""

    lookup: OwnerReader
    policy: ConsolidationPolicy
    part: PartName = "standard"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        standing = [as_episode(each) for each in await self.lookup.episodes(asked)]
        found = select_promotable(standing, now=asked.now, policy=self.policy)
        if not found:
            return StepResult("nothing", row)
        changes = promotion_changes(
            found, known=await self.lookup.believed(asked, [each.observation_id for each in found])
        )
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"promoted": len(changes)}, changes=changes)

"""Promote step of the standard phase: turns old, often recalled episodes into facts. It calls no model."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.promotion import promotion_changes, select_promotable
from ..owner_reads import OwnerReader, as_episode
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class PromoteStep:
    """A step that proposes facts. It skips an episode that is already evidence of a fact in any state."""

    reader: OwnerReader
    policy: ConsolidationPolicy
    part: PartName = "standard"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        episodes = [as_episode(each) for each in await self.reader.episodes(request)]
        found = select_promotable(episodes, now=request.now, policy=self.policy)
        if not found:
            return StepResult("nothing", row)
        changes = promotion_changes(
            found, known=await self.reader.believed(request, [each.observation_id for each in found])
        )
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"promoted": len(changes)}, changes=changes)

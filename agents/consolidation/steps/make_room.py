"""Limit of an owner's episodes when no run consolidates them.

Normally the reflector deletes the oldest consolidated episodes when it adds an episode. Without consolidation, it finds
no episode to delete. So this step marks the oldest episodes as deleted, permanent episodes last. The reflector then
deletes their rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....adapters.vectors.conditions import equals, is_empty
from ....schemas.collections import EPISODES
from ..owner_reads import READ_MAX, OwnerReader, as_episode
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult
from .janitor import delete_episodes


@dataclass(frozen=True, slots=True)
class MakeRoomStep:
    """A step that deletes excess episodes. `kept`: maximum number of episodes per owner; 0 means no limit.

    A run deletes at most `READ_MAX` episodes.
    """

    reader: OwnerReader
    kept: int
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if not self.kept:
            return StepResult("nothing", row)
        found = await self.reader.oldest_beyond(
            request,
            EPISODES,
            [is_empty("deleted_at")],
            kept=self.kept,
            last=equals("durability", "permanent"),
            order_by="occurred_at",
            at_once=READ_MAX,
        )
        if not found:
            return StepResult("nothing", row)
        culled = [as_episode(each) for each in found]
        return StepResult("done", row, {"culled_episodes": len(culled)}, writes=delete_episodes(culled, request))

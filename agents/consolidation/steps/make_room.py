"""Where no run makes facts of episodes, an owner still keeps no more of them than the policy says.

Elsewhere the reflector deletes the oldest consolidated episodes when it adds one. Where none is ever consolidated, it
would find nothing to delete. So this step marks the oldest as deleted, persistent ones before permanent ones, and the
reflector removes their rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from qdrant_client import models

from ....adapters.vectors.conditions import equals, is_empty
from ....schemas.collections import EPISODES
from ....schemas.episodes import StoredEpisode
from ..owner_reads import READ_MAX, OwnerReader, as_episode, of_owner
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult
from .janitor import delete_episodes


@dataclass(frozen=True, slots=True)
class MakeRoomStep:
    """`kept`: episodes of an owner; 0: all. One run marks at most `READ_MAX`; the next one goes on."""

    reader: OwnerReader
    kept: int
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        store, live = self.reader.store, [of_owner(request), is_empty("deleted_at")]
        where = models.Filter(must=list(live))
        stands = await self.reader.calls.call(
            "store", lambda: store.count(EPISODES, tenant_id=request.tenant_id, where=where)
        )
        beyond = min(stands - self.kept, READ_MAX) if self.kept else 0
        if beyond <= 0:
            return StepResult("nothing", row)
        permanent = equals("durability", "permanent")
        culled = await self._oldest(request, models.Filter(must=list(live), must_not=[permanent]), beyond)
        if len(culled) < beyond:
            culled += await self._oldest(request, models.Filter(must=[*live, permanent]), beyond - len(culled))
        return StepResult("done", row, {"culled_episodes": len(culled)}, writes=delete_episodes(culled, request))

    async def _oldest(self, request: RunRequest, where: models.Filter, limit: int) -> list[StoredEpisode]:
        store = self.reader.store
        found = await self.reader.calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=request.tenant_id, where=where, order_by="occurred_at", limit=limit
            ),
        )
        return [as_episode(each) for each in found]

"""Deep phase: what several users know is proposed to the group that the operator named. No model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ....adapters.vectors.conditions import any_of
from ....memory.policies import SharingPolicy
from ....memory.upkeep.sharing import is_shareable, sharing_changes
from ....schemas.collections import FACTS
from ....schemas.facts import StoredFact
from ..owner_reads import READ_MAX, OwnerReader, oldest_first
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

TEXTS_MAX: Final = 100
"""Facts of the owner that one run looks for at others': the newest."""


@dataclass(frozen=True, slots=True)
class ShareStep:
    """The command goes to the group's key: its facts have the one writer that all others have."""

    lookup: OwnerReader
    policy: SharingPolicy
    part: PartName = "deep"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        group = self.policy.shared_with
        if group is None or asked.owner.scope != "user":
            return StepResult("nothing", row)
        mine = [each for each in await self.lookup.facts(asked) if is_shareable(each, self.policy)][-TEXTS_MAX:]
        if not mine:
            return StepResult("nothing", row)
        changes = sharing_changes(mine, await self._said(asked, mine), group=group, policy=self.policy)
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"shared": len(changes)}, changes=changes, to=group)

    async def _said(self, asked: RunRequest, mine: list[StoredFact]) -> tuple[StoredFact, ...]:
        """Rows of this tenant with these texts, whosever they are."""
        texts = sorted({each.content_hash for each in mine})
        where = models.Filter(must=[any_of("content_hash", texts)])
        store, tenant_id = self.lookup.store, asked.tenant_id
        found = await self.lookup.calls.call(
            "store", lambda: store.select(FACTS, tenant_id=tenant_id, where=where, limit=READ_MAX)
        )
        return oldest_first(found)

"""Share step of the deep phase. It finds the facts that several users have in common, and proposes these facts to the
group of the sharing policy. It calls no model.
"""

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
from ..step import RunRequest, StepResult

TEXTS_MAX: Final = 100
"""Number of the owner's newest facts that one run compares with facts of other users."""


@dataclass(frozen=True, slots=True)
class ShareStep:
    """A step that proposes facts to the group. The command has the group's key, so its lane is the group's lane."""

    reader: OwnerReader
    policy: SharingPolicy
    part: PartName = "deep"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        group = self.policy.shared_with
        if group is None or request.owner.scope != "user":
            return StepResult("nothing", row)
        mine = [each for each in await self.reader.facts(request) if is_shareable(each, self.policy)][-TEXTS_MAX:]
        if not mine:
            return StepResult("nothing", row)
        changes = sharing_changes(mine, await self._same_texts(request, mine), group=group, policy=self.policy)
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"shared": len(changes)}, changes=changes, to=group)

    async def _same_texts(self, request: RunRequest, mine: list[StoredFact]) -> tuple[StoredFact, ...]:
        """Read the facts of all owners of the tenant that have the same text as one of these facts."""
        texts = sorted({each.content_hash for each in mine})
        where = models.Filter(must=[any_of("content_hash", texts)])
        store, tenant_id = self.reader.store, request.tenant_id
        found = await self.reader.calls.call(
            "store", lambda: store.select(FACTS, tenant_id=tenant_id, where=where, limit=READ_MAX)
        )
        return oldest_first(found)

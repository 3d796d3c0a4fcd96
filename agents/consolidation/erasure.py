"""Erasure of a user from the memory that consolidation writes (docs/design/erasure.md).

The command `upkeep.erase` runs in the lane of one owner. If the owner is the erased user, everything of the owner goes.
Otherwise the owner's memory is shared: the archived texts of the user's episodes go, and the digest, which may contain
the user's facts. A later run writes the digest again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from ...memory.upkeep.summaries import SummaryBacklog
from ...schemas import ids
from ...schemas.collections import ARCHIVE, DIGESTS, LINKS, PROCEDURES
from ...schemas.commands import CommandResult
from ...schemas.outcomes import Outcome, Write
from ...streams.engine.decision import StageDecision
from ...streams.senders.commands import result_record
from ..common.erased_events import rows_of_lane
from ..common.owner_erasure import ErasedOwner
from .messages import SOURCE
from .recall_counts import recall_row_key
from .rows import ProgressRow


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepErasure(ErasedOwner):
    """One command `upkeep.erase`."""

    row: ProgressRow | None
    now: datetime

    async def decisions(self) -> AsyncIterator[StageDecision]:
        """Yield the outcomes of the command; the last one has its result."""
        removed = {ARCHIVE: 0, DIGESTS: 0, PROCEDURES: 0, LINKS: 0}
        for collection in (ARCHIVE, PROCEDURES) if self.is_own else (ARCHIVE,):
            while found := await self.next_ids(collection):
                removed[collection] += len(found)
                yield self._decision(Outcome(source=self.source, writes=(self.deletion(collection, found),)))
        single = {DIGESTS: ids.digest_id(self.owner_key)}
        if self.is_own:
            single[LINKS] = ids.links_id(self.owner_key)
        writes: list[Write] = []
        for collection, point_id in single.items():
            if await self.record(collection, point_id) is not None:
                removed[collection] = 1
                writes.append(self.deletion(collection, (point_id,)))
        rows = rows_of_lane(self.args.row_keys, self.owner_key)
        if self.is_own:
            own = (recall_row_key(self.owner_key), self.owner_key)
            rows = (*(each for each in rows if each not in own), *own)
        else:
            rows = tuple(each for each in rows if each not in (self.owner_key, recall_row_key(self.owner_key)))
        result = CommandResult(command_id=self.command.command_id, status="applied", result={**removed}, at=self.now)
        outcome = Outcome(
            source=self.source,
            writes=tuple(writes),
            records=(result_record(result, of=self.command, source=SOURCE),),
            cleanup=rows,
        )
        if self.is_own or self.row is not None:
            yield self._decision(outcome)
        else:
            yield StageDecision(outcome.model_copy(update={"tenant_id": self.command.tenant_id}))

    def _decision(self, outcome: Outcome) -> StageDecision:
        """Return an outcome in the owner's row. It replaces the row's last outcome, which may have content."""
        outcome = outcome.model_copy(update={"tenant_id": self.command.tenant_id})
        row = ProgressRow() if self.is_own or self.row is None else self._without_user(self.row)
        return row.decision(self.owner_key, outcome)

    def _without_user(self, row: ProgressRow) -> ProgressRow:
        """Return the row of a shared owner without the sessions of the user."""
        user = self.args.user_id
        prefix = f"{ids.join(self.command.tenant_id, user)}/"
        return row.model_copy(
            update={
                "summaries": tuple(each for each in row.summaries if each.user_id != user),
                "unsummarised": tuple(each for each in row.unsummarised if not _is_of(each, user)),
                "recent": tuple(each for each in row.recent if not each.session.startswith(prefix)),
            }
        )


def _is_of(backlog: SummaryBacklog, user_id: str) -> bool:
    return backlog.user_id == user_id

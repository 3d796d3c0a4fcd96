"""Erasure of a user from the memory that consolidation writes (docs/design/erasure.md).

The command `upkeep.erase` runs in the lane of one owner. If the owner is the erased user, everything of the owner goes.
Otherwise the owner's memory is shared: the archived texts of the user's episodes go, and the digest, which may contain
the user's facts. A later run writes the digest again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from qdrant_client import models

from ...adapters.ports import VectorStore
from ...adapters.vectors.conditions import equals
from ...memory.upkeep.summaries import SummaryBacklog
from ...schemas import ids
from ...schemas.collections import ARCHIVE, DIGESTS, LINKS, PROCEDURES
from ...schemas.commands import Command, CommandResult
from ...schemas.erasures import OwnerErase
from ...schemas.outcomes import DeletePoints, Outcome, Source, Write
from ...schemas.turns import Owner
from ...streams.engine.decision import StageDecision
from ...streams.engine.retry import Calls
from ...streams.senders.commands import result_record
from ..common.erased_events import rows_of_lane
from .messages import SOURCE
from .recall_counts import recall_row_key
from .rows import ProgressRow

IDS_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepErasure:
    """One command `upkeep.erase`."""

    store: VectorStore
    calls: Calls
    command: Command
    args: OwnerErase
    owner_key: str
    row: ProgressRow | None
    source: Source
    now: datetime

    @property
    def is_own(self) -> bool:
        """True if the owner is the erased user."""
        return self.command.owner == Owner(scope="user", id=self.args.user_id)

    async def decisions(self) -> AsyncIterator[StageDecision]:
        """Yield the outcomes of the command; the last one has its result."""
        removed = {ARCHIVE: 0, DIGESTS: 0, PROCEDURES: 0, LINKS: 0}
        for collection in (ARCHIVE, PROCEDURES) if self.is_own else (ARCHIVE,):
            while found := await self._found(collection):
                removed[collection] += len(found)
                yield self._decision(Outcome(source=self.source, writes=(self._deletion(collection, found),)))
        single = {DIGESTS: ids.digest_id(self.owner_key)}
        if self.is_own:
            single[LINKS] = ids.links_id(self.owner_key)
        writes: list[Write] = []
        for collection, point_id in single.items():
            if await self._exists(collection, point_id):
                removed[collection] = 1
                writes.append(self._deletion(collection, (point_id,)))
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
            records=(result_record(result, source=SOURCE, subject=self.owner_key),),
            cleanup=rows,
        )
        if self.is_own or self.row is not None:
            yield self._decision(outcome)
        else:
            yield StageDecision(outcome.model_copy(update={"tenant_id": self.command.tenant_id}))

    async def _found(self, collection: str) -> tuple[str, ...]:
        """Return the ids of the next records to delete, at most `IDS_BATCH`."""
        if not await self.calls.call("store", lambda: self.store.exists(collection)):
            return ()
        where: list[models.Condition] = [equals("owner_key", self.owner_key)]
        if not self.is_own:
            where.append(equals("user_id", self.args.user_id))
        found = await self.calls.call(
            "store",
            lambda: self.store.select(
                collection,
                tenant_id=self.command.tenant_id,
                where=models.Filter(must=where),
                limit=IDS_BATCH,
                fields=("owner_key",),
            ),
        )
        return tuple(each.id for each in found)

    async def _exists(self, collection: str, point_id: str) -> bool:
        if not await self.calls.call("store", lambda: self.store.exists(collection)):
            return False
        found = await self.calls.call(
            "store", lambda: self.store.get(collection, tenant_id=self.command.tenant_id, ids=[point_id])
        )
        return point_id in found

    def _deletion(self, collection: str, point_ids: Sequence[str]) -> DeletePoints:
        return DeletePoints(collection=collection, tenant_id=self.command.tenant_id, ids=tuple(point_ids))

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

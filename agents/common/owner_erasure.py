"""Parts of an erasure that the stages share: the check of its commands, and the records of one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from pydantic import ValidationError
from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import equals
from ...memory.erasures import ErasedUsers
from ...schemas.base import explain
from ...schemas.commands import Command
from ...schemas.erasures import OwnerErase, SessionErase
from ...schemas.errors import Poison
from ...schemas.outcomes import DeletePoints, Outcome, Source
from ...schemas.turns import Owner
from ...streams.engine.decision import StageDecision
from ...streams.engine.retry import Calls
from ...streams.senders.commands import result_record
from .erased_events import no_marker

IDS_BATCH: Final = 1_000
"""Records in one outcome, which has only their ids."""
A = TypeVar("A", OwnerErase, SessionErase)


def erasing_args(
    command: Command, contract: type[A], erased: ErasedUsers, *, source: Source, sender: str, now: datetime
) -> A | StageDecision:
    """Return the arguments of a command of an erasure, or its refusal if this worker does not know the marker. Raises
    Poison."""
    try:
        args = contract.from_payload(command.args)
    except ValidationError as error:
        raise Poison("invalid", explain(error)) from None
    if isinstance(args, OwnerErase):
        user_id = args.user_id
    else:
        assert command.session is not None  # the observer refuses a command without a session
        user_id = command.session.user_id
    if erased.is_open(command.tenant_id, user_id, args.erasure_id):
        return args
    refused_now = result_record(no_marker(command, now=now), of=command, source=sender)
    return StageDecision(Outcome(source=source, records=(refused_now,), tenant_id=command.tenant_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedOwner:
    """The records that a command of an erasure finds in the memory of its owner."""

    store: VectorStore
    calls: Calls
    command: Command
    args: OwnerErase
    owner_key: str
    source: Source

    @property
    def is_own(self) -> bool:
        """True if the owner is the erased user."""
        return self.command.owner == Owner(scope="user", id=self.args.user_id)

    async def next_ids(self, collection: str) -> tuple[str, ...]:
        """Return the ids of the next records to delete, at most `IDS_BATCH`. For a shared owner: of the user only."""
        where: list[models.Condition] = [] if self.is_own else [equals("user_id", self.args.user_id)]
        found = await self.select(collection, where, limit=IDS_BATCH, fields=("owner_key",))
        return tuple(each.id for each in found)

    async def select(
        self,
        collection: str,
        where: Sequence[models.Condition],
        *,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> Sequence[StoredPoint]:
        """Return records of the owner; none if there is no such collection."""
        if not await self.calls.call("store", lambda: self.store.exists(collection)):
            return ()
        return await self.calls.call(
            "store",
            lambda: self.store.select(
                collection,
                tenant_id=self.command.tenant_id,
                where=models.Filter(must=[equals("owner_key", self.owner_key), *where]),
                limit=limit,
                fields=fields,
            ),
        )

    async def record(self, collection: str, point_id: str) -> StoredPoint | None:
        """Return the record with this id, if any."""
        if not await self.calls.call("store", lambda: self.store.exists(collection)):
            return None
        found = await self.calls.call(
            "store", lambda: self.store.get(collection, tenant_id=self.command.tenant_id, ids=[point_id])
        )
        return found.get(point_id)

    def deletion(self, collection: str, point_ids: Sequence[str]) -> DeletePoints:
        return DeletePoints(collection=collection, tenant_id=self.command.tenant_id, ids=tuple(point_ids))

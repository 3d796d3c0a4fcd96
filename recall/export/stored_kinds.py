"""Kinds of records that are in a collection of the store: their filters, decoders and checks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from qdrant_client import models

from ...adapters.ports import Payload
from ...adapters.vectors.conditions import equals
from ...memory.recall.links import Links
from ...schemas import ids
from ...schemas.archive import ArchivedText
from ...schemas.blocks import MemoryBlock, OwnerBlock, SessionHoldings, StoredBlock, StoredHoldings
from ...schemas.collections import (
    ARCHIVE,
    BLOCKS,
    DIGESTS,
    EPISODES,
    FACTS,
    GROUPS,
    HOLDINGS,
    LINKS,
    PROCEDURES,
    TASKS,
    WORKING,
)
from ...schemas.digests import Digest, StoredDigest
from ...schemas.export import ExportedEpisode, ExportedFact, ExportedLink, ExportedLinks, ExportRecord, RecordKind
from ...schemas.groups import MemoryGroup, StoredGroup
from ...schemas.links import StoredLinks
from ...schemas.procedures import Procedure, StoredProcedure
from ...schemas.prospective import ProspectiveTask, StoredTask
from ...schemas.working_set import StoredWorkingEntry
from .request import ExportRequest

Embedding = Sequence[float] | None


@dataclass(frozen=True, slots=True)
class StoredKind:
    """One kind of record."""

    name: RecordKind
    collection: str
    where: Callable[[ExportRequest], models.Filter | None]
    """The filter for the owner. None: the export has no such records."""
    record: Callable[[Payload, Embedding], ExportRecord]
    has_vectors: bool = False


# ------------------------------------------------------------------------------------------------ filters
def of_owner(request: ExportRequest) -> models.Filter:
    key = request.owner_key
    return models.Filter(must=[] if key is None else [equals("owner_key", key)])


def of_sessions(request: ExportRequest) -> models.Filter:
    """Match records of a user's sessions; for another owner, records that belong to this owner."""
    owner = request.owner
    if owner is not None and owner.scope == "user":
        return models.Filter(must=[equals("user_id", owner.id)])
    return of_owner(request)


def _holdings(request: ExportRequest) -> models.Filter | None:
    """Match holdings. Only a user has sessions."""
    return of_sessions(request) if request.owner is None or request.owner.scope == "user" else None


def _groups(request: ExportRequest) -> models.Filter | None:
    """Match groups: all groups of the tenant, or the group that is the owner. A user's groups are not the user's."""
    return of_owner(request) if request.owner is None or request.owner.scope == "group" else None


def _links(request: ExportRequest) -> models.Filter:
    key = request.owner_key
    return models.Filter(must=[] if key is None else [models.HasIdCondition(has_id=[ids.links_id(key)])])


# ------------------------------------------------------------------------------------------------ decoders
def _fact(payload: Payload, embedding: Embedding) -> ExportedFact:
    return ExportedFact.from_payload(payload | {"embedding": embedding})


def _episode(payload: Payload, embedding: Embedding) -> ExportedEpisode:
    return ExportedEpisode.from_payload(payload | {"embedding": embedding})


def _unpacked(payload: Payload, embedding: Embedding) -> ExportedLinks:
    stored = StoredLinks.from_payload(payload)
    links = tuple(
        ExportedLink(
            one=str(UUID(bytes=one)),
            other=str(UUID(bytes=other)),
            weight=weight,
            grown_at=datetime.fromtimestamp(grown, tz=UTC),
        )
        for one, other, weight, grown in Links(packed=stored.packed).unpacked()
    )
    return ExportedLinks(tenant_id=stored.tenant_id, owner_key=stored.owner_key, links=links)


STORED_KINDS: Final[dict[RecordKind, StoredKind]] = {
    kind.name: kind
    for kind in (
        StoredKind("fact", FACTS, of_owner, _fact, has_vectors=True),
        StoredKind("episode", EPISODES, of_owner, _episode, has_vectors=True),
        StoredKind("archive", ARCHIVE, of_owner, lambda each, _: ArchivedText.from_payload(each)),
        StoredKind("digest", DIGESTS, of_owner, lambda each, _: StoredDigest.from_payload(each).public()),
        StoredKind("procedure", PROCEDURES, of_owner, lambda each, _: StoredProcedure.from_payload(each).public()),
        StoredKind("block", BLOCKS, of_owner, lambda each, _: StoredBlock.from_payload(each).public()),
        StoredKind("task", TASKS, of_owner, lambda each, _: StoredTask.from_payload(each).public()),
        StoredKind("links", LINKS, _links, _unpacked),
        StoredKind("group", GROUPS, _groups, lambda each, _: StoredGroup.from_payload(each).public()),
        StoredKind("working", WORKING, of_sessions, lambda each, _: StoredWorkingEntry.from_payload(each)),
        StoredKind("holdings", HOLDINGS, _holdings, lambda each, _: StoredHoldings.from_payload(each).public()),
    )
}


# ------------------------------------------------------------------------------------------------ checks
def began(record: ExportRecord) -> datetime | None:
    """Return the time at which memory got the record, or None if the record does not have this time."""
    match record:
        case ExportedFact() | ExportedEpisode():
            return record.recorded_at
        case ProspectiveTask():
            return record.created_at
        case OwnerBlock() | MemoryGroup():
            return record.updated_at if record.version == 1 else None
        case Procedure():
            return record.at if record.version == 1 else None
        case _:
            return None


def shown(record: ExportRecord, request: ExportRequest) -> bool:
    """Return whether the caller may see the record. Blocks of holdings are checked one by one (`shown_holdings`)."""
    match record:
        case ExportedEpisode():
            return request.may_show(record.sensitivity) and (request.removed or record.deleted_at is None)
        case Procedure():
            return request.may_show(record.sensitivity) and (request.removed or record.removed_at is None)
        case ExportedFact() | ArchivedText() | Digest() | MemoryBlock() | ProspectiveTask() | StoredWorkingEntry():
            return request.may_show(record.sensitivity)
        case _:
            return True


def shown_holdings(holdings: SessionHoldings, request: ExportRequest) -> SessionHoldings:
    """Return the holdings without the blocks that the caller may not see."""
    blocks = tuple(block for block in holdings.blocks if request.may_show(block.sensitivity))
    return holdings.model_copy(update={"blocks": blocks})

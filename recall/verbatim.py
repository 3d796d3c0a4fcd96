"""Reader of the original text of an episode that was reduced to a gist. Used by CLI, HTTP and tools.

A read writes nothing to the store. Before it returns the text, it publishes a durable record on memory.recalled.
Consolidation then extends the retention of the archived text. A text is returned only if its SHA-256 equals the
archived SHA-256 (docs/design/gist.md).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog
from qdrant_client import models

from ..adapters.ports import VectorStore
from ..adapters.vectors.conditions import any_of, equals
from ..memory.facts.belief import FactClaim, is_episode_believed
from ..memory.tenant_policies import TenantPolicies
from ..memory.upkeep.gist import archive_expiry, is_whole
from ..schemas import ids
from ..schemas.archive import ArchivedText
from ..schemas.collections import ARCHIVE, EPISODES, FACTS
from ..schemas.episodes import StoredEpisode
from ..schemas.facts import FactState, StoredFact
from ..schemas.recall import RecalledRef, RecallReport
from ..schemas.turns import Sensitivity, up_to
from ..streams.log.port import Log
from .collection_cache import CollectionCache
from .recall_events import send
from .record_reader import Sees, sees_all

log = structlog.get_logger(__name__)
WITHHELD: tuple[FactState, ...] = ("forgotten", "quarantined")
"""States of facts that no read shows. An episode with the same statement as a fact in one of these states is not
returned either."""
Nothing = Literal["whole", "gone", "damaged"]
"""Reason for a missing text. whole: the episode was never reduced, so its own text is complete. gone: the retention of
the text in the archive is over. damaged: the archived text does not match its SHA-256."""


@dataclass(frozen=True, slots=True)
class EpisodeRef:
    """An episode, and the caller's permissions: visible owners and the highest sensitivity."""

    tenant_id: str
    episode_id: str
    sees: Sees = sees_all
    ceiling: Sensitivity = "internal"


@dataclass(frozen=True, slots=True)
class VerbatimResult:
    """The original text, or None and the reason in `nothing`."""

    episode_id: str
    content: str | None
    nothing: Nothing | None = None
    archived_at: datetime | None = None
    sha256: str | None = None
    kept_until: datetime | None = None
    """End of the retention of the archived text, counted from this access."""


class VerbatimReader:
    """Reader of original episode texts. One instance serves concurrent reads.

    Raises Transient when the store or the log does not answer: without a record of the access no text is returned.
    """

    def __init__(self, *, store: VectorStore, log: Log, policies: TenantPolicies) -> None:
        self._store = store
        self._log = log
        self._policies = policies
        self._same_from = policies.deployment.recall.duplicate_overlap
        self._existing = CollectionCache(store=store)

    async def rehydrate(self, ref: EpisodeRef, *, now: datetime) -> VerbatimResult | None:
        """Return the original text of an episode, or None when the caller may see no such episode."""
        episode = await self._episode(ref)
        if episode is None:
            return None
        if episode.archived_at is None:
            return VerbatimResult(ref.episode_id, None, "whole")
        row = await self._archived(ref)
        if row is None:
            return VerbatimResult(ref.episode_id, None, "gone", episode.archived_at)
        if not is_whole(row, episode):
            log.error("archive_damaged", tenant_id=ref.tenant_id, episode_id=ref.episode_id, sha256=row.sha256)
            return VerbatimResult(ref.episode_id, None, "damaged", episode.archived_at)
        if not await self.may_be_shown(row):
            return None
        told = RecallReport(
            recall_id=str(uuid.uuid4()),
            tenant_id=ref.tenant_id,
            owner=episode.owner,
            at=now,
            items=(RecalledRef(tier="episodic", id=ref.episode_id, rank=0),),
            kind="rehydrated",
        )
        await send(told, to=self._log)
        log.info("rehydrated", tenant_id=ref.tenant_id, episode_id=ref.episode_id, recall_id=told.recall_id)
        accessed = row.model_copy(update={"accessed_at": max(row.accessed_at, now)})
        until = archive_expiry(accessed, self._policies.of(ref.tenant_id).gist)
        return VerbatimResult(ref.episode_id, row.content, None, episode.archived_at, row.sha256, until)

    async def may_be_shown(self, row: ArchivedText) -> bool:
        """Return whether the text may be shown. The text is withheld when facts have the same statement and all these
        facts are in a state of `WITHHELD`."""
        if not await self._existing.has(FACTS):
            return True
        found = await self._store.select(
            FACTS,
            tenant_id=row.tenant_id,
            where=models.Filter(
                must=[equals("owner_key", row.owner_key), any_of("evidence[].observation_id", (row.observation_id,))]
            ),
        )
        facts = (StoredFact.from_payload(each.payload) for each in found)
        sayings = [
            FactClaim(each.content, frozenset((row.observation_id,)), each.state not in WITHHELD) for each in facts
        ]
        return is_episode_believed(row.content, row.observation_id, sayings, more_than=self._same_from)

    # -------------------------------------------------------------------------------------------- within
    async def _episode(self, ref: EpisodeRef) -> StoredEpisode | None:
        """Return the episode if it is not deleted and the caller may see it."""
        if not await self._existing.has(EPISODES):
            return None
        found = await self._store.get(EPISODES, tenant_id=ref.tenant_id, ids=[ref.episode_id])
        if ref.episode_id not in found:
            return None
        episode = StoredEpisode.from_payload(found[ref.episode_id].payload)
        seen = episode.sensitivity in up_to(ref.ceiling) and ref.sees(episode.owner)
        return episode if seen and episode.deleted_at is None else None

    async def _archived(self, ref: EpisodeRef) -> ArchivedText | None:
        if not await self._existing.has(ARCHIVE):
            return None
        archive_id = ids.archive_id(ref.episode_id)
        found = await self._store.get(ARCHIVE, tenant_id=ref.tenant_id, ids=[archive_id])
        return ArchivedText.from_payload(found[archive_id].payload) if archive_id in found else None

"""The words of an episode of which a gist is left (memory-model §8). For commands, HTTP and tools.

A read writes nothing: it tells memory.recalled, durably and before the words are given, and consolidation keeps them
their time anew. Nothing is given whose SHA-256 is not the one that was archived. docs/design/gist.md.
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
from ..memory.policies import GistPolicy, RecallPolicy
from ..memory.upkeep.gist import archive_expiry, is_whole
from ..schemas import ids
from ..schemas.archive import Archived
from ..schemas.collections import ARCHIVE, EPISODES, FACTS
from ..schemas.episodes import StoredEpisode
from ..schemas.facts import FactState, StoredFact
from ..schemas.recall import RecalledRef, RecallTold
from ..schemas.turns import Sensitivity, up_to
from ..streams.log.port import Log
from .collection_cache import CollectionCache
from .recall_events import send
from .record_reader import Sees, sees_all

log = structlog.get_logger(__name__)
WITHHELD: tuple[FactState, ...] = ("forgotten", "quarantined")
"""States that are out of every read: what such a fact says is not given as an episode either."""
Nothing = Literal["whole", "gone", "damaged"]
"""Why there is nothing to give. whole: it was never compressed, its text is all there is. gone: its time in the archive
is over. damaged: what the archive has is not what was put there."""


@dataclass(frozen=True, slots=True)
class EpisodeRef:
    """Which episode, and who asks: whose memory they see, and the most sensitive that they may read."""

    tenant_id: str
    episode_id: str
    sees: Sees = sees_all
    ceiling: Sensitivity = "internal"


@dataclass(frozen=True, slots=True)
class VerbatimResult:
    """`content` None: there is nothing to give, `nothing` says why."""

    episode_id: str
    content: str | None
    nothing: Nothing | None = None
    archived_at: datetime | None = None
    sha256: str | None = None
    kept_until: datetime | None = None
    """As of this access."""


class VerbatimReader:
    """The service. One instance serves any number of reads at once. `Transient` when the store is away, or the log:
    an access that cannot be told gives nothing."""

    def __init__(self, *, store: VectorStore, log: Log, gist: GistPolicy, recall: RecallPolicy) -> None:
        self._store = store
        self._log = log
        self._gist = gist
        self._same_from = recall.duplicate_overlap
        self._existing = CollectionCache(store=store)

    async def rehydrate(self, ref: EpisodeRef, *, now: datetime) -> VerbatimResult | None:
        """None: there is no such episode for who asks."""
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
        if not await self._may_be_told(row):
            return None
        told = RecallTold(
            recall_id=str(uuid.uuid4()),
            tenant_id=ref.tenant_id,
            owner=episode.owner,
            at=now,
            items=(RecalledRef(tier="episodic", id=ref.episode_id, rank=0),),
            kind="rehydrated",
        )
        await send(told, to=self._log)
        log.info("rehydrated", tenant_id=ref.tenant_id, episode_id=ref.episode_id, recall_id=told.recall_id)
        until = archive_expiry(row.model_copy(update={"accessed_at": max(row.accessed_at, now)}), self._gist)
        return VerbatimResult(ref.episode_id, row.content, None, episode.archived_at, row.sha256, until)

    # -------------------------------------------------------------------------------------------- within
    async def _episode(self, ref: EpisodeRef) -> StoredEpisode | None:
        """One that stands, and that who asks may see."""
        if not await self._existing.has(EPISODES):
            return None
        found = await self._store.get(EPISODES, tenant_id=ref.tenant_id, ids=[ref.episode_id])
        if ref.episode_id not in found:
            return None
        episode = StoredEpisode.from_payload(found[ref.episode_id].payload)
        seen = episode.sensitivity in up_to(ref.ceiling) and ref.sees(episode.owner)
        return episode if seen and episode.deleted_at is None else None

    async def _archived(self, ref: EpisodeRef) -> Archived | None:
        if not await self._existing.has(ARCHIVE):
            return None
        archive_id = ids.archive_id(ref.episode_id)
        found = await self._store.get(ARCHIVE, tenant_id=ref.tenant_id, ids=[archive_id])
        return Archived.from_payload(found[archive_id].payload) if archive_id in found else None

    async def _may_be_told(self, row: Archived) -> bool:
        """False when facts that are out of every read say the same."""
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

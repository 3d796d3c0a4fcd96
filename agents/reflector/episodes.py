"""Episodes that the reflector adds, and old episodes that it deletes to make room.

New episodes come from observed turns, from a flushed working set, and from summaries of consolidation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue
from qdrant_client import models

from ...adapters.ports import VectorStore
from ...adapters.vectors.conditions import equals, is_empty
from ...memory.facts.routing import trust_of
from ...memory.trust.rendered_text import observed_rule
from ...schemas import ids
from ...schemas.collections import EPISODES
from ...schemas.commands import EpisodesKeep, EpisodesRecord, EpisodeVerdict, SummaryProposal
from ...schemas.episodes import SUMMARY, StoredEpisode
from ...schemas.observations import Observation
from ...schemas.outcomes import DeletePoints, InsertPoints, OutPoint, Write
from ...schemas.turns import Owner
from ...streams.engine.decision import Rows
from ...streams.engine.retry import Calls
from .fact_overlay import Vector
from .rows import is_retracted


@dataclass(frozen=True, slots=True)
class EpisodeDecision:
    """The episodes that a command adds, and a verdict for each proposed episode."""

    episodes: tuple[StoredEpisode, ...]
    verdicts: tuple[EpisodeVerdict, ...]


@dataclass(frozen=True, slots=True)
class Episodes:
    """Reads and writes of episodes. `kept(tenant_id)`: maximum number of episodes per owner, 0 for no limit.

    `count(name, n)` updates a metric.
    """

    store: VectorStore
    calls: Calls
    kept: Callable[[str], int]
    count: Callable[[str, int], None]

    async def writes(
        self,
        episodes: Sequence[StoredEpisode],
        vectors: Mapping[str, Vector],
        *,
        tenant_id: str,
        owner_key: str,
        recorded: int,
    ) -> tuple[Write, ...]:
        """Return the writes that insert missing episodes and delete old episodes to make room.

        `recorded`: number of episodes ever recorded for the owner.
        """
        if not episodes:
            return ()
        points = tuple(
            OutPoint(
                id=each.episode_id,
                payload=each.to_payload(),
                dense=vectors[each.content],
                text=each.content,
            )
            for each in episodes
        )
        room = await self._make_room(tenant_id, owner_key, recorded, len(episodes))
        return (InsertPoints(collection=EPISODES, points=points), *room)

    async def _make_room(self, tenant_id: str, owner_key: str, recorded: int, added: int) -> tuple[DeletePoints, ...]:
        """Return the deletion of the owner's oldest consolidated or deleted episodes when there are too many.

        All other episodes stay. The stored episodes are counted only if more episodes than the limit were ever recorded
        for the owner.
        """
        kept = self.kept(tenant_id)
        if not kept or recorded + added <= kept:
            return ()
        mine = equals("owner_key", owner_key)
        where = models.Filter(must=[mine])
        stored = await self.calls.call("store", lambda: self.store.count(EPISODES, tenant_id=tenant_id, where=where))
        if stored + added <= kept:
            return ()
        done_with = [models.Filter(must_not=[is_empty(name)]) for name in ("consolidated_at", "deleted_at")]
        removable = models.Filter(must=[mine, models.Filter(should=done_with)])
        oldest = await self.calls.call(
            "store",
            lambda: self.store.select(
                EPISODES,
                tenant_id=tenant_id,
                where=removable,
                order_by="occurred_at",
                limit=stored + added - kept,
            ),
        )
        if not oldest:
            return ()
        self.count("episodes_culled", len(oldest))
        return (DeletePoints(collection=EPISODES, tenant_id=tenant_id, ids=tuple(each.id for each in oldest)),)

    async def of_owner(self, episode_ids: Iterable[str], *, tenant_id: str, owner_key: str) -> dict[str, StoredEpisode]:
        """Return the owner's episodes with these ids, by id."""
        wanted = [each for each in dict.fromkeys(episode_ids) if ids.is_derived(each)]
        if not wanted:
            return {}
        found = await self.calls.call("store", lambda: self.store.get(EPISODES, tenant_id=tenant_id, ids=wanted))
        episodes = {each: StoredEpisode.from_payload(record.payload) for each, record in found.items()}
        return {each: episode for each, episode in episodes.items() if episode.owner_key == owner_key}

    async def from_working_set(
        self, args: EpisodesKeep, *, rows: Rows, tenant_id: str, owner: Owner, now: datetime
    ) -> EpisodeDecision:
        """Decide about entries of a working set.

        An observation whose episode exists, even as deleted, adds no episode. An entry of a turn that was taken back is
        refused.
        """
        episodes = [
            build_episode(
                observation,
                tenant_id=tenant_id,
                owner=owner,
                user_id=args.user_id,
                session_id=args.session_id,
                turn_id=each.turn_id,
                occurred_at=each.occurred_at,
                now=now,
            )
            for each, observation in zip(args.observations, args.as_derived(tenant_id), strict=True)
        ]
        episode_ids = [each.episode_id for each in episodes]
        known = set(
            await self.calls.call("store", lambda: self.store.get(EPISODES, tenant_id=tenant_id, ids=episode_ids))
        )
        added: list[StoredEpisode] = []
        verdicts: list[EpisodeVerdict] = []
        for episode in episodes:
            if (refused := _refused(episode, rows)) is not None:
                verdicts.append(refused)
                continue
            is_new = episode.episode_id not in known
            if is_new:
                added.append(episode)
                known.add(episode.episode_id)
            verdicts.append(_verdict(episode, is_new))
        return EpisodeDecision(tuple(added), tuple(verdicts))

    async def from_summaries(
        self, args: EpisodesRecord, *, rows: Rows, tenant_id: str, owner: Owner, now: datetime
    ) -> EpisodeDecision:
        """Decide about summaries. No turn is summarised twice: the first summary of a turn is kept.

        A summary that includes a turn that was taken back is refused.
        """
        added: list[StoredEpisode] = []
        verdicts: list[EpisodeVerdict] = []
        for proposal in args.summaries:
            episode = _build_summary(proposal, tenant_id=tenant_id, owner=owner, now=now)
            if (refused := _refused(episode, rows)) is not None:
                verdicts.append(refused)
                continue
            known = [*await self._summaries(episode), *added]
            summarised = {
                turn
                for each in known
                if session_of_episode(each) == session_of_episode(episode)
                for turn in each.turn_ids
            }
            is_new = summarised.isdisjoint(episode.turn_ids)
            if is_new:
                added.append(episode)
            verdicts.append(_verdict(episode, is_new))
        return EpisodeDecision(tuple(added), tuple(verdicts))

    async def _summaries(self, like: StoredEpisode) -> list[StoredEpisode]:
        """Read the summaries of the same owner and session, including deleted summaries."""
        where = models.Filter(
            must=[
                equals("owner_key", like.owner_key),
                equals("user_id", like.user_id),
                equals("session_id", like.session_id),
                equals("category", like.category),
            ]
        )
        found = await self.calls.call(
            "store", lambda: self.store.select(EPISODES, tenant_id=like.tenant_id, where=where)
        )
        episodes = (StoredEpisode.from_payload(each.payload) for each in found)
        return [each for each in episodes if each.is_summary]


def _refused(episode: StoredEpisode, rows: Rows) -> EpisodeVerdict | None:
    """Return a refusal when the episode is an instruction to the assistant, or includes a turn that was taken back.
    Otherwise return None."""
    session = session_of_episode(episode)
    turns = episode.turn_ids or (episode.turn_id,)
    if observed_rule(episode.subject, episode.content, episode.trust) is None and not any(
        is_retracted(rows, episode.owner_key, session, each) for each in turns
    ):
        return None
    return EpisodeVerdict(episode_id=episode.episode_id, verdict="refused")


def _verdict(episode: StoredEpisode, is_new: bool) -> EpisodeVerdict:
    return EpisodeVerdict(episode_id=episode.episode_id, verdict="applied" if is_new else "duplicate")


def build_episode(
    observation: Observation,
    *,
    tenant_id: str,
    owner: Owner,
    user_id: str,
    session_id: str,
    turn_id: str,
    occurred_at: datetime,
    now: datetime,
    tags: tuple[str, ...] = (),
    metadata: Mapping[str, JsonValue] | None = None,
    agent_id: str | None = None,
) -> StoredEpisode:
    """Return the episode for an observation of one turn."""
    return StoredEpisode(
        episode_id=ids.episode_id(observation.observation_id),
        tenant_id=tenant_id,
        owner=owner,
        session_id=session_id,
        turn_id=turn_id,
        observation_id=observation.observation_id,
        subject=observation.subject,
        content=observation.content,
        category=observation.category,
        durability=observation.durability,
        importance=observation.importance,
        tags=tags,
        metadata=dict(metadata or {}),
        agent_id=agent_id,
        emotion=observation.emotion,
        occurred_at=occurred_at,
        valid_from=observation.valid_from or occurred_at,
        valid_to=observation.valid_to,
        recorded_at=now,
        sensitivity=observation.sensitivity,
        trust=trust_of(observation.source_role),
        evidence=observation.evidence,
        content_hash=ids.content_hash(observation.content),
        owner_key=owner.key(tenant_id),
        user_id=user_id,
    )


def session_of_episode(episode: StoredEpisode) -> str:
    """Return the key of the session that an episode is from."""
    return ids.session_key(episode.tenant_id, episode.user_id, episode.session_id)


def _build_summary(proposal: SummaryProposal, *, tenant_id: str, owner: Owner, now: datetime) -> StoredEpisode:
    """Return the episode for a summary.

    The episode is marked as consolidated, because consolidation reads the episodes of the single turns and makes no
    fact from their summary. The episode has no quote; its evidence is the list of turns.
    """
    session = ids.session_key(tenant_id, proposal.user_id, proposal.session_id)
    last = proposal.turn_ids[-1]
    observation_id = ids.summary_id(owner.key(tenant_id), session, last)
    return StoredEpisode(
        episode_id=ids.episode_id(observation_id),
        tenant_id=tenant_id,
        owner=owner,
        session_id=proposal.session_id,
        turn_id=last,
        observation_id=observation_id,
        subject="user",
        content=proposal.content,
        category="event",
        durability="persistent",
        importance=proposal.importance,
        tags=(SUMMARY,),
        occurred_at=proposal.occurred_at,
        valid_from=proposal.began_at,
        recorded_at=now,
        consolidated_at=now,
        sensitivity=proposal.sensitivity,
        trust=proposal.trust,
        evidence="",
        content_hash=ids.content_hash(proposal.content),
        turn_ids=proposal.turn_ids,
        owner_key=owner.key(tenant_id),
        user_id=proposal.user_id,
    )

"""Manually added episodes (docs/reference/edits.md). `add` returns writes; the caller executes them."""

from __future__ import annotations

from qdrant_client import models

from ....adapters.vectors.conditions import equals, is_empty
from ....memory.facts.statements import resolve_subject
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text, observed_rule
from ....schemas import ids
from ....schemas.base import QUOTE_MAX
from ....schemas.collections import EPISODES
from ....schemas.edits.common import EDIT_SESSION
from ....schemas.edits.episodes import EpisodeAdd, EpisodeAdded
from ....schemas.episodes import Episode, StoredEpisode
from .scope import OwnerEditResult, OwnerEditScope, refused, refused_session


async def add(args: EpisodeAdd, scope: OwnerEditScope) -> OwnerEditResult:
    """Add an episode, unless the owner has an episode with the same canonical text."""
    if scope.is_erased(args.session_id, args.user_id):
        return refused_session()
    if (rule := observed_rule(args.subject, args.content, args.trust)) is not None:
        return refused("instruction", f"it is an instruction to the assistant ({rule}), not an event")
    if (unsafe := find_unsafe_text(Episode, {"tags": args.tags})) is not None:
        return refused(unsafe.code, unsafe.message)
    user_id = args.user_id or (scope.owner.id if scope.owner.scope == "user" else None)
    if user_id is None:
        return refused(
            "invalid_args", f"user_id is needed for the episode of a {scope.owner.scope}: name the user who was present"
        )
    episode = _episode(args, user_id, scope)
    known = await _equal(episode, scope)
    if known is not None:
        return OwnerEditResult(result=EpisodeAdded(episode_id=known, existing=True))
    writes = await scope.episodes.writes(
        (episode,),
        await scope.embed([episode.content]),
        tenant_id=episode.tenant_id,
        owner_key=scope.owner_key,
        recorded=scope.recorded_episodes,
    )
    added = EpisodeAdded(episode_id=episode.episode_id, existing=False)
    return OwnerEditResult(result=added, episodes=1, writes=writes)


def _episode(args: EpisodeAdd, user_id: str, scope: OwnerEditScope) -> StoredEpisode:
    command = scope.command
    stated = ids.edit_observation_id(scope.owner_key, command.command_id)
    occurred_at = args.occurred_at or command.issued_at
    subject = resolve_subject(args.subject, scope.owner, user_id)
    return StoredEpisode(
        episode_id=ids.episode_id(stated),
        tenant_id=command.tenant_id,
        owner=scope.owner,
        session_id=args.session_id or EDIT_SESSION,
        turn_id=stated,
        observation_id=stated,
        subject=subject,
        content=args.content,
        category=args.category,
        durability=args.durability,
        importance=args.importance,
        tags=args.tags,
        occurred_at=occurred_at,
        valid_from=occurred_at,
        recorded_at=scope.now,
        sensitivity=at_least(args.sensitivity, scope.secrets.label(args.content, subject)),
        trust=args.trust,
        evidence=args.content[:QUOTE_MAX],
        content_hash=ids.content_hash(args.content),
        command_id=command.command_id,
        owner_key=scope.owner_key,
        user_id=user_id,
    )


async def _equal(episode: StoredEpisode, scope: OwnerEditScope) -> str | None:
    """Return the id of the owner's undeleted episode with the same canonical text and subject, if any."""
    where = models.Filter(
        must=[
            equals("owner_key", episode.owner_key),
            equals("subject", episode.subject),
            equals("content_hash", episode.content_hash),
            is_empty("deleted_at"),
        ]
    )
    found = await scope.calls.call(
        "store", lambda: scope.store.select(EPISODES, tenant_id=episode.tenant_id, where=where, limit=1)
    )
    return found[0].id if found else None

"""Episodes that are recalled again and again are worth believing: they are proposed as facts (memory-model §7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from ...schemas.commands import Change
from ...schemas.episodes import StoredEpisode
from ..policies import ConsolidationPolicy

PROMOTED_MAX = 20
"""Proposals of one run: as many as one command carries."""


def select_promotable(
    episodes: Sequence[StoredEpisode], *, now: datetime, policy: ConsolidationPolicy
) -> tuple[StoredEpisode, ...]:
    """Old enough and recalled often enough, the most recalled first. A gist is no statement to be believed: it says
    less than was said."""
    oldest = now - timedelta(days=policy.promote_days)
    found = [
        each
        for each in episodes
        if each.occurred_at <= oldest and each.retrieval_count >= policy.promote_recalls and each.archived_at is None
    ]
    return tuple(sorted(found, key=lambda each: (-each.retrieval_count, each.occurred_at, each.episode_id)))


def promotion_changes(episodes: Sequence[StoredEpisode], *, known: Collection[str]) -> tuple[Change, ...]:
    """`known`: observations that a fact, believed or not, was made from: their episodes are left."""
    changes = [
        Change(
            action="new",
            subject=each.subject,
            content=each.content,
            category=each.category,
            valid_from=each.valid_from,
            reason=f"recalled {each.retrieval_count} times",
            source_episode_ids=(each.episode_id,),
        )
        for each in episodes
        if each.observation_id not in known
    ]
    return tuple(changes[:PROMOTED_MAX])

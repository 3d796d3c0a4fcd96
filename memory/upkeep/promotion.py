"""Promotion: an episode that is often recalled is proposed as a fact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from ...schemas.commands import Change
from ...schemas.episodes import StoredEpisode
from ..policies import ConsolidationPolicy

PROMOTED_MAX = 20
"""Maximum proposals of a run: the limit of one command."""


def select_promotable(
    episodes: Sequence[StoredEpisode], *, now: datetime, policy: ConsolidationPolicy
) -> tuple[StoredEpisode, ...]:
    """Return the episodes that are old enough and recalled often enough, the most recalled first.

    Episodes with a gist are left out: a gist says less than the original words.
    """
    oldest = now - timedelta(days=policy.promote_days)
    found = [
        each
        for each in episodes
        if each.occurred_at <= oldest and each.retrieval_count >= policy.promote_recalls and each.archived_at is None
    ]
    return tuple(sorted(found, key=lambda each: (-each.retrieval_count, each.occurred_at, each.episode_id)))


def promotion_changes(episodes: Sequence[StoredEpisode], *, known: Collection[str]) -> tuple[Change, ...]:
    """Return the proposals of new facts. `known`: ids of observations that already have a fact in any state. The
    episodes of these observations are left out."""
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

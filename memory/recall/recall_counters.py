"""Fields that a recall changes on a recalled record; pure.

They change without a new version, because they describe access and not content. The values are absolute, so writing
them again changes nothing.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from ...schemas.cloudevents import rfc3339
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ..decay import latest, stability_grown

RECALLED_STRENGTH = 1.0
"""A recall restarts the decay of strength."""


def fact_recall_fields(fact: StoredFact, *, at: datetime) -> dict[str, JsonValue]:
    """Return the new fields of a recalled fact. Its stability is computed from the number of recalls."""
    return _touched(fact.retrieval_count, fact.last_accessed_at, at)


def episode_recall_fields(episode: StoredEpisode, *, at: datetime, growth: float) -> dict[str, JsonValue]:
    """Return the new fields of a recalled episode."""
    fields = _touched(episode.retrieval_count, episode.last_accessed_at, at)
    return fields | {"stability": stability_grown(episode.stability, growth=growth)}


def _touched(recalls: int, last: datetime | None, at: datetime) -> dict[str, JsonValue]:
    return {
        "strength": RECALLED_STRENGTH,
        "retrieval_count": recalls + 1,
        "last_accessed_at": rfc3339(latest(at, last)),
    }

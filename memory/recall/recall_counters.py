"""Fields that a recall changes on a recalled record; pure.

The record gets no new version, because these fields describe access and not content. The values are absolute, so a
repeated write changes nothing.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from ...schemas.cloudevents import rfc3339
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ..decay import latest, stability_grown

RECALLED_STRENGTH = 1.0
"""The strength of a record after a recall. The decay of the strength starts again from this value."""


def fact_recall_fields(fact: StoredFact, *, at: datetime) -> dict[str, JsonValue]:
    """Return the new fields of a recalled fact. The fact stores no stability, because the stability follows from
    `retrieval_count`."""
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

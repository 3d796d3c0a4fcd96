"""What a recall leaves on the record that was recalled (memory-model §8); pure.

Fields that change without a version: they say how present a record is, not what it says. What a recall sets is reckoned
from the row as it stands, and set as it is: the same recall applied again changes nothing.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from ...schemas.cloudevents import rfc3339
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ..decay import latest, stability_grown

RECALLED_STRENGTH = 1.0
"""The forgetting begins anew."""


def fact_recall_fields(fact: StoredFact, *, at: datetime) -> dict[str, JsonValue]:
    """The fields of a fact that was recalled. Its stability follows from the number of recalls."""
    return _touched(fact.retrieval_count, fact.last_accessed_at, at)


def episode_recall_fields(episode: StoredEpisode, *, at: datetime, growth: float) -> dict[str, JsonValue]:
    """The fields of an episode that was recalled."""
    fields = _touched(episode.retrieval_count, episode.last_accessed_at, at)
    return fields | {"stability": stability_grown(episode.stability, growth=growth)}


def _touched(recalls: int, last: datetime | None, at: datetime) -> dict[str, JsonValue]:
    return {
        "strength": RECALLED_STRENGTH,
        "retrieval_count": recalls + 1,
        "last_accessed_at": rfc3339(latest(at, last)),
    }

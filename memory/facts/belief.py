"""Belief in episodes and summaries, decided by the facts with the same content (ADR 0011); pure.

One observation may become both an episode (somebody said it) and a fact (it is true). When the fact is no longer
believed, the episode must not answer a question about the present.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from ...schemas.facts import FactState
from .similarity import overlap, words

DENIED: tuple[FactState, ...] = ("superseded", "invalidated", "forgotten", "quarantined")
"""States of facts that are no longer believed. `expired` is not among them: an expired fact was true before it ended,
so its episodes are still believed."""


@dataclass(frozen=True, slots=True)
class FactClaim:
    """The fields of a fact that decide whether an episode or a summary is believed."""

    content: str
    observation_ids: AbstractSet[str]
    """Ids of the observations in the fact's evidence."""
    believed: bool
    turns: AbstractSet[tuple[str, str]] = frozenset()
    """The turns in the fact's evidence, as pairs of session id and turn id."""


def was_believed(
    state: FactState,
    *,
    valid_to: datetime | None,
    expired_at: datetime | None,
    closed_at: datetime | None = None,
    valid: datetime,
    known: datetime,
) -> bool:
    """Return whether memory believed the row at time `known` to be true at time `valid`.

    Only the row's last version is known. If a superseded row has no `closed_at`, its `valid_to` is used as the time of
    closing.
    """
    match state:
        case "superseded":
            if closed_at is not None and closed_at > known:
                return True  # the row was not closed yet at `known`
            return valid_to is not None and valid_to > (min(valid, known) if closed_at is None else valid)
        case "invalidated":
            return expired_at is not None and expired_at > known
        case "forgotten" | "quarantined":
            return False
        case _:
            return True


def is_episode_believed(content: str, observation_id: str, sayings: Collection[FactClaim], *, more_than: float) -> bool:
    """Return whether an episode is still believed: no fact states it, or at least one believed fact states it.

    A fact states an episode when two conditions hold: the fact's evidence names the episode's observation, and the fact
    contains more than the share `more_than` (0 to 1) of the episode's words. The second condition excludes most facts
    that are concluded from several episodes.
    """
    its = words(content)
    by = [
        each.believed
        for each in sayings
        if observation_id in each.observation_ids and overlap(its, words(each.content)) > more_than
    ]
    return not by or any(by)


def is_summary_believed(turns: AbstractSet[tuple[str, str]], sayings: Collection[FactClaim]) -> bool:
    """Return whether a summary is still believed: no denied fact has evidence from one of its turns.

    The texts are not compared, because a summary may repeat a fact in other words.
    """
    return all(each.believed or each.turns.isdisjoint(turns) for each in sayings)

"""Whether an episode still stands beside the facts that say the same (ADR 0011); pure.

What was observed in a turn may be an episode (it was said) and a fact (it holds) at once. Of such a pair the fact
speaks, as with all duplicates; so when the fact is no longer believed, its episode is no answer about now either.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from ...schemas.facts import FactState
from ..recall.ranking import overlap
from .similarity import words

DENIED: tuple[FactState, ...] = ("superseded", "invalidated", "forgotten", "quarantined")
"""States of what is not said any more. A fact that expired is over, which does not make it untold."""


@dataclass(frozen=True, slots=True)
class FactClaim:
    """A fact, as far as it speaks for episodes."""

    content: str
    observation_ids: AbstractSet[str]
    """Of its evidence."""
    believed: bool
    turns: AbstractSet[tuple[str, str]] = frozenset()
    """Of its evidence: session and turn."""


def was_believed(
    state: FactState,
    *,
    valid_to: datetime | None,
    expired_at: datetime | None,
    closed_at: datetime | None = None,
    valid: datetime,
    known: datetime,
) -> bool:
    """Whether a fact's row was believed at `known` of the world at `valid`, as far as it tells."""
    match state:
        case "superseded":
            if closed_at is not None and closed_at > known:
                return True  # its end was not known then
            return valid_to is not None and valid_to > (min(valid, known) if closed_at is None else valid)
        case "invalidated":
            return expired_at is not None and expired_at > known
        case "forgotten" | "quarantined":
            return False
        case _:
            return True


def is_episode_believed(content: str, observation_id: str, sayings: Collection[FactClaim], *, more_than: float) -> bool:
    """False when this episode is said by facts and none of them is believed. A fact says it when its evidence names
    the episode's observation and it holds more than this share of the episode's words: what was concluded from several
    episodes says none of them."""
    its = words(content)
    by = [
        each.believed
        for each in sayings
        if observation_id in each.observation_ids and overlap(its, words(each.content)) > more_than
    ]
    return not by or any(by)


def is_summary_believed(turns: AbstractSet[tuple[str, str]], sayings: Collection[FactClaim]) -> bool:
    """False when something that was told in one of its turns is denied: a summary may tell it, in words of its own."""
    return all(each.believed or each.turns.isdisjoint(turns) for each in sayings)

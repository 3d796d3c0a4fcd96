"""Whether an episode is still believed, given the facts that state the same (ADR 0011); pure.

One observation may become an episode (it was said) and a fact (it holds). The fact then speaks for both. So when the
fact is no longer believed, its episode is no answer about the present either.
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
"""States of facts that are no longer believed. An expired fact is over, but it was true, so its episodes stay."""


@dataclass(frozen=True, slots=True)
class FactClaim:
    """What a fact says, as far as it decides about episodes."""

    content: str
    observation_ids: AbstractSet[str]
    """The observations of its evidence."""
    believed: bool
    turns: AbstractSet[tuple[str, str]] = frozenset()
    """The turns of its evidence: session and turn."""


def was_believed(
    state: FactState,
    *,
    valid_to: datetime | None,
    expired_at: datetime | None,
    closed_at: datetime | None = None,
    valid: datetime,
    known: datetime,
) -> bool:
    """Whether a fact's row was believed at `known` about the world at `valid`, as far as the row shows it."""
    match state:
        case "superseded":
            if closed_at is not None and closed_at > known:
                return True  # the end of its validity was not known then
            return valid_to is not None and valid_to > (min(valid, known) if closed_at is None else valid)
        case "invalidated":
            return expired_at is not None and expired_at > known
        case "forgotten" | "quarantined":
            return False
        case _:
            return True


def is_episode_believed(content: str, observation_id: str, sayings: Collection[FactClaim], *, more_than: float) -> bool:
    """Whether an episode is still believed: no fact states it, or one that states it is believed.

    A fact states an episode when its evidence names the episode's observation and it contains more than the share
    `more_than` of the episode's words. A fact that was concluded from several episodes states none of them.
    """
    its = words(content)
    by = [
        each.believed
        for each in sayings
        if observation_id in each.observation_ids and overlap(its, words(each.content)) > more_than
    ]
    return not by or any(by)


def is_summary_believed(turns: AbstractSet[tuple[str, str]], sayings: Collection[FactClaim]) -> bool:
    """Whether a summary is still believed: no denied fact has evidence from one of its turns. A summary may repeat that
    fact in its own words."""
    return all(each.believed or each.turns.isdisjoint(turns) for each in sayings)

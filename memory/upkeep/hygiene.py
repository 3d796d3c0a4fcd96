"""Hygiene: the records that the janitor culls and flags without a model; pure. `now` and the turns are arguments.

The age of an episode counts from the time of its turn (`occurred_at`). Therefore, episodes of imported old turns are
old from the start, and replaying a log gives the same result.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ..decay import effective_confidence, latest, strength
from ..policies.upkeep import HygienePolicy

STALE = "stale"
"""Tag of a permanent episode that is older than `HygienePolicy.stale_days`."""
MARKS = 20
"""Number of steps into which an episode's lifetime in turns is divided. An episode may live one step longer, never
shorter."""


# ------------------------------------------------------------------------------------------------ turns as a clock
class TurnMark(BaseModel):
    """The number of a turn of the owner, and the time when the turn was reflected, in milliseconds since 1970. The
    episodes of the turn were recorded before that time."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    turn: int
    at: int


class TurnClock(BaseModel):
    """A count of the turns of one owner over all sessions, with the times of some recent turns.

    An episode does not store the number of its turn, so its time is compared with the time of a mark. There are at most
    `MARKS` + 2 marks.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    turns: Annotated[int, Field(ge=0)] = 0
    marks: tuple[TurnMark, ...] = ()

    def ticked(self, at: int, *, span: int) -> TurnClock:
        """Return the clock after one more turn. `span`: the lifetime of an episode in turns; 0: turns are counted, but
        no marks are kept."""
        turns = self.turns + 1
        marks = self.marks if span else ()
        if span and (not marks or turns - marks[-1].turn >= -(-span // MARKS)):
            marks = (*marks, TurnMark(turn=turns, at=at))
        while len(marks) > 1 and turns - marks[1].turn >= span:
            marks = marks[1:]
        return TurnClock(turns=turns, marks=marks)

    def before(self, *, span: int) -> datetime | None:
        """Return the time before which records are at least `span` turns old; None when no mark is that old."""
        old = [mark.at for mark in self.marks if span and self.turns - mark.turn >= span]
        return datetime.fromtimestamp(max(old) / 1000, tz=UTC) if old else None


# ------------------------------------------------------------------------------------------------ records to delete
def is_over_age(episode: StoredEpisode, *, now: datetime, old: datetime | None, policy: HygienePolicy) -> bool:
    """Return whether a persistent episode is too old. `old`: records up to this time have reached their lifetime in
    turns.

    A bound of 0 is ignored, so the other bound decides alone. When both bounds are 0, the episode is not too old.
    """
    if episode.durability == "permanent":
        return False
    bounds = []
    if policy.episode_turns:
        bounds.append(old is not None and episode.recorded_at <= old)
    if policy.episode_days:
        bounds.append(now - episode.occurred_at >= timedelta(days=policy.episode_days))
    return bool(bounds) and (any(bounds) if policy.episode_bounds == "or" else all(bounds))


def is_stale(episode: StoredEpisode, *, now: datetime, policy: HygienePolicy) -> bool:
    """Return whether a permanent episode is flagged as stale. A permanent episode is never culled; the flag shows
    readers that it is old."""
    days = policy.stale_days
    return bool(days) and episode.durability == "permanent" and now - episode.occurred_at >= timedelta(days=days)


def is_doubtful(fact: StoredFact, *, now: datetime, half_life_days: float, policy: HygienePolicy) -> float | None:
    """Return the effective confidence of a fact that is too uncertain to keep; None for a fact that stays, as every
    pinned fact does."""
    if fact.is_pinned:
        return None
    since = fact.last_reinforced_at or fact.recorded_at
    sure = effective_confidence(fact.confidence, since, now, half_life_days=half_life_days)
    return sure if sure < policy.confidence_floor else None


def current_strength(episode: StoredEpisode, *, now: datetime) -> float:
    """Return the strength of an episode at `now`."""
    touched = latest(episode.occurred_at, episode.last_accessed_at)
    return strength(episode.strength, touched, now, stability_days=episode.stability)


def is_forgotten(episode: StoredEpisode, *, now: datetime, policy: HygienePolicy) -> bool:
    """Return whether maintenance deletes a persistent episode because its strength is too low."""
    return episode.durability != "permanent" and current_strength(episode, now=now) < policy.strength_floor

"""How attention, strength and confidence fade.

Salience fades by turns, strength and confidence by days. `now` and `turn` are arguments. All results lie in 0 to 1.
"""

from __future__ import annotations

import math
from datetime import datetime

from .policies import DecayPolicy


def decay(elapsed: int, policy: DecayPolicy) -> float:
    """What is left, 0–1, after `elapsed` turns without access. Negative counts as 0 (a clock cannot run back here)."""
    turns = max(0, elapsed)
    if policy.strategy == "none":
        return 1.0
    if policy.strategy == "exponential":
        return math.exp(-policy.rate * turns)
    return float((1 + turns) ** -policy.rate)


def salience(importance: float, elapsed: int, policy: DecayPolicy) -> float:
    return importance * decay(elapsed, policy)


DAY = 86_400.0
STABILITY_MAX_DAYS = 36_500.0
"""A hundred years: from there on a record does not fade within anybody's memory, and numbers stay numbers."""


def age(then: datetime, now: datetime) -> float:
    """Seconds. What lies ahead (clocks differ) is as fresh as can be."""
    return max(0.0, (now - then).total_seconds())


def half_life_decay(then: datetime, now: datetime, *, half_life: float) -> float:
    """0.5 ^ (age / half_life), seconds."""
    return float(0.5 ** (age(then, now) / half_life))


def effective_confidence(confidence: float, since: datetime, now: datetime, *, half_life_days: float) -> float:
    """How sure we still are of a fact. `since`: its last reinforcement, else when it was recorded."""
    return confidence * half_life_decay(since, now, half_life=half_life_days * DAY)


def strength(left: float, touched_at: datetime, now: datetime, *, stability_days: float) -> float:
    """left x exp(-age / stability): what there is now of a strength that was `left` at the last touch.

    Source: Ebbinghaus 1885. Creation and each recall leave 1: a recall begins the forgetting anew, slower than before
    (Zhong et al. 2023, MemoryBank).
    """
    return left * math.exp(-age(touched_at, now) / (stability_days * DAY))


def stability_grown(stability_days: float, *, growth: float) -> float:
    """Days, after one more recall."""
    return min(STABILITY_MAX_DAYS, stability_days * growth)


def stability_after(recalls: int, *, first_days: float, growth: float) -> float:
    """Days, after so many recalls: of records that keep their number and not the stability."""
    if growth == 1.0 or recalls <= 0:
        return min(STABILITY_MAX_DAYS, first_days)
    enough = math.log(STABILITY_MAX_DAYS / first_days, growth)
    return STABILITY_MAX_DAYS if recalls >= enough else first_days * growth**recalls


def latest(first: datetime, *others: datetime | None) -> datetime:
    """The latest of the times that there are."""
    return max([first, *(each for each in others if each is not None)])

"""Decay of salience, strength and confidence.

Salience decays by turns; strength and confidence decay by days. `now` and `turn` are arguments. All results are between
0 and 1.
"""

from __future__ import annotations

import math
from datetime import datetime

from .policies import DecayPolicy


def decay(elapsed: int, policy: DecayPolicy) -> float:
    """Return the share of the salience, 0–1, that remains after `elapsed` turns without access. A negative `elapsed`
    counts as 0."""
    turns = max(0, elapsed)
    if policy.strategy == "none":
        return 1.0
    if policy.strategy == "exponential":
        return math.exp(-policy.rate * turns)
    return float((1 + turns) ** -policy.rate)


def salience(importance: float, elapsed: int, policy: DecayPolicy) -> float:
    """Return importance × decay."""
    return importance * decay(elapsed, policy)


DAY = 86_400.0
STABILITY_MAX_DAYS = 36_500.0
"""Maximum stability: a hundred years. The maximum keeps the numbers finite."""


def age(then: datetime, now: datetime) -> float:
    """Return the seconds from `then` to `now`. Return 0 when `then` is after `now`, which can happen when clocks
    differ."""
    return max(0.0, (now - then).total_seconds())


def half_life_decay(then: datetime, now: datetime, *, half_life: float) -> float:
    """Return 0.5 ^ (age / half_life), with `half_life` in seconds."""
    return float(0.5 ** (age(then, now) / half_life))


def effective_confidence(confidence: float, since: datetime, now: datetime, *, half_life_days: float) -> float:
    """Return the present confidence of a fact. `since`: the time of the fact's last reinforcement, or the recording
    time of a fact without a reinforcement."""
    return confidence * half_life_decay(since, now, half_life=half_life_days * DAY)


def strength(left: float, touched_at: datetime, now: datetime, *, stability_days: float) -> float:
    """Return the present strength of a record: left × exp(-age / stability). `left`: the strength at the last access.

    Source: Ebbinghaus 1885. Creation and each recall set the strength to 1. A recall also slows the decay after it
    (Zhong et al. 2023, MemoryBank).
    """
    return left * math.exp(-age(touched_at, now) / (stability_days * DAY))


def stability_grown(stability_days: float, *, growth: float) -> float:
    """Return the stability in days after one more recall."""
    return min(STABILITY_MAX_DAYS, stability_days * growth)


def stability_after(recalls: int, *, first_days: float, growth: float) -> float:
    """Return the stability in days after `recalls` recalls, for records that store the number of recalls only."""
    if growth == 1.0 or recalls <= 0:
        return min(STABILITY_MAX_DAYS, first_days)
    enough = math.log(STABILITY_MAX_DAYS / first_days, growth)
    return STABILITY_MAX_DAYS if recalls >= enough else first_days * growth**recalls


def latest(first: datetime, *others: datetime | None) -> datetime:
    """Return the latest of the given times; None is skipped."""
    return max([first, *(each for each in others if each is not None)])

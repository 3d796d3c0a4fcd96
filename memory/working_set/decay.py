"""How attention fades: salience = importance x decay(turns since last access) (memory-model §4)."""

from __future__ import annotations

import math

from ..policies import DecayPolicy


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

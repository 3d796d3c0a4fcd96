"""The working set: its size, and how attention fades."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...schemas.working_set import ENTRIES_MAX
from .checks import at_least, between, one_of, require

DecayStrategy = Literal["power-law", "exponential", "none"]


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """How attention fades by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    rate: float = 0.5

    def __post_init__(self) -> None:
        one_of("decay.strategy", self.strategy, DecayStrategy)
        at_least("decay.rate", self.rate, 0)


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """Size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    max_pinned: int = 2
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        between("working.capacity", self.capacity, 1, ENTRIES_MAX)
        require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )

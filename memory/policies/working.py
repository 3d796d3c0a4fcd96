"""The working set: its size, and how attention fades."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from ...schemas.working import ENTRIES_MAX
from .checks import require

DecayStrategy = Literal["power-law", "exponential", "none"]


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """How attention fades by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    rate: float = 0.5

    def __post_init__(self) -> None:
        require(
            self.strategy in ("power-law", "exponential", "none"),
            f"decay.strategy must be power-law, exponential or none, not {self.strategy!r}",
        )
        require(math.isfinite(self.rate) and self.rate >= 0, f"decay.rate must be 0 or more, not {self.rate}")


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """Size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    max_pinned: int = 2
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        require(
            1 <= self.capacity <= ENTRIES_MAX,
            f"working.capacity must lie between 1 and {ENTRIES_MAX}, not {self.capacity}",
        )
        require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )

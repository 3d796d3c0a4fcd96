"""When episodes become facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .checks import require

ConsolidationTrigger = Literal["capture", "manual"]


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """When episodes become facts, and how much one run reads and proposes."""

    trigger: ConsolidationTrigger = "capture"
    episodes: int = 5
    turns: int = 4
    on_eviction: bool = True
    max_episodes: int = 20
    max_facts: int = 60

    def __post_init__(self) -> None:
        require(self.trigger in ("capture", "manual"), f"consolidation.trigger is unknown: {self.trigger!r}")
        for name in ("episodes", "turns", "max_episodes"):
            require(getattr(self, name) >= 1, f"consolidation.{name} must be 1 or more, not {getattr(self, name)}")
        require(self.max_facts >= 0, f"consolidation.max_facts must be 0 or more, not {self.max_facts}")

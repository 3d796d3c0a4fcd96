"""What two commands on a session's log take when they do not say (memory-model, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import require, unit


@dataclass(frozen=True, slots=True)
class SessionLogPolicy:
    flush_threshold: float = 0.6
    """`flush_important`: importance from which working entries become episodes."""
    keep: int = 20
    """`compact`: so many of a session's newest turns are left out."""

    def __post_init__(self) -> None:
        unit("session_log.flush_threshold", self.flush_threshold)
        require(self.keep >= 0, f"session_log.keep must be 0 or more, not {self.keep}")

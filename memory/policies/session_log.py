"""What two commands on a session's log take when they do not say (memory-model, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import at_least, unit


@dataclass(frozen=True, slots=True)
class SessionLogPolicy:
    flush_threshold: float = 0.6
    """`flush_important`: importance from which working entries become episodes."""
    keep: int = 20
    """`compact`: so many of a session's newest turns are left out."""

    def __post_init__(self) -> None:
        unit("session_log.flush_threshold", self.flush_threshold)
        at_least("session_log.keep", self.keep, 0)

"""Where upkeep hooks in: what keeps an owner's memory in order without being asked for facts.

Consolidation calls it once for each command of the kind `hygiene`, which it also sends itself after a run, before the
digest (memory-model §8: consolidate → persist → janitor → digest). Its writes and proposals become part of that
command's outcome, so they have the stage's guarantee: decided once, applied again as often as needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...schemas.commands import Change
from ...schemas.outcomes import Write
from .steps import Asked

__all__ = ["Asked", "Kept", "Upkeep"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is to be done. `changes` go to the reflector as facts.apply; `writes` are consolidation's own fields and
    collections, each a no-op the second time; `counts` stand in the run's record and in the command's result."""

    counts: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    writes: tuple[Write, ...] = ()


class Upkeep(Protocol):
    async def keep(self, asked: Asked) -> Kept:
        """Decide, write nothing. Raises `Transient` where the store is away."""
        ...

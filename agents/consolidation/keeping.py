"""Hygiene: what upkeep decides, as a step of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import OwnerRow, PartName
from .steps import Asked, Did
from .upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class KeepUp:
    upkeep: Upkeep
    part: PartName = "hygiene"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        kept = await self.upkeep.keep(asked)
        done = bool(kept.changes or kept.writes)
        return Did("done" if done else "nothing", row, kept.counts, changes=kept.changes, writes=kept.writes)

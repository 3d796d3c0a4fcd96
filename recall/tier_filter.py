"""Recall of the tiers that are on. What lies in one that is off is no longer kept up, so it is not read either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from ..memory.policies import TiersPolicy
from ..schemas.recall import Tier
from .request import RecallRequest
from .service import RecallPort, RecallResult


@dataclass(frozen=True, slots=True)
class TierFilter:
    """`RecallPort` that asks `inner` for less. A tier that is off holds nothing, also for who asks for it by name."""

    inner: RecallPort
    tiers: TiersPolicy

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        kept = tuple(tier for tier in request.tiers if self._is_kept(tier))
        if not kept:
            return RecallResult((), ())
        return await self.inner.recall(replace(request, tiers=kept), now=now)

    def _is_kept(self, tier: Tier) -> bool:
        match tier:
            case "semantic" | "episodic":
                return self.tiers.keeps(tier)
            case "working" | "turns":
                return True

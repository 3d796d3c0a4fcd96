"""What may be spent on models: the phases of a tier, and tokens that are set aside before a call and settled after it.

A port of its own because two know it from different sides: a stage asks before each call, a budget answers from what
was spent that day over all workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..adapters.ports import Usage
from ..memory.policies.budget import PHASES, Phase

__all__ = ["PHASES", "Granted", "Paused", "Phase", "Spending", "TierSpending"]


@dataclass(frozen=True, slots=True)
class Granted:
    """`tokens` are set aside for one call. `id` is the budget's own, "" where nothing is kept."""

    tenant_id: str
    task: str
    tokens: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class Paused:
    """The call may not be made. Its work waits, it is never dropped."""

    why: str
    remedy: str = ""
    retry_after: float | None = None
    """Seconds until asking again can help; None: only other settings help."""


class Spending(Protocol):
    """Asked before each call of a model; whoever was granted tokens settles them, whatever became of the call."""

    def phases(self, tenant_id: str) -> frozenset[Phase]:
        """The phases of consolidation that this tenant's tier runs. `light` without a grant asks no model."""
        ...

    def paused(self, tenant_id: str) -> Paused | None:
        """Why no call is granted under these settings, however little was spent; None when calls can be."""
        ...

    async def reserve(self, *, tenant_id: str, task: str, tokens: int) -> Granted | Paused:
        """Set `tokens` aside, an estimate of prompt and answer. `task` names the schema (`consolidation`, `judge` …).
        Raises `Transient` when what was spent cannot be looked up."""
        ...

    async def settle(self, granted: Granted, usage: Usage) -> None:
        """What the call took in fact; nothing when it was not made or its model was away."""
        ...


class TierSpending:
    """By the tier's phases alone, without a ceiling: a model that costs nothing is never paused, and the tier `free`
    pays for none."""

    def __init__(self, *, paid_model_allowed: bool, model: str, costs_money: bool) -> None:
        """`costs_money`: whether `model` does."""
        self._paused = (
            None
            if paid_model_allowed or not costs_money
            else Paused(f"tier free spends nothing, and {model} costs money", "set MEMSTREAM_TIER=standard")
        )

    def phases(self, tenant_id: str) -> frozenset[Phase]:
        return frozenset(PHASES) if self._paused is None else frozenset(("light",))

    def paused(self, tenant_id: str) -> Paused | None:
        return self._paused

    async def reserve(self, *, tenant_id: str, task: str, tokens: int) -> Granted | Paused:
        return self._paused or Granted(tenant_id, task, tokens)

    async def settle(self, granted: Granted, usage: Usage) -> None:
        return None

"""Spending rules of a tier for consolidation, checked before a model call is prepared.

The model call itself enforces the ceilings (agents/common/budget_client.py), because it knows the cost of the call and
the day's spending of all workers. A call above a ceiling raises OverBudget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...adapters.ports import Completions
from ...memory.policies.budget import PHASES, TASKS_OF, Phase, TierPolicy
from ...schemas.tasks import Task


@dataclass(frozen=True, slots=True)
class SpendingPause:
    """The reason why the settings allow no call. The work waits; it is never dropped."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


class TierSpending:
    """The spending rules of a tier. Free models are never paused. A tier without spending runs only phases that need no
    paid model."""

    def __init__(self, tier: TierPolicy, *, completions_of: Callable[[Task], Completions]) -> None:
        self._tier = tier
        self._completions_of = completions_of

    @property
    def phases(self) -> frozenset[Phase]:
        """The phases that consolidation runs. The light phase skips its model call when no model may be called."""
        free = {phase for phase in PHASES if all(self.paused(task) is None for task in TASKS_OF[phase])}
        return frozenset(self._tier.phases) | (free if self._tier.ceiling.forbids else frozenset())

    @property
    def consolidates(self) -> bool:
        """True when a run may turn episodes into facts. Otherwise, episodes wait for a worker with other settings."""
        return "standard" in self.phases and self.paused("consolidation") is None

    @property
    def judges(self) -> bool:
        """True when a run may judge pending facts.

        The deep phase judges them. Without a deep phase, the standard phase judges them at its end. The standard phase
        does not reach its end when its model call about episodes is paused.
        """
        if self.paused("judge") is not None:
            return False
        return self.consolidates or ("deep" in self.phases and "standard" not in self.phases)

    def paused(self, task: Task) -> SpendingPause | None:
        """Return the reason why the settings forbid a call for this task, or None when they allow it."""
        completions = self._completions_of(task)
        if not (self._tier.ceiling.forbids and completions.costs_money):
            return None
        why = f"the tier spends nothing on consolidation, and {completions.model} costs money"
        return SpendingPause(why, "set MEMSTREAM_TIER=standard, or another tier that may spend")

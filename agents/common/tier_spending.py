"""What a tier lets consolidation spend, known before a model is asked.

Ceilings are enforced where a call is made (agents/common/budget_client.py), because only there the cost of the call and
the spending of all workers that day are known. A call above a ceiling raises OverBudget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...adapters.ports import Completions
from ...memory.policies.budget import PHASES, TASKS_OF, Phase, TierPolicy
from ...schemas.tasks import Task


@dataclass(frozen=True, slots=True)
class SpendingPause:
    """The reason why these settings allow no call. The work waits; it is never dropped."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


class TierSpending:
    """The rules of a tier. A model that is free is never paused. A tier that spends nothing runs only phases that
    need no paid model."""

    def __init__(self, tier: TierPolicy, *, completions_of: Callable[[Task], Completions]) -> None:
        self._tier = tier
        self._completions_of = completions_of

    @property
    def phases(self) -> frozenset[Phase]:
        """The phases that consolidation runs. The phase light skips its question when no model may be asked."""
        free = {phase for phase in PHASES if all(self.paused(task) is None for task in TASKS_OF[phase])}
        return frozenset(self._tier.phases) | (free if self._tier.ceiling.forbids else frozenset())

    @property
    def consolidates(self) -> bool:
        """Whether a run may make facts of episodes. If not, only a worker with other settings ever does."""
        return "standard" in self.phases and self.paused("consolidation") is None

    @property
    def judges(self) -> bool:
        """Whether a run may judge pending facts. It does so in the phase deep, else at the end of standard, which a
        paused question about episodes ends before."""
        if self.paused("judge") is not None:
            return False
        return self.consolidates or ("deep" in self.phases and "standard" not in self.phases)

    def paused(self, task: Task) -> SpendingPause | None:
        """Return why these settings allow no call for this task; None when they allow it."""
        completions = self._completions_of(task)
        if not (self._tier.ceiling.forbids and completions.costs_money):
            return None
        why = f"the tier spends nothing on consolidation, and {completions.model} costs money"
        return SpendingPause(why, "set MEMSTREAM_TIER=standard, or another that may")

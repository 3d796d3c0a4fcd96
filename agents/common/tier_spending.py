"""What a tier lets consolidation do, told before it asks a model.

Ceilings are held where a call is made (agents/common/budget_client.py): there alone it is known what it may cost,
and over all workers what was spent that day. A call that would go beyond one raises OverBudget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...adapters.ports import Completions
from ...memory.policies.budget import PHASES, TASKS_OF, Phase, TierPolicy
from ...schemas.tasks import Task


@dataclass(frozen=True, slots=True)
class SpendingPause:
    """No call of the kind is made under these settings. Its work waits, it is never dropped."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


class TierSpending:
    """By the tier. A model that costs nothing is never paused; a tier that spends nothing pays for none, and runs the
    phases that need none."""

    def __init__(self, tier: TierPolicy, *, completions_of: Callable[[Task], Completions]) -> None:
        self._tier = tier
        self._completions_of = completions_of

    @property
    def phases(self) -> frozenset[Phase]:
        """Those that consolidation runs. `light` asks no model where none may be asked."""
        free = {phase for phase in PHASES if all(self.paused(task) is None for task in TASKS_OF[phase])}
        return frozenset(self._tier.phases) | (free if self._tier.ceiling.forbids else frozenset())

    def paused(self, task: Task) -> SpendingPause | None:
        """Why no call is made for this task, however little was spent; None when calls can be."""
        completions = self._completions_of(task)
        if not (self._tier.ceiling.forbids and completions.costs_money):
            return None
        why = f"the tier spends nothing on consolidation, and {completions.model} costs money"
        return SpendingPause(why, "set MEMSTREAM_TIER=standard, or another that may")

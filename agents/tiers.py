"""What a tier lets consolidation do, told before it asks: `Spending` by the deployment's settings."""

from __future__ import annotations

from collections.abc import Callable

from ..adapters.ports import Completions, Usage
from ..memory.policies.budget import PHASES, TASKS_OF, Phase, TierPolicy
from ..schemas.tasks import TASKS, Task
from .spending import Granted, Paused


class SpendingOfTier:
    """By the tier. A model that costs nothing is never paused; a tier that spends nothing pays for none, and runs the
    phases that need none. Every call's own ceiling is held where it is made (agents/budget.py): there alone it is known
    what it may cost, so nothing is set aside here."""

    def __init__(self, tier: TierPolicy, *, completions_of: Callable[[Task], Completions]) -> None:
        self._tier = tier
        self._completions_of = completions_of

    def phases(self, tenant_id: str) -> frozenset[Phase]:
        free = {phase for phase in PHASES if all(self._pause(task) is None for task in TASKS_OF[phase])}
        return frozenset(self._tier.phases) | (free if self._tier.ceiling.forbids else frozenset())

    def paused(self, tenant_id: str) -> Paused | None:
        return self._pause("consolidation")

    async def reserve(self, *, tenant_id: str, task: str, tokens: int) -> Granted | Paused:
        paused = self._pause(task) if task in TASKS else None
        return paused or Granted(tenant_id, task, tokens)

    async def settle(self, granted: Granted, usage: Usage) -> None:
        return None

    def _pause(self, task: Task) -> Paused | None:
        completions = self._completions_of(task)
        if not (self._tier.ceiling.forbids and completions.costs_money):
            return None
        why = f"the tier spends nothing on consolidation, and {completions.model} costs money"
        return Paused(why, "set MEMSTREAM_TIER=standard, or another that may")

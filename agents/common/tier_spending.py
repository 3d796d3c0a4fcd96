"""Spending rules of a tier for consolidation, checked before a model call is prepared.

The model call itself enforces the ceilings (agents/common/budget_client.py), because it knows the cost of the call and
the day's spending of all workers. A call above a ceiling raises OverBudget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...adapters.ports import Completions
from ...memory.policies.budget import LINE_OF, NO_CEILING, PHASES, TASKS_OF, Ceiling, Phase, TierPolicy
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
    paid model. `judgement`: the ceiling of judgements, which the tier does not change."""

    def __init__(
        self, tier: TierPolicy, *, completions_of: Callable[[Task], Completions], judgement: Ceiling = NO_CEILING
    ) -> None:
        self._tier = tier
        self._completions_of = completions_of
        self._judgement = judgement

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
        """True when a model may judge pending facts. Rules do not judge: they have compared the two facts before."""
        return not self.why_unjudged

    @property
    def why_unjudged(self) -> str:
        """The reason why no model may judge pending facts; empty when one may."""
        if self._completions_of("judge").by_rules:
            return "only rules answer: set MEMSTREAM_MODEL or OPENAI_API_KEY"
        return str(self.paused("judge") or "")

    def paused(self, task: Task) -> SpendingPause | None:
        """Return the reason why the settings forbid a call for this task, or None when they allow it."""
        completions = self._completions_of(task)
        of_judgements = LINE_OF.get(task) == "judgement"
        ceiling = self._judgement if of_judgements else self._tier.ceiling
        if not (ceiling.forbids and completions.costs_money):
            return None
        if of_judgements:
            why = f"the budget of judgements is 0, and {completions.model} costs money"
            return SpendingPause(why, "raise tokens and cost in [memory.budget.judgement]")
        why = f"the tier spends nothing on consolidation, and {completions.model} costs money"
        return SpendingPause(why, "set MEMSTREAM_TIER=standard, or another tier that may spend")

"""Budget of this process: ceilings from tier and policy, the need for accounts, and log lines at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from ...adapters.completions.router import CompletionsByTask
from ...adapters.spend_meter import Meter, Reservation, Unmetered
from ...memory.policies import BudgetPolicy
from ...memory.policies.budget import LINE_OF, NO_CEILING, Ceiling, Line, Tier
from ...schemas.topics import StageName

log = structlog.get_logger(__name__)


class LateMeter:
    """Meter that delegates to `meter`, which is set later. Models are built before the store, so that the settings of
    the models are checked first; the real meter needs the store."""

    def __init__(self) -> None:
        self.meter: Meter = Unmetered()

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        return await self.meter.reserve(tenant_id=tenant_id, task=task, model=model, input_tokens=input_tokens)


def ceilings(tier: Tier, policy: BudgetPolicy) -> dict[Line, Ceiling]:
    """Return the ceiling of each budget line that has one. Raises ValueError for an incomplete tier."""
    every: dict[Line, Ceiling] = {
        "observation": policy.observation.ceiling,
        "judgement": policy.judgement.ceiling,
        "consolidation": policy.tier(tier).ceiling,
    }
    return {line: each for line, each in every.items() if (each.tokens, each.cost) != (None, None)}


def needs_accounts(lines: Mapping[Line, Ceiling], completions: CompletionsByTask) -> bool:
    """Return whether any spending must be counted.

    It must be counted if a budget line with a ceiling may spend money on a model. A budget line that forbids spending
    needs no account.
    """
    return any(
        not lines[line].forbids and completions.of(task).costs_money for task, line in LINE_OF.items() if line in lines
    )


def tell(names: tuple[StageName, ...], *, tier: Tier, policy: BudgetPolicy, completions: CompletionsByTask) -> None:
    """Log that the tier pauses consolidation, and which cost ceilings have no effect because a model has no price."""
    lines = ceilings(tier, policy)
    consolidating = completions.of("consolidation")
    if "consolidation" in names and lines.get("consolidation", NO_CEILING).forbids and consolidating.costs_money:
        log.warning(
            "consolidation_paused",
            tier=tier,
            model=consolidating.model,
            remedy="set MEMSTREAM_TIER=standard to allow calls to a model that costs money",
        )
    unpriced = {
        (line, model)
        for task, line in LINE_OF.items()
        if line in lines and lines[line].cost is not None and not lines[line].forbids
        for model in completions.paid_models(task)
        if policy.price(model) is None
    }
    for line, model in sorted(unpriced):
        log.warning(
            "budget_without_price",
            line=line,
            model=model,
            why="the model has no price: its calls count as tokens but not as cost, so the cost ceiling has no effect",
            remedy=f'write [memory.budget.prices."{model}"] with input and output, in USD per million tokens',
        )

"""Which ceilings a deployment has, and what is said of them at start."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import structlog
import structlog.testing

from memstream.adapters.completions.factory import create_completions
from memstream.adapters.completions.router import CompletionsByTask
from memstream.agents.common.tier_spending import TierSpending
from memstream.cli.wiring.budget_setup import ceilings, needs_accounts, tell
from memstream.cli.wiring.ports import NoUsage
from memstream.memory.policies import BudgetPolicy
from memstream.memory.policies.budget import PHASES, TIERS, Ceiling, ObservationBudget, Price, Tier, TierPolicy


def made(model: str, **models: str) -> CompletionsByTask:
    return create_completions(
        model=model,
        models=models,  # type: ignore[arg-type]
        api_key="k",
        base_url="http://127.0.0.1:9/v1",
        timeout=1,
        concurrency=1,
        sink=NoUsage(),
    )


@pytest.fixture
async def paid() -> AsyncIterator[CompletionsByTask]:
    completions = made("unpriced,gpt-5-mini,offline")
    yield completions
    await completions.close()


def test_observation_has_a_line_of_its_own() -> None:
    assert set(ceilings("standard", BudgetPolicy())) == {"consolidation"}
    both = ceilings("free", BudgetPolicy(observation=ObservationBudget(tokens=5)))
    assert (both["observation"].tokens, both["consolidation"].tokens) == (5, 0)


@pytest.mark.parametrize(("tier", "needed"), [("free", False), ("cheap", True), ("standard", True)])
async def test_accounts_are_kept_where_something_can_be_spent(
    paid: CompletionsByTask, tier: Tier, needed: bool
) -> None:
    assert needs_accounts(ceilings(tier, BudgetPolicy()), paid) is needed
    assert not needs_accounts(ceilings(tier, BudgetPolicy()), made("offline"))


async def test_what_is_paused_and_what_has_no_price_is_said(paid: CompletionsByTask) -> None:
    with structlog.testing.capture_logs() as logs:
        tell(("consolidation",), tier="free", policy=BudgetPolicy(), completions=paid)
    assert "consolidation_paused" in str(logs)
    with structlog.testing.capture_logs() as logs:
        tell(("consolidation",), tier="cheap", policy=BudgetPolicy(), completions=paid)
    assert [each["event"] for each in logs].count("budget_without_price") == 1
    assert 'prices."unpriced"' in str(logs)
    with structlog.testing.capture_logs() as logs:
        tell(
            ("consolidation",),
            tier="cheap",
            policy=BudgetPolicy(prices={"unpriced": Price(0, 0)}),
            completions=paid,
        )
        tell(("consolidation",), tier="free", policy=BudgetPolicy(), completions=made("offline"))
    assert "budget" not in str(logs)
    assert "paused" not in str(logs)


class TestPhases:
    async def test_of_a_paid_model_are_the_tiers(self, paid: CompletionsByTask) -> None:
        phases = {tier: TierSpending(TIERS[tier], completions_of=paid.of).phases for tier in TIERS}
        assert phases == {
            "free": {"light"},
            "cheap": {"light", "standard"},
            "standard": set(PHASES),
            "full": set(PHASES),
        }

    async def test_of_one_that_costs_nothing_are_all_where_nothing_is_paid(self) -> None:
        assert TierSpending(TIERS["free"], completions_of=made("offline").of).phases == set(PHASES)

    async def test_each_task_is_paused_for_itself(self) -> None:
        completions = made("paid", consolidation="offline")
        spending = TierSpending(TIERS["free"], completions_of=completions.of)
        assert spending.phases == {"light", "standard"}
        assert spending.paused("consolidation") is None
        judging = spending.paused("judge")
        assert judging is not None
        assert "MEMSTREAM_TIER" in judging.remedy
        await completions.close()

    async def test_a_run_judges_where_it_may_ask_and_gets_that_far(self, paid: CompletionsByTask) -> None:
        free = {
            name: TierSpending(TIERS["free"], completions_of=made("paid", **{name: "offline"}).of)
            for name in ("consolidation", "judge")
        }
        assert {name: (each.consolidates, each.judges) for name, each in free.items()} == {
            "consolidation": (True, False),  # it stops at the judge
            "judge": (False, True),  # the phases light and deep
        }
        nothing = Ceiling(0, 0.0, "pause")
        of_paid: list[Tier | TierPolicy] = [
            *TIERS,
            TierPolicy(("light", "deep"), Ceiling(1, 1.0, "pause")),
            TierPolicy(("light", "deep"), nothing),
            TierPolicy(PHASES, nothing),
        ]
        judges = [
            TierSpending(TIERS[tier] if isinstance(tier, str) else tier, completions_of=paid.of).judges
            for tier in of_paid
        ]
        assert judges == [False, True, True, True, True, False, False]
        free_judge = made("paid", judge="offline").of
        assert not TierSpending(TierPolicy(PHASES, nothing), completions_of=free_judge).judges  # it stops before

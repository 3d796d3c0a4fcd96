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
from memstream.memory.policies.budget import (
    NO_CEILING,
    PHASES,
    TIERS,
    Ceiling,
    JudgementBudget,
    ObservationBudget,
    Price,
    Tier,
)


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


def test_observation_and_judgement_have_lines_of_their_own() -> None:
    assert set(ceilings("standard", BudgetPolicy())) == {"consolidation"}
    judging = ceilings("free", BudgetPolicy(judgement=JudgementBudget(cost=0.5, on_exceed="log")))
    assert judging["judgement"] == Ceiling(None, 0.5, "log")
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
        insights = spending.paused("insights")
        assert insights is not None
        assert "MEMSTREAM_TIER" in insights.remedy
        await completions.close()

    async def test_judgements_depend_on_their_own_ceiling_and_model(self, paid: CompletionsByTask) -> None:
        def judges(completions: CompletionsByTask, judgement: Ceiling, tier: Tier = "free") -> bool:
            return TierSpending(TIERS[tier], completions_of=completions.of, judgement=judgement).judges

        assert [judges(paid, NO_CEILING, tier) for tier in TIERS] == [True] * len(TIERS)
        nothing = Ceiling(0, None, "pause")
        assert [judges(paid, nothing, tier) for tier in TIERS] == [False] * len(TIERS)
        assert judges(paid, Ceiling(1_000, None, "pause"))
        assert judges(paid, Ceiling(0, None, "log"))
        assert not judges(made("paid", judge="offline"), NO_CEILING)
        assert not judges(made("offline"), NO_CEILING)
        assert judges(made("offline", judge="paid,offline"), NO_CEILING)
        spending = TierSpending(TIERS["full"], completions_of=paid.of, judgement=nothing)
        assert "[memory.budget.judgement]" in spending.why_unjudged

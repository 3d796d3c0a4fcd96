"""I6 over accounts: what is within the budget, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.memory.policies import BudgetPolicy, MemoryPolicy
from memstream.memory.policies.budget import JudgementBudget
from memstream.schemas.budgets import StoredBudget
from memstream.streams.log.port import Position
from memstream.verification.budget_check import spending_is_within_budget
from memstream.verification.rows import CommandRow, History
from memstream.verification.verdicts import Expected


def account(**changed: Any) -> StoredBudget:
    fields: dict[str, Any] = {
        "tenant_id": "acme", "day": "2026-11-22", "line": "consolidation", "version": 3, "taken_tokens": 900,
        "taken_nanos": 40, "spent_tokens": 700, "spent_nanos": 40, "ceiling_tokens": 1_000, "ceiling_nanos": None,
        "pauses": True, "applied": ("a",),
    }  # fmt: skip
    return StoredBudget(**{**fields, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"taken_tokens": 1_001}, "1001 tokens were taken, above the ceiling of 1000"),
        ({"spent_tokens": 901}, "901 tokens were spent, of 900 that were taken"),
        ({"ceiling_nanos": 39}, "40 nanodollars were taken, above the ceiling of 39"),
        ({"taken_tokens": 5_000, "spent_tokens": 5_000, "pauses": False}, None),
    ],
)
def test_an_account_is_kept(changed: dict[str, Any], said: str | None) -> None:
    verdict = spending_is_within_budget(History(budgets=[account(**changed)]), Expected())
    assert [said in each.what for each in verdict.violations if said] == ([True] if said else [])
    assert verdict.ok is (said is None)


def test_a_ceiling_that_logs_is_told() -> None:
    over = account(taken_tokens=5_000, spent_tokens=5_000, pauses=False)
    assert "which only logs" in spending_is_within_budget(History(budgets=[over]), Expected()).notes[0]


def spent_on(judged: bool) -> History:
    """Return a history with one proposal of a paid model: a judgement or another one."""
    command = CommandRow(
        position=Position("memory.commands", 0, 1),
        timestamp=0,
        tenant_id="acme",
        command_id="c1",
        kind="facts.apply",
        key="acme/user/u1",
        stage="reflector",
        issued_by="/memstream/consolidation",
        model="paid",
        proposes=True,
        judges=judged,
    )
    return History(commands=[command])


def test_tier_free_pays_for_judgements_alone_unless_their_ceiling_is_0() -> None:
    nothing = MemoryPolicy(budget=BudgetPolicy(judgement=JudgementBudget(tokens=0)))
    cases = ((True, Expected()), (False, Expected()), (True, Expected(policy=nothing, tier="full")))
    verdicts = [spending_is_within_budget(spent_on(judged), expected) for judged, expected in cases]
    assert [each.ok for each in verdicts] == [True, False, False]
    assert "the ceiling of judgements is 0, and consolidation used paid" in verdicts[2].violations[0].what

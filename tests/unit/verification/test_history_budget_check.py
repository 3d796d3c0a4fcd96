"""I6 over accounts: what is within the budget, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.schemas.budgets import StoredBudget
from memstream.verification.budget_check import spending_is_within_budget
from memstream.verification.rows import History
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

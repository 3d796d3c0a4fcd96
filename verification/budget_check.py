"""I6: the spending on models stays within the budget."""

from __future__ import annotations

from collections import defaultdict

from ..schemas.budgets import StoredBudget
from .rows import History
from .verdicts import Expected, Findings, InvariantVerdict


def spending_is_within_budget(history: History, expected: Expected) -> InvariantVerdict:
    """Check the model calls and the budget accounts.

    In the tier `free`, no proposal may come from a model that costs money, except a judgement. When the ceiling of
    judgements is 0, no judgement may come from such a model. In every account, the spent amount must not
    be above the taken amount. When the ceiling pauses calls, the taken amount must not be above the ceiling. The notes
    report the model calls and tokens of observation.
    """
    findings = Findings()
    spends = [
        (row.model, row.judged, row.position)
        for rows in history.events.values()
        for row in rows
        if row.run_id is not None and row.model is not None
    ]
    spends += [
        (row.model, row.judges, row.position) for row in history.commands if row.proposes and row.model is not None
    ]
    unjudged = expected.policy.budget.judgement.ceiling.forbids
    for model, judged, position in spends:
        forbidden = unjudged if judged else expected.tier == "free"
        limit = "the ceiling of judgements is 0" if judged else "tier free"
        allowed = not forbidden or model in expected.free_models
        findings.require(allowed, f"{limit}, and consolidation used {model}, which costs money", position)
    used: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in (each for rows in history.observed.values() for each in rows):
        if row.model is not None:
            findings.checked += 1
            calls, tokens = used[row.model]
            used[row.model] = calls + row.calls, tokens + row.tokens
    for model, (calls, tokens) in sorted(used.items()):
        findings.note(f"observation used {model}: {calls} calls, {tokens} tokens")
    for account in history.budgets:
        _account_is_kept(account, findings)
    return findings.verdict("I6", "spending is within the budget")


def _account_is_kept(row: StoredBudget, findings: Findings) -> None:
    where = f"budgets/{row.tenant_id} {row.line} {row.day}"
    kinds = (
        ("tokens", row.spent_tokens, row.taken_tokens, row.ceiling_tokens),
        ("nanodollars", row.spent_nanos, row.taken_nanos, row.ceiling_nanos),
    )
    for name, spent, taken, ceiling in kinds:
        findings.require(spent <= taken, f"{spent} {name} were spent, of {taken} that were taken", where)
        if row.pauses and ceiling is not None:
            findings.require(taken <= ceiling, f"{taken} {name} were taken, above the ceiling of {ceiling}", where)
        elif ceiling is not None and spent > ceiling:
            findings.note(f"{where}: {spent} {name}, above the ceiling of {ceiling}, which only logs")

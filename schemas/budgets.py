"""Spending of a tenant on models per day, in the collection `budgets`, which all workers share."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid5

from pydantic import Field, StringConstraints

from . import ids
from .base import Contract, GivenId

Count = Annotated[int, Field(ge=0)]
CAUSES_KEPT = 64


class StoredBudget(Contract):
    """One budget line of a tenant on one day (UTC). Money is in nanodollars (10^-9 USD)."""

    tenant_id: GivenId
    day: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    line: Literal["observation", "judgement", "consolidation"]
    version: Annotated[int, Field(ge=1)]
    taken_tokens: Count
    """Tokens that workers have taken from the budget, including tokens that are not spent yet."""
    taken_nanos: Count
    spent_tokens: Count
    """Spent tokens that workers have reported."""
    spent_nanos: Count
    ceiling_tokens: Count | None
    """Ceiling in the settings of the worker that wrote the row last; None: no ceiling."""
    ceiling_nanos: Count | None
    pauses: bool
    """True when calls wait at the ceiling. Otherwise exceeding it is only reported."""
    applied: tuple[str, ...]
    """Causes of the last changes."""


def budget_id(tenant_id: str, day: str, line: str) -> str:
    return str(uuid5(ids.NAMESPACE, f"budget/{ids.join(tenant_id, day, line)}"))

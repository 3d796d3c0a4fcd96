"""What a tenant has spent on models on a day, as all workers share it in the collection `budgets`."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid5

from pydantic import Field, StringConstraints

from . import ids
from .base import Contract, GivenId

Count = Annotated[int, Field(ge=0)]
CAUSES_KEPT = 64


class StoredBudget(Contract):
    """One line of a tenant on one day (UTC). Money in nanodollars (10^-9 USD)."""

    tenant_id: GivenId
    day: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    line: Literal["observation", "consolidation"]
    version: Annotated[int, Field(ge=1)]
    taken_tokens: Count
    """Spent, or in the slice of a worker."""
    taken_nanos: Count
    spent_tokens: Count
    """As far as workers have told."""
    spent_nanos: Count
    ceiling_tokens: Count | None
    """As the last writer knew it; None: none."""
    ceiling_nanos: Count | None
    pauses: bool
    """Whether calls wait at the ceiling; else it is only told."""
    applied: tuple[str, ...]
    """The last causes of a change."""


def budget_id(tenant_id: str, day: str, line: str) -> str:
    return str(uuid5(ids.NAMESPACE, f"budget/{ids.join(tenant_id, day, line)}"))

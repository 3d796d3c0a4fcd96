"""What recall answers: one item of memory, with the parts of its score."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from .base import Contract, OurId, Subject, Unit
from .observations import Category
from .turns import TURN_MAX_BYTES

Tier = Literal["semantic", "working", "episodic", "turns"]
TIERS: tuple[Tier, ...] = ("semantic", "working", "episodic", "turns")
"""In the order in which they win over each other's duplicates."""


class RecalledItem(Contract):
    """One item, best first. A message of the tier `turns` has no subject and no category."""

    tier: Tier
    id: OurId
    content: Annotated[str, StringConstraints(max_length=TURN_MAX_BYTES)]
    score: Unit
    """min(1, sum of the parts)."""
    subject: Subject | None
    category: Category | None
    parts: dict[str, float]

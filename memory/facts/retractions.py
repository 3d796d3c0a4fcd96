"""Retractions: facts that a user asks to forget in the conversation; pure."""

from __future__ import annotations

from ...schemas.facts import Decision
from ..policies import ConflictPolicy
from .conflict import Neighbours, equivalent_rows
from .statements import Statement
from .transitions import READABLE, Stamp, Transition, forget

STAGE = "retraction"


def retract(
    statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: ConflictPolicy
) -> tuple[Transition, ...]:
    """Forget the named row, the row with equal content, and rows that state the same in other words or other detail."""
    same = (neighbours.replaced, neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    rows = {row.fact_id: row for row in same if row is not None and row.state in READABLE}
    decision = Decision(stage=STAGE)
    return tuple(forget(row, stamp, reason="the user asked to forget it", decision=decision) for row in rows.values())

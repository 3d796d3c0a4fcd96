"""Retractions: the facts that a user asks in the conversation to forget; pure."""

from __future__ import annotations

from ...schemas.facts import Decision
from ..policies import MemoryPolicy
from .conflict import Neighbours, equivalent_rows
from .statements import Statement
from .transitions import READABLE, Stamp, Transition, forget

STAGE = "retraction"


def retract(statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy) -> tuple[Transition, ...]:
    """Return the transitions that forget a statement.

    They forget the row that the request names, the row with equal content, and the rows that state the same in other
    words or with more or less detail.
    """
    same = (neighbours.replaced, neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    rows = {row.fact_id: row for row in same if row is not None and row.state in READABLE}
    decision = Decision(stage=STAGE)
    return tuple(forget(row, stamp, reason="the user asked to forget it", decision=decision) for row in rows.values())

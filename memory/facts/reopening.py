"""Facts that are believed again because the fact that had closed them is forgotten as wrong; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...schemas.edits.facts import ClosedReason, StillClosed
from ...schemas.facts import Decision, StoredFact
from ..policies import MemoryPolicy
from .conflict import Neighbours, contradicted_rows, equivalent_rows
from .neighbour_relations import relate_neighbour
from .similarity import NearFact
from .statements import Statement, statement_from_fact
from .transitions import Stamp, Transition, end_before_closing, hand_on, reopen

STAGE = "restored"
REASON = "the fact that had closed it is forgotten"
REOPENED_MAX = 32
"""Maximum number of facts that one edit believes again."""


def newest_closed_first(rows: Sequence[StoredFact]) -> list[StoredFact]:
    """Return the rows in the order in which they are believed again: of two rivals, the last closed row wins."""
    return sorted(rows, key=lambda row: (row.closed_at or row.expired_at or row.recorded_at, row.fact_id), reverse=True)


def stays_closed(row: StoredFact, forgotten: StoredFact) -> StillClosed | None:
    """Return why a row that the forgotten row closed cannot be believed again, whatever else is believed now."""
    before = row.before_closing
    if before is not None and before.state != "active":
        return StillClosed(fact_id=row.fact_id, why="not_believed")
    if before.merged if before is not None else _was_merged(row, forgotten):
        return StillClosed(fact_id=row.fact_id, why="merged", other_fact_id=forgotten.fact_id)
    return None


def reopened_statement(row: StoredFact) -> Statement:
    """Return the statement of a closed row with the row's own end."""
    return replace(statement_from_fact(row), valid_to=end_before_closing(row))


def reopen_row(
    row: StoredFact,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    forgotten: StoredFact,
) -> Transition | StillClosed:
    """Believe a closed row again, unless an active row is in the way.

    `neighbours` are the rows that the conflict pipeline compares with `reopened_statement`, without the forgotten row.
    """
    if (found := _in_the_way(row, neighbours, stamp, policy)) is not None:
        why, other = found
        return StillClosed(fact_id=row.fact_id, why=why, other_fact_id=other.fact_id)
    return reopen(row, stamp, reason=REASON, decision=Decision(stage=STAGE, other_fact_id=forgotten.fact_id))


def hand_row_on(row: StoredFact, stamp: Stamp, *, forgotten: StoredFact, successor: StoredFact) -> Transition:
    """Return the transition that gives a row to the successor of the forgotten row, which was never between them."""
    decision = Decision(stage=STAGE, other_fact_id=successor.fact_id)
    reason = f"fact {forgotten.fact_id} between them is wrong"
    return hand_on(row, stamp, by=successor, reason=reason, decision=decision)


def _in_the_way(
    row: StoredFact, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy
) -> tuple[ClosedReason, StoredFact] | None:
    statement = reopened_statement(row)
    near = tuple(each for each in neighbours.near if each.fact.state == "active")
    same = (neighbours.equal, *equivalent_rows(statement, near, policy))
    for other in same:
        if other is not None and other.state == "active":
            return "duplicate", other
    for other in contradicted_rows(statement, near, policy, now=stamp.now):
        return "contradicted", other
    opened = row.model_copy(update={"state": "active", "valid_to": statement.valid_to})
    closed = row.closed_at or row.expired_at or row.recorded_at
    for each in near:
        if each.fact.recorded_at >= closed and _is_unclear(each, opened, policy):
            return "unclear", each.fact
    return None


def _is_unclear(learnt: NearFact, opened: StoredFact, policy: MemoryPolicy) -> bool:
    """Return whether the fact that was learnt meanwhile would have waited for a model if the row had been open."""
    statement = statement_from_fact(learnt.fact)
    rows = Neighbours(near=(NearFact(opened, learnt.similarity),)).at(statement).near
    return any(each.verdict == "pending" for each in relate_neighbour(statement, rows, policy))


def _was_merged(row: StoredFact, forgotten: StoredFact) -> bool:
    """Return whether the forgotten row has all evidence of the row. For rows of earlier versions only."""
    taken = {each.observation_id for each in forgotten.evidence}
    return bool(row.evidence) and all(each.observation_id in taken for each in row.evidence)

"""Retractions: facts that a user asks in the conversation to forget, and facts of a turn that is taken back; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...schemas.facts import Decision, Evidence, StoredFact
from ...schemas.turns import Owner
from ..policies import MemoryPolicy
from .conflict import Neighbours, equivalent_rows
from .erasures import without_evidence
from .statements import Statement
from .transitions import READABLE, REVIEWED, Stamp, Transition, forget, invalidate

STAGE = "retraction"
TAKEN_BACK: Final = "its turn was taken back"
BELIEVED: Final = (*READABLE, *REVIEWED, "superseded")
"""States of rows that a read or a review returns."""


def retract(statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy) -> tuple[Transition, ...]:
    """Return the transitions that forget a statement.

    They forget the row that the request names, the row with equal content, and the rows that state the same in other
    words or with more or less detail.
    """
    same = (neighbours.replaced, neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    rows = {row.fact_id: row for row in same if row is not None and row.state in READABLE}
    decision = Decision(stage=STAGE)
    return tuple(forget(row, stamp, reason="the user asked to forget it", decision=decision) for row in rows.values())


def is_given_in(evidence: Evidence, owner: Owner, *, user_id: str, session_id: str) -> bool:
    """Return whether evidence of a fact of this owner is from a session of this user. Other users may have the same id
    of a session. Only evidence in the user's own facts names no user."""
    is_own = owner == Owner(scope="user", id=user_id)
    by_user = evidence.user_id == user_id or (is_own and evidence.user_id is None)
    return evidence.session_id == session_id and by_user


def retract_evidence(
    fact: StoredFact, is_of_turn: Callable[[Evidence], bool], episode_ids: frozenset[str], stamp: Stamp, *, reason: str
) -> Transition | None:
    """Return the change of a fact when a turn is taken back, or None without a change.

    A fact without other evidence is invalidated, and keeps the evidence. A superseded fact is invalidated, too, because
    a read of the past returns it. A fact that another fact has closed loses the link to it, so that it is not believed
    again when the other fact is forgotten as wrong. `episode_ids`: episodes of the turn.
    """
    if not any(map(is_of_turn, fact.evidence)):
        return None
    why, decision = reason or TAKEN_BACK, Decision(stage=STAGE)
    left = without_evidence(fact, is_of_turn, episode_ids, stamp, reason=why, decision=decision)
    if left is not None:
        return replace(left, before=fact)
    if fact.state not in BELIEVED and fact.superseded_by is None:
        return None
    gone = invalidate(fact, stamp, reason=why, decision=decision)
    return replace(gone, fact=gone.fact.model_copy(update={"superseded_by": None}))

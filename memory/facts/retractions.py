"""Retractions: facts that a user asks in the conversation to forget, and facts of a turn that is taken back; pure.

A request to forget counts for the statements that are not newer than the request, in whatever order they arrive. So a
request is kept, and takes back older statements that arrive later (docs/design/retraction.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from ...schemas.facts import Decision, Evidence, StoredFact
from ...schemas.turns import Owner
from ..policies import MemoryPolicy
from .conflict import Neighbours, equivalent_rows
from .erasures import without_evidence
from .similarity import NearFact
from .statements import Statement
from .transitions import READABLE, REVIEWED, Stamp, Transition, create, forget, has_ended, invalidate

STAGE = "retraction"
TAKEN_BACK: Final = "its turn was taken back"
ASKED: Final = "the user asked to forget it"
ASKED_BEFORE: Final = "the user asked to forget it before it arrived"
BELIEVED: Final = (*READABLE, *REVIEWED, "superseded")
"""States of rows that a read or a review returns."""


def retract(statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy) -> tuple[Transition, ...]:
    """Return the transitions that forget a statement.

    They forget the row that the request names, the row with equal content, and the rows that state the same in other
    words or with more or less detail. Closed rows with equal content are forgotten, too. A row that the user stated
    again after the request loses only its older evidence.
    """
    same = (neighbours.replaced, neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    rows = {row.fact_id: row for row in same if row is not None and row.state in READABLE}
    rows |= {row.fact_id: row for row in neighbours.closed}
    changes = (_take_back(row, statement.occurred_at, stamp) for row in rows.values())
    return tuple(each for each in changes if each is not None)


def _take_back(row: StoredFact, until: datetime, stamp: Stamp) -> Transition | None:
    """Forget a row, or remove its evidence until this time when the user stated it again later."""

    def is_older(evidence: Evidence) -> bool:
        return evidence.occurred_at <= until

    decision = Decision(stage=STAGE)
    if not any((each.trust or row.trust) == "user" for each in row.evidence if not is_older(each)):
        return forget(row, stamp, reason=ASKED, decision=decision)
    if not any(map(is_older, row.evidence)):
        return None
    left = without_evidence(row, is_older, frozenset(), stamp, reason=ASKED, decision=decision)
    return None if left is None else replace(left, before=row)


def takes_back(request: Statement, statement: Statement, stamp: Stamp, policy: MemoryPolicy) -> bool:
    """Return whether a request to forget counts for a statement that arrives after it: the statement is not newer, and
    says the same."""
    if request.subject != statement.subject or request.occurred_at < statement.occurred_at:
        return False
    row = create(statement, stamp, reason=ASKED_BEFORE, decision=Decision(stage=STAGE)).fact
    if row.content_hash == request.content_hash and not has_ended(row, request.begins):
        return True
    return bool(equivalent_rows(request, (NearFact(row),), policy))


def forget_on_arrival(statement: Statement, made: Sequence[Transition], stamp: Stamp) -> tuple[Transition, ...]:
    """Return the transitions of a statement that a request took back before it arrived.

    `made` are the transitions that the conflict pipeline decided. Rows that it closes close, as they do when the
    statement arrives first. The statement becomes a row of its own, which is forgotten, so that its message and its
    episode are forgotten with it. Other rows do not get its evidence.
    """
    decision = Decision(stage=STAGE)
    closed = tuple(each for each in made if each.before is not None and each.before.evidence == each.fact.evidence)
    own = next((each for each in made if each.before is None), None)
    if own is None:
        own = create(statement, stamp, reason=ASKED_BEFORE, decision=decision)
    return (*closed, own, forget(own.fact, stamp, reason=ASKED_BEFORE, decision=decision))


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

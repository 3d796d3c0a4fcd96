"""Settlement of pending facts.

A pending fact waits for a judgement against another fact (`Fact.waits_for` in its metadata), or only for the time when
it begins. A model gives the judgement, or `judge_without_model` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...schemas.commands import Judgement
from ...schemas.facts import Decision, StoredFact
from ..policies import ConflictPolicy, MemoryPolicy
from .fact_evidence import newest_evidence_time
from .neighbour_relations import relate_neighbour
from .similarity import NearFact
from .statements import statement_from_fact
from .transitions import (
    READABLE,
    Stamp,
    Transition,
    approve,
    reinforce,
    supersede,
    told_before,
)
from .trust_order import outranks

STAGE = "judge"
_DEFAULT = ConflictPolicy()


def judge_without_model(
    pending: StoredFact, known: StoredFact | None, now: datetime, policy: ConflictPolicy = _DEFAULT
) -> Judgement | None:
    """Return a judgement that needs no model; None when a model is needed, or when the fact's time has not come.

    `known` is the current row that the fact waits for; None when it waits for no row, or when that row is gone. No
    model is needed in three cases: the known row is closed; the known row has the same text; or the pending row only
    waited for its time and rules out the known row. If the known row is more trusted, the third case also requires
    that it was stated later than the pending row, which then becomes history.
    """
    if known is not None and known.content_hash == pending.content_hash:
        return "duplicate"
    if pending.valid_from > now:
        return None
    if known is None or known.state not in READABLE:
        return "coexist"
    (weighed,) = relate_neighbour(statement_from_fact(pending), (NearFact(known),), policy)
    if weighed.verdict != "supersede" or (outranks(known, pending) and not is_newer(known, pending)):
        return None
    return "supersede"


def settle_pending(
    pending: StoredFact,
    known: StoredFact | None,
    judgement: Judgement,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    why: str,
    rivals: Sequence[StoredFact] = (),
) -> tuple[Transition, ...]:
    """Return the transitions of a judgement. Transitions of old rows come first.

    - coexist: the pending row is approved.
    - supersede: the known row closes where the pending row begins; a row that is already closed does not change.
    - duplicate: the pending row closes; if the known row is still believed, it takes the evidence.

    The rule for late statements applies here too: when the newest evidence of the known row is newer than the pending
    row's turn, the pending row becomes history. `rivals` are other believed rows that contradict the pending row and
    were stated while it waited. They are treated like the known row.
    """
    decision = Decision(stage=STAGE, other_fact_id=known.fact_id if known else pending.waits_for)
    if known is not None and judgement == "duplicate":
        return _duplicate(pending, known, stamp, policy, why=why or "says the same", decision=decision)
    waited_for = (known,) if known is not None and judgement == "supersede" and known.state in READABLE else ()
    closes = (*waited_for, *rivals)
    newer = [row for row in closes if is_newer(row, pending)]
    if newer:
        reason = "stated late: true before the known facts"
        closed_at = min(max(row.valid_from, pending.valid_from) for row in newer)
        return (supersede(pending, stamp, by=None, valid_to=closed_at, reason=reason, decision=decision),)
    if not closes:
        reason = why or ("both hold" if judgement == "coexist" else "the fact it waited for is closed")
        return (approve(pending, stamp, reason=reason, decision=decision),)
    why = why or "replaced by a newer statement"
    other = decision.model_copy(update={"other_fact_id": pending.fact_id})
    closed = (
        supersede(
            row,
            stamp,
            by=pending.fact_id,
            valid_to=max(row.valid_from, pending.valid_from),
            reason=why,
            decision=other,
        )
        for row in closes
    )
    return (*closed, approve(pending, stamp, supersedes=closes[0].fact_id, reason=why, decision=decision))


def more_trusted_rivals(
    pending: StoredFact,
    known: StoredFact | None,
    judgement: Judgement,
    rivals: Sequence[StoredFact],
    policy: ConflictPolicy = _DEFAULT,
) -> tuple[StoredFact, ...]:
    """Return the more trusted rows that must close before the pending row can be believed."""
    rows = [row for row in rivals if outranks(row, pending)]
    if known is not None and known.state in READABLE and outranks(known, pending) and judgement != "duplicate":
        (weighed,) = relate_neighbour(statement_from_fact(pending), (NearFact(known),), policy)
        if judgement == "supersede" or weighed.verdict == "supersede":
            rows.append(known)
    return tuple(rows)


def is_newer(row: StoredFact, pending: StoredFact) -> bool:
    """Return whether the row was stated after the pending row by a source that is not less trusted."""
    newest = newest_evidence_time(row, pending)
    return (newest is not None and last_stated_at(pending) < newest) or told_before(statement_from_fact(pending), row)


def last_stated_at(fact: StoredFact) -> datetime:
    """Return when a fact was last stated. A fact stated before its start counts from its start."""
    newest = newest_evidence_time(fact, fact)
    return fact.valid_from if newest is None else max(newest, fact.valid_from)


def _duplicate(
    pending: StoredFact, known: StoredFact, stamp: Stamp, policy: MemoryPolicy, *, why: str, decision: Decision
) -> tuple[Transition, ...]:
    """Close the pending row with an empty validity, because the known row states the same."""
    gone = supersede(pending, stamp, by=known.fact_id, valid_to=pending.valid_from, reason=why, decision=decision)
    if known.state not in READABLE:
        return (gone,)
    decision = decision.model_copy(update={"other_fact_id": pending.fact_id})
    again = reinforce(known, statement_from_fact(pending), stamp, policy.confidence, reason=why, decision=decision)
    return (gone, again) if again else (gone,)

"""Settlement of pending facts.

A pending fact is not believed yet. It waits for a judgement that compares it with a known fact, or only for the time
when its validity begins. `StoredFact.waits_for` is the id of the known fact. The judgement comes from a model or from
`judge_without_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...schemas.commands import Judgement
from ...schemas.facts import Decision, StoredFact
from ..policies import MemoryPolicy
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
_DEFAULT = MemoryPolicy()


def judge_without_model(
    pending: StoredFact, known: StoredFact | None, now: datetime, policy: MemoryPolicy = _DEFAULT
) -> Judgement | None:
    """Return a judgement that needs no model; None when a model is needed, or when the pending row has not begun.

    `known` is the current row that the pending row waits for; None when the pending row waits for no row, or when that
    row is gone. An unconfirmed row is not judged: it waits for its user or a person. The rules, in order:

    1. The known row has the same text: `duplicate`, even before the pending row begins.
    2. There is no known row, or the known row is closed: `coexist`.
    3. The texts alone decide that the pending row replaces the known row: `supersede`. When the known row is more
       trusted, this rule applies only if the known row was also stated later. The pending row then becomes history.
    """
    if pending.is_unconfirmed:
        return None
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

    - coexist: the pending row becomes active.
    - supersede: the known row closes at the start of the pending row, and the pending row becomes active. A known row
      that is already closed does not change.
    - duplicate: the pending row closes. If the known row is still active or pending, it gets the evidence.

    `rivals` are other active rows that contradict the pending row. They close like the known row under `supersede`.
    When a row that would close was stated later than the pending row, the pending row becomes history instead.
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
    policy: MemoryPolicy = _DEFAULT,
) -> tuple[StoredFact, ...]:
    """Return the rows that are more trusted than the pending row and must close before the pending row is believed."""
    rows = [row for row in rivals if outranks(row, pending)]
    if known is not None and known.state in READABLE and outranks(known, pending) and judgement != "duplicate":
        (weighed,) = relate_neighbour(statement_from_fact(pending), (NearFact(known),), policy)
        if judgement == "supersede" or weighed.verdict == "supersede":
            rows.append(known)
    return tuple(rows)


def is_newer(row: StoredFact, pending: StoredFact) -> bool:
    """Return whether the row was stated later than the pending row, or states a later start.

    Evidence that is less trusted than the pending row does not count.
    """
    newest = newest_evidence_time(row, pending)
    return (newest is not None and last_stated_at(pending) < newest) or told_before(statement_from_fact(pending), row)


def last_stated_at(fact: StoredFact) -> datetime:
    """Return when a fact was last stated. A fact that was stated before its start counts as stated at its start."""
    newest = newest_evidence_time(fact, fact)
    return fact.valid_from if newest is None else max(newest, fact.valid_from)


def _duplicate(
    pending: StoredFact, known: StoredFact, stamp: Stamp, policy: MemoryPolicy, *, why: str, decision: Decision
) -> tuple[Transition, ...]:
    """Close the pending row and add its evidence to the known row, which states the same.

    The validity of the pending row becomes empty: the row ends at its start.
    """
    gone = supersede(pending, stamp, by=known.fact_id, valid_to=pending.valid_from, reason=why, decision=decision)
    if known.state not in READABLE:
        return (gone,)
    decision = decision.model_copy(update={"other_fact_id": pending.fact_id})
    again = reinforce(known, statement_from_fact(pending), stamp, policy.confidence, reason=why, decision=decision)
    return (gone, again) if again else (gone,)

"""Decisions of a person about a quarantined or pending fact: `facts.approve` and `facts.reject`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...schemas.facts import APPROVED as APPROVED_KEY
from ...schemas.facts import Decision, StoredFact
from ..policies import MemoryPolicy
from ..trust.rendered_text import is_unsafe
from .conflict import Neighbours, carry_out, contradicted_rows, equivalent_rows, resolve
from .pending import settle_pending
from .proposals import ProposalOutcome
from .statements import statement_from_fact
from .transitions import READABLE, REVIEWED, Stamp, Transition, approve, confirm, forget, supersede

STAGE = "review"
APPROVED, REJECTED = "approved by a person", "rejected by a person"


def approve_fact(
    fact: StoredFact,
    *,
    known: StoredFact | None,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    why: str = "",
) -> ProposalOutcome:
    """Approve a fact, so that it is believed. `known` is the fact that a pending fact waits for.

    - Quarantined: the fact's statement goes through the conflict pipeline. If the fact becomes active, it is marked as
      approved, so that contexts show it.
    - Pending: the fact becomes active with its current words. The fact `known` closes, and every active fact that the
      pending fact contradicts closes, regardless of trust. If another active fact states the same, the pending fact
      closes instead.
    - Active instruction, accepted by an earlier version of the product: the fact is marked as approved.
    """
    if fact.state == "active" and not fact.is_approved and is_unsafe(fact.subject, fact.content):
        marked = approve(fact, stamp, reason=why or APPROVED, decision=Decision(stage=STAGE))
        return ProposalOutcome("applied", marked.reason, fact.fact_id, (_marked(marked),))
    if fact.state not in REVIEWED:
        return _stale(fact)
    if fact.valid_from > stamp.now:
        reason = f"it begins at {fact.valid_from.isoformat()}: approve it then"
        return ProposalOutcome("refused", reason, fact.fact_id)
    reason = why or APPROVED
    believe = _believe_pending if fact.state == "pending" else _believe_quarantined
    made = believe(fact, known, neighbours, stamp, policy, reason)
    if fact.state == "quarantined":
        made = [_marked(each) if each.fact.fact_id == fact.fact_id else each for each in made]
    return ProposalOutcome("applied", reason, fact.fact_id, tuple(made))


def reject_fact(fact: StoredFact, stamp: Stamp, *, why: str = "") -> ProposalOutcome:
    """Forget a quarantined or pending fact. No read returns the fact afterwards; its events stay in the log."""
    if fact.state not in REVIEWED:
        return _stale(fact)
    reason = why or REJECTED
    gone = forget(fact, stamp, reason=reason, decision=Decision(stage=STAGE))
    return ProposalOutcome("applied", reason, fact.fact_id, (gone,))


def _marked(made: Transition) -> Transition:
    """Return the transition with the fact marked as approved, if the transition makes the fact active."""
    fact = made.fact
    if fact.state != "active":
        return made
    return replace(made, fact=fact.model_copy(update={"metadata": {**fact.metadata, APPROVED_KEY: True}}))


def _stale(fact: StoredFact) -> ProposalOutcome:
    reason = f"it is {fact.state}: only quarantined and pending facts are approved or rejected"
    return ProposalOutcome("stale", reason, fact.fact_id)


def _believe_quarantined(
    fact: StoredFact,
    known: StoredFact | None,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    reason: str,
) -> Sequence[Transition]:
    statement = statement_from_fact(fact)
    found = replace(resolve(statement, neighbours, policy, now=stamp.now), confirms=None)
    if found.kind == "pending":  # the person's approval replaces the judgement of a model
        decision = found.decision(found.closes[0].fact_id if found.closes else None)
        return (approve(fact, stamp, reason=reason, decision=decision),)
    made = confirm(fact, carry_out(found, statement, stamp, policy), into=found.into, stamp=stamp)
    return [replace(each, reason=reason) if each.fact.fact_id == fact.fact_id else each for each in made]


def _believe_pending(
    fact: StoredFact,
    known: StoredFact | None,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    reason: str,
) -> Sequence[Transition]:
    statement = statement_from_fact(fact)
    waited_for = (known,) if known is not None and known.state in READABLE else ()
    same = [row for row in equivalent_rows(statement, neighbours.near, policy) if row.fact_id != fact.fact_id]
    equal = neighbours.equal
    twin = next((row for row in (*([equal] if equal else []), *same) if row.state == "active"), None)
    if twin is not None and twin not in waited_for:
        return settle_pending(fact, twin, "duplicate", stamp, policy, why=reason)
    against = contradicted_rows(statement, neighbours.near, policy, now=stamp.now)
    rows = {row.fact_id: row for row in (*waited_for, *(row for row in against if row.state == "active"))}
    rows.pop(fact.fact_id, None)
    closed = [
        supersede(
            row,
            stamp,
            by=fact.fact_id,
            valid_to=max(row.valid_from, fact.valid_from),
            reason=reason,
            decision=Decision(stage=STAGE, other_fact_id=fact.fact_id),
        )
        for row in rows.values()
    ]
    first = next(iter(rows), None)
    decision = Decision(stage=STAGE, other_fact_id=first)
    return (*closed, approve(fact, stamp, supersedes=first, reason=reason, decision=decision))

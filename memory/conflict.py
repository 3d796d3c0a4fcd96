"""The conflict pipeline: every statement on its way into the facts passes it (memory-model §6; contracts.md, "How a
replaced or corrected statement changes facts").

`resolve` asks the stages in their order; the first that has an answer decides. `carry_out` turns the decision into
transitions. A further stage (zones, markers, predicates, the judge) is a function in STAGES before `_admit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..schemas.facts import Decision, StoredFact
from .facts import Stamp, Transition, admit_as_history, create, invalidate, newest_evidence, reinforce, supersede
from .policies import ConflictPolicy, MemoryPolicy
from .statements import Statement
from .zones import Measured, Near, measure

Kind = Literal["admit", "dedup", "replace", "correct", "history", "nothing"]
"""admit: a new row. dedup: an equal row gets the evidence. replace: the old row was true until now. correct: the old
row was never true. history: the new row was true before the old one. nothing: it is too late to take back."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the stages may look at: rows of the same owner, active or pending, as this outcome has left them."""

    replaced: StoredFact | None = None
    """The fact that the replaced working entry became."""
    equal: StoredFact | None = None
    """Same subject, same content hash."""
    near: tuple[Near, ...] = ()
    """Same subject, the nearest by embedding."""
    closed: tuple[StoredFact, ...] = ()
    """Same subject, same content hash, no longer believed. Looked at for proposals only."""


@dataclass(frozen=True, slots=True)
class Question:
    statement: Statement
    makes_fact: bool
    """False: the statement goes no further than to close what it replaces (a retraction, or routed elsewhere)."""
    neighbours: Neighbours
    measured: Measured


@dataclass(frozen=True, slots=True)
class Resolution:
    """What shall be done, and why. Rows are as they were looked at."""

    kind: Kind
    stage: str
    reason: str
    closes: StoredFact | None = None
    """The old row of replace and correct."""
    into: StoredFact | None = None
    """The existing row that takes the evidence (dedup), or the place of the old one."""
    closed_at: datetime | None = None
    """valid_to: of the old row (replace), of the new one (history)."""
    measured: Measured | None = None
    makes_fact: bool = True

    def decision(self, other: str | None) -> Decision:
        measured = self.measured
        return Decision(
            stage=self.stage,
            zone=measured.zone if measured else None,
            similarity=measured.similarity if measured else None,
            other_fact_id=other,
        )


def resolve(
    statement: Statement, neighbours: Neighbours, policy: ConflictPolicy, *, makes_fact: bool = True
) -> Resolution:
    measured = measure(statement.content, neighbours.near, policy)
    question = Question(statement, makes_fact, neighbours, measured)
    return next(found for stage in STAGES if (found := stage(question)) is not None)


def carry_out(
    resolution: Resolution, statement: Statement, stamp: Stamp, policy: MemoryPolicy
) -> tuple[Transition, ...]:
    """The transitions of a decision, the old row's first."""
    old, into = resolution.closes, resolution.into
    reason = resolution.reason
    if resolution.kind == "nothing":
        return ()
    if resolution.kind == "admit":
        nearest = resolution.measured.fact if resolution.measured else None
        decision = resolution.decision(nearest.fact_id if nearest else None)
        return (create(statement, stamp, reason=reason, decision=decision),)
    if resolution.kind == "dedup":
        assert into is not None
        again = reinforce(into, statement, stamp, policy.confidence, reason=reason, decision=resolution.decision(None))
        return (again,) if again else ()
    if resolution.kind == "history":
        assert resolution.closed_at is not None
        decision = resolution.decision(old.fact_id if old else None)
        return (admit_as_history(statement, stamp, closed_at=resolution.closed_at, reason=reason, decision=decision),)
    return _close(resolution, statement, stamp, policy)


def _close(resolution: Resolution, statement: Statement, stamp: Stamp, policy: MemoryPolicy) -> tuple[Transition, ...]:
    """The old row closes, whatever becomes of the new statement; what takes its place is linked both ways."""
    old, into, reason = resolution.closes, resolution.into, resolution.reason
    assert old is not None
    successor = into.fact_id if into else (statement.fact_id if resolution.makes_fact else None)
    decision = resolution.decision(successor)
    if resolution.kind == "correct":
        closed = invalidate(old, stamp, by=successor, reason=reason, decision=decision)
    else:
        assert resolution.closed_at is not None
        closed = supersede(old, stamp, by=successor, valid_to=resolution.closed_at, reason=reason, decision=decision)
    decision = resolution.decision(old.fact_id)
    reason = "corrects an earlier statement" if resolution.kind == "correct" else "replaces an older statement"
    if into is not None:
        again = reinforce(
            into, statement, stamp, policy.confidence, reason=reason, decision=decision, supersedes=old.fact_id
        )
        return (closed, again) if again else (closed,)
    if not resolution.makes_fact:
        return (closed,)
    valid_from = statement.valid_from or old.valid_from if resolution.kind == "correct" else None
    opened = create(statement, stamp, reason=reason, decision=decision, valid_from=valid_from, supersedes=old.fact_id)
    return closed, opened


# ------------------------------------------------------------------------------------------------------ stages
def _replaces(question: Question) -> Resolution | None:
    """The speaker said which statement this one takes the place of: no similarity is looked at."""
    old, statement = question.neighbours.replaced, question.statement
    if old is None or _same(old, statement):
        return None
    equal = question.neighbours.equal
    into = equal if question.makes_fact and equal is not None and equal.fact_id != old.fact_id else None
    if statement.is_correction:
        return Resolution(
            "correct",
            "replaces",
            "corrected: it was never true",
            closes=old,
            into=into,
            makes_fact=question.makes_fact,
        )
    later = max(old.valid_from, statement.begins)
    if is_late(statement, old):
        if not question.makes_fact:
            return Resolution("nothing", "replaces", "taken back in a turn older than what is known", closes=old)
        if into is not None:
            return None  # an equal row takes the evidence; nothing is closed
        return Resolution(
            "history",
            "replaces",
            "told late: it was so before what is known now",
            closes=old,
            closed_at=later,
        )
    return Resolution(
        "replace",
        "replaces",
        "replaced by a newer statement" if question.makes_fact else "taken back by the speaker",
        closes=old,
        into=into,
        closed_at=later,
        makes_fact=question.makes_fact,
    )


def _routed_elsewhere(question: Question) -> Resolution | None:
    """Without a row to close, a statement that makes no fact has nothing to do here."""
    return None if question.makes_fact else Resolution("nothing", "route", "makes no fact")


def _exact(question: Question) -> Resolution | None:
    equal = question.neighbours.equal
    return None if equal is None else Resolution("dedup", "exact", "said again", into=equal)


def _admit(question: Question) -> Resolution:
    return Resolution("admit", "admit", "new", measured=question.measured)


STAGES: tuple[Callable[[Question], Resolution | None], ...] = (_replaces, _routed_elsewhere, _exact, _admit)


def is_late(statement: Statement, old: StoredFact) -> bool:
    """A turn that is older than the newest that speaks for the old row. The date it tells of does not matter, and a
    correction is never late."""
    newest = newest_evidence(old)
    return not statement.is_correction and newest is not None and statement.occurred_at < newest


def _same(old: StoredFact, statement: Statement) -> bool:
    return old.subject == statement.subject and old.content_hash == statement.content_hash

"""The conflict pipeline: every statement that may become a fact passes through it (docs/explanation/conflicts.md).

`resolve` asks the stages in order; the first stage that returns a resolution decides. `carry_out` turns the resolution
into transitions. `relations.py` compares the texts, `similarity.py` measures their similarity, and the table in
`neighbour_relations.py` combines both. When the table leaves the decision to a model, the statement is stored as a
pending fact, and a model judges it later (`pending.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from ...schemas.facts import Decision, StoredFact, Zone
from ..language.identification import pack_of
from ..language.parsing import full_names
from ..language.text import own_statement
from ..policies import MemoryPolicy
from .fact_evidence import newest_evidence_time
from .neighbour_relations import NeighbourRelation, Verdict, heed_trust, relate_neighbour
from .relations import SAME_STATEMENT, Relation
from .similarity import NearFact
from .statements import Statement
from .transitions import (
    Stamp,
    Transition,
    add_detail,
    admit_as_history,
    backdate,
    confirm,
    create,
    create_pending,
    has_ended,
    invalidate,
    reinforce,
    supersede,
    told_before,
)
from .trust_order import Trusted, outranks

Kind = Literal["admit", "pending", "dedup", "detail", "replace", "correct", "history", "nothing"]
"""Kinds of resolution.

- admit: create an active row.
- pending: create a row that is not believed yet.
- dedup: add the statement's evidence to an existing row that states the same.
- detail: give an existing row the statement's evidence and more detailed words.
- replace: close the old rows, which were true until now, and add the statement.
- correct: invalidate the old rows, which were never true, and add the statement.
- history: create a closed row for a statement that was true before the old row.
- nothing: change nothing.
"""

_WITHOUT_NEIGHBOURS: Mapping[str, Zone] = {"admit": "COLD"}
_UNCONFIRMED = "it is not certain that the quote says it"
_WAITS = "its source is less trusted than the fact that it would change"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Rows of the statement's owner that the stages compare with the statement.

    Except for `closed`, the rows are active or pending. They include the changes that the current event already made.
    """

    replaced: StoredFact | None = None
    """The row that the statement explicitly replaces; None when the statement names no row."""
    equal: StoredFact | None = None
    """The row with the same subject and content hash."""
    near: tuple[NearFact, ...] = ()
    """Rows of the same subject: the nearest by embedding, and rows with the same single-valued predicate."""
    closed: tuple[StoredFact, ...] = ()
    """Rows with the same subject and content hash that are no longer believed. Only proposals and requests to forget
    need them."""

    def at(self, statement: Statement) -> Neighbours:
        """Leave out rows that ended before the statement begins, because an ended fact may become true again.

        If the statement is a correction, `replaced` stays, even when that row has ended.
        """
        replaced = self.replaced
        return replace(
            self,
            replaced=None
            if replaced and not statement.is_correction and _has_ended_before(replaced, statement)
            else replaced,
            equal=None if self.equal and _has_ended_before(self.equal, statement) else self.equal,
            near=tuple(each for each in self.near if not _has_ended_before(each.fact, statement)),
        )


def _has_ended_before(fact: StoredFact, statement: Statement) -> bool:
    return has_ended(fact, statement.begins)


@dataclass(frozen=True, slots=True)
class ConflictCase:
    """One statement with the data that the stages need to decide about it."""

    statement: Statement
    makes_fact: bool
    """False when the statement never becomes a fact, because its route leads to other tiers only. The statement may
    still close rows."""
    neighbours: Neighbours
    weighed: tuple[NeighbourRelation, ...]
    """The relation of each neighbour, nearest first."""
    now: datetime

    @property
    def begun(self) -> bool:
        """True when the statement has begun. The statement's time may be later than `now`, because clocks differ; a
        statement that begins at its own time counts as begun."""
        return self.statement.begins <= max(self.now, self.statement.occurred_at)

    def one_of(self, *verdicts: Verdict) -> NeighbourRelation | None:
        """Return the nearest neighbour that has the first verdict. If there is none, try the next verdict; return None
        after the last one."""
        return next((each for verdict in verdicts for each in self.weighed if each.verdict == verdict), None)

    def contradicted(self) -> tuple[NeighbourRelation, ...]:
        """Return the neighbours that the statement contradicts.

        When the only reason is that the statement is a correction (`Relation.CORRECTED`), return only the nearest
        neighbour, because the statement does not say which fact it corrects.
        """
        rows = [each for each in self.weighed if each.verdict == "supersede" and self._holds(each.fact)]
        certain = tuple(each for each in rows if each.relation is not Relation.CORRECTED)
        return certain or tuple(rows[:1])

    def _holds(self, fact: StoredFact) -> bool:
        """Return whether the statement can contradict the row.

        It cannot when the statement has already ended, or when the row is pending and begins after the statement.
        """
        over = self.statement.valid_to is not None and self.statement.valid_to <= self.now
        ahead = fact.state == "pending" and fact.valid_from > self.statement.begins
        return not (over or ahead)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision of a stage, with its reason. The rows are the versions before the decision is carried out."""

    kind: Kind
    stage: str
    reason: str
    closes: tuple[StoredFact, ...] = ()
    """For replace and correct: the old rows, which close. For history and pending: the rows because of which the
    statement becomes history or waits; they do not change."""
    into: StoredFact | None = None
    """The existing row that gets the evidence. For replace and correct, it also replaces the old rows."""
    overtaken_by: tuple[StoredFact, ...] = ()
    """Contradicting rows that were stated later than the statement. If there are any, the statement closes the old rows
    but becomes history itself."""
    weighed: NeighbourRelation | None = None
    makes_fact: bool = True
    confirms: StoredFact | None = None
    """A less trusted pending row that states the same. It becomes the row of the statement, so no new row is
    created."""

    def decision(self, other: str | None) -> Decision:
        weighed = self.weighed
        return Decision(
            stage=self.stage,
            zone=weighed.zone if weighed else _WITHOUT_NEIGHBOURS.get(self.stage),
            similarity=weighed.similarity if weighed else None,
            other_fact_id=other,
        )


def resolve(
    statement: Statement, neighbours: Neighbours, policy: MemoryPolicy, *, now: datetime, makes_fact: bool = True
) -> Resolution:
    """Return the resolution of the first stage that decides."""
    neighbours = neighbours.at(statement)
    weighed = relate_neighbour(statement, neighbours.near, policy)
    weighed, equal, confirms = heed_trust(statement, weighed, neighbours.equal)
    case = ConflictCase(statement, makes_fact, replace(neighbours, equal=equal), weighed, now)
    found = next(found for stage in STAGES if (found := stage(case)) is not None)
    if statement.unconfirmed:
        return _keep_unconfirmed(found)
    return replace(keep_trust_order(found, statement), confirms=confirms if makes_fact else None)


def _keep_unconfirmed(found: Resolution) -> Resolution:
    """Return the resolution of an unconfirmed statement: it changes no row, and becomes a pending row.

    A repetition adds evidence to a pending row only.
    """
    if found.kind == "nothing" or not found.makes_fact:
        return replace(found, kind="nothing", closes=())
    if found.kind == "dedup" and found.into is not None:
        return found if found.into.state == "pending" else replace(found, kind="nothing", into=None)
    return replace(found, kind="pending", closes=(), into=None, overtaken_by=(), reason=_UNCONFIRMED)


def keep_trust_order(found: Resolution, statement: Trusted) -> Resolution:
    """Remove from a decision the changes that close or reword more trusted facts.

    If no row remains to close, the statement is only evidence (dedup), waits (pending) or changes nothing.
    """
    into = found.into
    if found.kind == "detail" and into is not None and outranks(into, statement):
        return replace(found, kind="pending", closes=(into,), into=None, reason=_WAITS)
    if found.kind not in ("replace", "correct"):
        return found
    above = tuple(row for row in found.closes if outranks(row, statement))
    if not above:
        return found
    rest = tuple(row for row in found.closes if not outranks(row, statement))
    if into is not None:
        return replace(found, closes=rest) if rest else replace(found, kind="dedup", closes=())
    if not found.makes_fact:
        return replace(found, closes=rest) if rest else replace(found, kind="nothing", reason=_WAITS)
    return replace(found, kind="pending", closes=above, overtaken_by=(), reason=_WAITS)


def lookup_predicates(statement: Statement, policy: MemoryPolicy) -> tuple[str, ...]:
    """Return the statement's single-valued predicates. The caller looks up rows by them, because a similarity search
    may miss these rows."""
    said = own_statement(statement.content, statement.subject)
    return full_names(said, pack_of(said, policy.conflict.locale))


def lookup_slots(statement: Statement, policy: MemoryPolicy) -> tuple[str, ...]:
    """Return the slot of the statement and its opposite slot. The caller looks up rows by them.

    The result is empty when the statement has no known slot, and for an affirmed value of a `many` slot: it closes
    nothing but a near text, and an owner may have thousands of such rows.
    """
    slot = policy.slot(statement.typed.slot)
    if slot is None or (slot.values == "many" and not statement.typed.denied):
        return ()
    return tuple(name for name in (statement.typed.slot, slot.opposite) if name)


def contradicted_rows(
    statement: Statement, near: tuple[NearFact, ...], policy: MemoryPolicy, *, now: datetime
) -> tuple[StoredFact, ...]:
    """Return the rows that cannot be true together with the statement, including rows that were stated later."""
    neighbours = Neighbours(near=near).at(statement)
    case = ConflictCase(statement, True, neighbours, relate_neighbour(statement, neighbours.near, policy), now)
    return tuple(each.fact for each in case.contradicted())


def equivalent_rows(statement: Statement, near: tuple[NearFact, ...], policy: MemoryPolicy) -> tuple[StoredFact, ...]:
    """Return the rows that state the same in other words, with less or with more detail. The texts decide; high
    similarity alone is not enough."""
    near = Neighbours(near=near).at(statement).near
    return tuple(each.fact for each in relate_neighbour(statement, near, policy) if each.relation in SAME_STATEMENT)


# ------------------------------------------------------------------------------------------------------ stages
def _replaces(case: ConflictCase) -> Resolution | None:
    """Resolve a statement that explicitly replaces a row, however similar the two are. Other contradicted rows close
    too."""
    old, statement = case.neighbours.replaced, case.statement
    if old is None or _same(old, statement):
        return None
    into = _believed_already(case, old) if case.makes_fact else None
    others = () if not case.makes_fact else _in_time(case, old)
    if statement.is_correction:
        return Resolution(
            "correct",
            "replaces",
            "corrected: it was never true",
            closes=(old, *others),
            into=into,
            makes_fact=case.makes_fact,
        )
    if is_late(statement, old):
        if not case.makes_fact:
            return Resolution("nothing", "replaces", "taken back in a turn older than what is known", closes=(old,))
        if into is not None:
            return None  # a later stage adds the evidence to `into`; no row closes
        return Resolution(
            "history", "replaces", "stated late: true before the known facts", closes=(old,), makes_fact=True
        )
    return Resolution(
        "replace",
        "replaces",
        "replaced by a newer statement" if case.makes_fact else "taken back by the speaker",
        closes=(old, *others),
        into=into,
        overtaken_by=_newer(case, old) if case.makes_fact and into is None else (),
        makes_fact=case.makes_fact,
    )


def _routed_elsewhere(case: ConflictCase) -> Resolution | None:
    """Resolve a statement that makes no fact and replaces no row: it changes nothing."""
    return None if case.makes_fact else Resolution("nothing", "route", "makes no fact")


def _exact(case: ConflictCase) -> Resolution | None:
    equal = case.neighbours.equal
    return None if equal is None else Resolution("dedup", "exact", "said again", into=equal)


def _same_statement(case: ConflictCase) -> Resolution | None:
    """Resolve a restatement of a known row in other words, or with less or more detail. Other contradicted rows
    close."""
    found = case.one_of("reinforce", "updated")
    if found is None:
        return None
    others = _in_time(case, found.fact) if found.fact.state == "active" else ()
    if others:
        return Resolution("replace", found.stage, found.relation.value, closes=others, into=found.fact, weighed=found)
    kind: Kind = "detail" if found.verdict == "updated" else "dedup"
    return Resolution(kind, found.stage, found.relation.value, into=found.fact, weighed=found)


def _contradicts(case: ConflictCase) -> Resolution | None:
    """Resolve a statement that contradicts rows: the rows close.

    A statement that begins in the future becomes pending instead. A statement that is older than a row becomes history.
    """
    against = case.contradicted()
    if not against:
        return None
    first, statement = against[0], case.statement
    rows = tuple(each.fact for each in against)
    if not case.begun:
        waits = tuple(row for row in rows if row.state == "active")
        return Resolution("pending", first.stage, "it begins in the future", closes=waits, weighed=first)
    if statement.is_correction:
        return Resolution("correct", first.stage, "corrected: it was never true", closes=rows, weighed=first)
    newer = tuple(row for row in rows if is_late(statement, row))
    if newer:
        reason = "stated late: true before the known facts"
        return Resolution("history", first.stage, reason, closes=newer, weighed=first)
    return Resolution("replace", first.stage, first.relation.value, closes=rows, weighed=first)


def _open(case: ConflictCase) -> Resolution | None:
    """Make a statement pending when a model must compare it with an active row, or when it begins in the future."""
    against = case.one_of("pending")
    if against is not None and against.fact.state == "active":
        return Resolution("pending", against.stage, against.relation.value, closes=(against.fact,), weighed=against)
    return None if case.begun else Resolution("pending", "admit", "it begins in the future")


def _admit(case: ConflictCase) -> Resolution:
    nearest = next(iter(case.weighed), None)
    return Resolution("admit", "admit", nearest.relation.value if nearest else "new", weighed=nearest)


STAGES: tuple[Callable[[ConflictCase], Resolution | None], ...] = (
    _replaces,
    _routed_elsewhere,
    _exact,
    _same_statement,
    _contradicts,
    _open,
    _admit,
)


def is_late(statement: Statement, old: StoredFact) -> bool:
    """Return whether the statement is older than the row, so that the statement must not close the row.

    A statement is late when the row's newest evidence is later than the statement. A statement is also late when
    speakers gave both starts and the statement's start is earlier. Evidence that is less trusted than the statement
    does not count. A correction is never late.
    """
    newest = newest_evidence_time(old, statement)
    said_before = newest is not None and statement.occurred_at < newest
    return not statement.is_correction and (said_before or told_before(statement, old))


def _same(old: StoredFact, statement: Statement) -> bool:
    """Return whether the statement repeats the subject and content of the old row. A repetition replaces nothing."""
    return (old.subject, old.content_hash) == (statement.subject, statement.content_hash)


def _believed_already(case: ConflictCase, old: StoredFact) -> StoredFact | None:
    """Return a row other than `old` that states the same, in equal words, in other words or with other detail; None
    when there is none."""
    equal, same = case.neighbours.equal, case.one_of("reinforce", "updated")
    found = equal or (same.fact if same is not None else None)
    return found if found is not None and found.fact_id != old.fact_id else None


def _in_time(case: ConflictCase, excluded: StoredFact) -> tuple[StoredFact, ...]:
    """Return the contradicted rows except `excluded` that are not newer than the statement (`is_late`)."""
    rows = (each.fact for each in case.contradicted())
    return tuple(row for row in rows if row.fact_id != excluded.fact_id and not is_late(case.statement, row))


def _newer(case: ConflictCase, excluded: StoredFact) -> tuple[StoredFact, ...]:
    """Return the contradicted rows except `excluded` that are newer than the statement (`is_late`)."""
    rows = (each.fact for each in case.contradicted())
    return tuple(row for row in rows if row.fact_id != excluded.fact_id and is_late(case.statement, row))


# -------------------------------------------------------------------------------------------------- transitions
def carry_out(
    resolution: Resolution, statement: Statement, stamp: Stamp, policy: MemoryPolicy
) -> tuple[Transition, ...]:
    """Return the transitions of a resolution. Transitions of old rows come first."""
    if (heard := resolution.confirms) is not None:
        statement = replace(statement, fact_id=heard.fact_id)
        made = carry_out(replace(resolution, confirms=None), statement, stamp, policy)
        return confirm(heard, made, into=resolution.into, stamp=stamp)
    into, reason = resolution.into, resolution.reason
    first = next(iter(resolution.closes), None)
    other = first or (resolution.weighed.fact if resolution.weighed else None)
    decision = resolution.decision(other.fact_id if other else None)
    match resolution.kind:
        case "nothing":
            return ()
        case "admit":
            return (create(statement, stamp, reason=reason, decision=decision),)
        case "pending":
            waits_for = first.fact_id if first else None
            return (create_pending(statement, stamp, waits_for=waits_for, reason=reason, decision=decision),)
        case "history":
            return (_as_history(resolution.closes, statement, stamp, reason=reason, decision=decision),)
        case "dedup" | "detail":
            assert into is not None
            decision = resolution.decision(None)
            if resolution.kind == "detail":
                return (add_detail(into, statement, stamp, policy.confidence, reason=reason, decision=decision),)
            return _said_again(resolution, into, statement, stamp, policy, decision)
        case _:
            return _close(resolution, statement, stamp, policy)


def _said_again(
    resolution: Resolution,
    into: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: MemoryPolicy,
    decision: Decision,
) -> tuple[Transition, ...]:
    """Reinforce the row. A restatement in other words with an earlier start also moves the row's start to that time."""
    reason = resolution.reason
    if resolution.stage != "exact" and statement.begins < into.valid_from and not outranks(into, statement):
        return (backdate(into, statement, stamp, policy.confidence, reason=reason, decision=decision),)
    again = reinforce(into, statement, stamp, policy.confidence, reason=reason, decision=decision)
    return (again,) if again else ()


def _as_history(
    newer: tuple[StoredFact, ...], statement: Statement, stamp: Stamp, *, reason: str, decision: Decision
) -> Transition:
    closed_at = min(max(row.valid_from, statement.begins) for row in newer)
    return admit_as_history(statement, stamp, closed_at=closed_at, reason=reason, decision=decision)


def _close(resolution: Resolution, statement: Statement, stamp: Stamp, policy: MemoryPolicy) -> tuple[Transition, ...]:
    """Close the old rows, then create or reinforce the row that replaces them. That row links to the first old row."""
    olds, into, reason = resolution.closes, resolution.into, resolution.reason
    opens = resolution.makes_fact and not resolution.overtaken_by
    successor = into.fact_id if into else (statement.fact_id if opens else None)
    decision = resolution.decision(successor)
    closed = tuple(_closed(resolution, old, successor, statement, stamp, decision) for old in olds)
    decision = resolution.decision(olds[0].fact_id)
    first = olds[0].fact_id
    reason = "corrects an earlier statement" if resolution.kind == "correct" else "replaces an older statement"
    if into is not None:
        again = reinforce(into, statement, stamp, policy.confidence, reason=reason, decision=decision, supersedes=first)
        return (*closed, again) if again else closed
    if not resolution.makes_fact:
        return closed
    if resolution.overtaken_by:
        reason = "stated late: true before the known facts"
        return (*closed, _as_history(resolution.overtaken_by, statement, stamp, reason=reason, decision=decision))
    if resolution.kind == "correct" and statement.valid_from is None:
        begin = olds[0]
        statement = replace(statement, valid_from=begin.valid_from, valid_from_told=begin.valid_from_told)
    opened = create(statement, stamp, reason=reason, decision=decision, supersedes=first)
    return (*closed, opened)


def _closed(
    resolution: Resolution,
    old: StoredFact,
    successor: str | None,
    statement: Statement,
    stamp: Stamp,
    decision: Decision,
) -> Transition:
    if resolution.kind == "correct":
        return invalidate(old, stamp, by=successor, reason=resolution.reason, decision=decision)
    valid_to = max(old.valid_from, statement.begins)
    return supersede(old, stamp, by=successor, valid_to=valid_to, reason=resolution.reason, decision=decision)

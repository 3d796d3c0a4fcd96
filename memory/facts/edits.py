"""Manual edits of facts: pure decisions, with the transitions that carry them out.

A remembered statement goes through the conflict pipeline, like a statement from a conversation. Two active facts never
state the same after an edit. An edit that would cause this is refused, or it adds evidence to the existing fact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...schemas.edits.facts import PINNED_FACTS_MAX, FactDecision, ForgetCause
from ...schemas.facts import APPROVED, UNCONFIRMED, WAITS_FOR, Decision, StoredFact, Trust
from ..policies import MemoryPolicy
from ..trust.instructions import instruction_rule
from .conflict import Kind, Neighbours, carry_out, contradicted_rows, equivalent_rows, resolve
from .routing import needs_own_word
from .statements import Statement
from .transitions import READABLE, Stamp, Transition, create, edit, forget, has_ended, merge, reinforce, supersede
from .trust_order import outranks

STAGE = "edit"
_DECISIONS: dict[Kind, FactDecision] = {
    "admit": "admit",
    "history": "admit",
    "pending": "pending",
    "dedup": "dedup",
    "detail": "dedup",
    "nothing": "dedup",
    "replace": "supersede",
    "correct": "supersede",
}
_FORGOTTEN: Mapping[ForgetCause | None, str] = {
    None: "forgotten by hand",
    "wrong": "forgotten by hand: it was never true",
    "over": "forgotten by hand: it is over",
}


@dataclass(frozen=True, slots=True)
class EditRefusal:
    """The reason why an edit is refused. `code` is documented in docs/reference/edits.md."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class FactEditOutcome:
    """The id of the edited fact, and the transitions that carry out the edit. Without transitions nothing changes."""

    fact_id: str
    transitions: tuple[Transition, ...] = ()


@dataclass(frozen=True, slots=True)
class RememberOutcome(FactEditOutcome):
    """The decision of the conflict pipeline about a statement, with its reason."""

    decision: FactDecision = "admit"
    reason: str = ""


def refuse_own_word(statement: Statement) -> EditRefusal | None:
    """Refuse a preference or an identity that a tool states. Return None when the statement may be remembered."""
    if not needs_own_word(statement.trust, statement.category):
        return None
    return EditRefusal("own_word", f"a fact of the category {statement.category} needs the word of a person")


def remember(statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy) -> RememberOutcome:
    """Run a statement through the conflict pipeline."""
    found = resolve(statement, neighbours, policy, now=stamp.now)
    transitions = carry_out(found, statement, stamp, policy)
    known = found.into or found.confirms
    fact_id = known.fact_id if known is not None else statement.fact_id
    return RememberOutcome(fact_id, transitions, _DECISIONS[found.kind], found.reason)


def update_fact(
    fact: StoredFact,
    statement: Statement | None,
    fields: dict[str, object],
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    reason: str,
) -> FactEditOutcome | EditRefusal:
    """Reword a fact, or change its category, tags or metadata.

    `statement` has the new words; None keeps the old words. `fields` has the new values by field name.
    """
    if fact.state not in READABLE:
        return _stale(fact, "only active and pending facts are edited")
    if statement is not None and statement.content == fact.content:
        statement = None
    if statement is not None:
        refused = (
            _is_instruction(statement.content)
            or _is_less_trusted(fact, statement)
            or _clashes((fact,), statement, neighbours, stamp, policy)
        )
        if refused is not None:
            return refused
    if "metadata" in fields:
        ours = {name: fact.metadata[name] for name in (WAITS_FOR, UNCONFIRMED, APPROVED) if name in fact.metadata}
        fields = {**fields, "metadata": {**_mapping(fields["metadata"]), **ours}}
    changed = {name: value for name, value in fields.items() if getattr(fact, name) != value}
    if statement is None and not changed:
        return FactEditOutcome(fact.fact_id)
    why = reason or "edited by hand"
    return FactEditOutcome(
        fact.fact_id, (edit(fact, statement, changed, stamp, reason=why, decision=Decision(stage=STAGE)),)
    )


def reinforce_fact(
    fact: StoredFact, statement: Statement, stamp: Stamp, policy: MemoryPolicy, *, reason: str
) -> FactEditOutcome | EditRefusal:
    """Add the evidence of `statement`, the edit command, to an active fact. The fact keeps its words."""
    if fact.state != "active":
        return _stale(fact, "only active facts are reinforced; approve one that waits")
    why = reason or "confirmed by hand"
    again = reinforce(fact, statement, stamp, policy.confidence, reason=why, decision=Decision(stage=STAGE))
    return FactEditOutcome(fact.fact_id, (again,) if again is not None else ())


def pin_fact(
    fact: StoredFact, pinned: Sequence[StoredFact], stamp: Stamp, *, reason: str
) -> FactEditOutcome | EditRefusal:
    """Pin an active fact. `pinned` are the owner's active facts that are pinned.

    Nothing but the pin changes: a pin says what contexts show, and nothing about truth.
    """
    if fact.state != "active":
        return _stale(fact, "only active facts are pinned")
    if has_ended(fact, stamp.now):
        return EditRefusal("stale", f"fact {fact.fact_id} has ended: no context shows it")
    if fact.is_pinned:
        return FactEditOutcome(fact.fact_id)
    others = [each.fact_id for each in pinned if not has_ended(each, stamp.now)]
    if len(others) >= PINNED_FACTS_MAX:
        message = f"an owner has at most {PINNED_FACTS_MAX} pinned facts: unpin one of {', '.join(others)}"
        return EditRefusal("pins", message)
    return _with_pin(fact, stamp.now, stamp, reason or "pinned by hand")


def unpin_fact(fact: StoredFact, stamp: Stamp, *, reason: str) -> FactEditOutcome:
    """Unpin a fact in any state."""
    if fact.pinned_at is None:
        return FactEditOutcome(fact.fact_id)
    return _with_pin(fact, None, stamp, reason or "unpinned by hand")


def supersede_fact(
    fact: StoredFact,
    statement: Statement,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    reason: str,
) -> FactEditOutcome | EditRefusal:
    """Close a fact, and create or reinforce the fact that states the new value.

    Other active rows that contradict the new value close too, unless they are more trusted than the new value. The
    outcome has the id of the fact that states the new value.
    """
    if fact.state != "active":
        return _stale(fact, "only active facts are superseded")
    if (refused := _is_instruction(statement.content)) is not None:
        return refused
    if statement.content_hash == fact.content_hash:
        return EditRefusal("same", f"fact {fact.fact_id} says that already")
    if statement.begins > max(stamp.now, statement.occurred_at):
        return EditRefusal(
            "not_begun", f"it begins at {statement.begins.isoformat()}: remember it as a fact of its own"
        )
    same = (neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    into = next(
        (row for row in same if row is not None and row.state == "active" and row.fact_id != fact.fact_id), None
    )
    others = contradicted_rows(statement, neighbours.near, policy, now=stamp.now)
    rows = {row.fact_id: row for row in (fact, *(row for row in others if row.state == "active"))}
    closes = [row for row in rows.values() if row.fact_id == fact.fact_id or not outranks(row, statement)]
    by = into.fact_id if into is not None else statement.fact_id
    why = reason or "replaced by hand"
    closed = [
        supersede(
            row,
            stamp,
            by=by,
            valid_to=max(row.valid_from, statement.begins),
            reason=why,
            decision=Decision(stage=STAGE, other_fact_id=by),
        )
        for row in closes
        if row.fact_id != by
    ]
    decision = Decision(stage=STAGE, other_fact_id=fact.fact_id)
    if into is None:
        opened = create(statement, stamp, reason=why, decision=decision, supersedes=fact.fact_id)
        return FactEditOutcome(by, (*closed, opened))
    again = reinforce(into, statement, stamp, policy.confidence, reason=why, decision=decision, supersedes=fact.fact_id)
    return FactEditOutcome(by, (*closed, again) if again is not None else tuple(closed))


def merge_facts(
    facts: Sequence[StoredFact],
    statement: Statement,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    reason: str,
    trust: Trust | None,
) -> FactEditOutcome | EditRefusal:
    """Merge facts into the first fact. `trust` is the trust of new words; None when the words are from one of the
    facts."""
    gone = next((fact for fact in facts if fact.state != "active"), None)
    if gone is not None:
        return _stale(gone, "only active facts are merged")
    if len({fact.subject for fact in facts}) > 1:
        return EditRefusal("subjects", "facts of different subjects cannot be merged")
    refused = _is_instruction(statement.content) or _clashes(facts, statement, neighbours, stamp, policy)
    if refused is not None:
        return refused
    transitions = merge(
        facts,
        content=statement.content,
        predicate=statement.predicate,
        confidence=None,
        stamp=stamp,
        reason=reason or "merged by hand",
        stage=STAGE,
        trust=trust,
    )
    return FactEditOutcome(facts[0].fact_id, transitions)


def forget_fact(
    fact: StoredFact, stamp: Stamp, *, reason: str, because: ForgetCause | None = None, restored: Collection[str] = ()
) -> FactEditOutcome:
    """Forget a fact in any state. `restored` are the ids of the facts that it had closed and that are believed again.

    The outcome has no transitions when the fact is already forgotten and keeps its link to the fact that it closed.
    """
    if fact.state == "forgotten" and fact.supersedes not in restored:
        return FactEditOutcome(fact.fact_id)
    why = reason or _FORGOTTEN[because]
    gone = forget(fact, stamp, reason=why, decision=Decision(stage=STAGE), restored=restored)
    return FactEditOutcome(fact.fact_id, (gone,))


def _with_pin(fact: StoredFact, pinned_at: datetime | None, stamp: Stamp, reason: str) -> FactEditOutcome:
    changed = edit(fact, None, {"pinned_at": pinned_at}, stamp, reason=reason, decision=Decision(stage=STAGE))
    return FactEditOutcome(fact.fact_id, (changed,))


def _stale(fact: StoredFact, rule: str) -> EditRefusal:
    return EditRefusal("stale", f"fact {fact.fact_id} is {fact.state}: {rule}")


def _is_less_trusted(fact: StoredFact, statement: Statement) -> EditRefusal | None:
    """Refuse to reword a fact that is more trusted than the new words.

    A rewording loses the old text. The caller can supersede the fact instead, which keeps the old row.
    """
    if not outranks(fact, statement):
        return None
    message = f"fact {fact.fact_id} has the trust {fact.trust}, the new words have {statement.trust}: supersede it"
    return EditRefusal("own_word", message)


def _is_instruction(content: str) -> EditRefusal | None:
    rule = instruction_rule(content)
    if rule is None:
        return None
    return EditRefusal("instruction", f"it is an instruction to the assistant ({rule}), not a statement of fact")


def _clashes(
    facts: Sequence[StoredFact], statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy
) -> EditRefusal | None:
    """Refuse new words that repeat or contradict an active fact which is not in `facts`."""
    named = {fact.fact_id for fact in facts}
    same = (neighbours.equal, *equivalent_rows(statement, neighbours.near, policy))
    for row in same:
        if row is not None and row.state == "active" and row.fact_id not in named:
            return EditRefusal("duplicate", f"fact {row.fact_id} says so already: merge the two")
    for row in contradicted_rows(statement, neighbours.near, policy, now=stamp.now):
        if row.state == "active" and row.fact_id not in named:
            return EditRefusal("contradicts", f"it contradicts fact {row.fact_id}: supersede or forget that one first")
    return None


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}

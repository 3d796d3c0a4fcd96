"""Manual edits of facts (docs/reference/edits.md). The functions return changes; the caller writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....memory.facts.conflict import Neighbours
from ....memory.facts.edits import (
    EditRefusal,
    FactEditOutcome,
    RememberOutcome,
    forget_fact,
    merge_facts,
    pin_fact,
    refuse_own_word,
    reinforce_fact,
    remember,
    supersede_fact,
    unpin_fact,
    update_fact,
)
from ....memory.facts.reopening import newest_closed_first
from ....memory.facts.retractions import ASKED
from ....memory.facts.statements import Statement, resolve_subject, statement_from_edit
from ....memory.trust.rendered_text import find_unsafe_text, observed_rule
from ....schemas.base import CONTENT_MAX, REASON_MAX, Contract
from ....schemas.edits.facts import (
    FactEdit,
    FactEdited,
    FactForget,
    FactForgotten,
    FactMerge,
    FactPin,
    FactReinforce,
    FactRemember,
    FactRemembered,
    FactsMerged,
    FactSupersede,
    FactSuperseded,
    StillClosed,
)
from ....schemas.facts import Fact, FactCause, StoredFact, Trust
from ..fact_changes import FactChange, changed_ids
from ..fact_overlay import Vector
from ..quarantine import quarantine_statement
from ..reopening import Reopened, other_neighbours, reopen_closed
from .scope import OwnerEditResult, OwnerEditScope, refused, refused_session

NO_CHANGE: Mapping[str, Vector] = {}


async def remember_fact(args: FactRemember, scope: OwnerEditScope) -> OwnerEditResult:
    """Pass a statement through the conflict pipeline. An instruction to the assistant is quarantined."""
    return await _take(args, scope, alone=scope.command.kind == "facts.add")


async def update(args: FactEdit, scope: OwnerEditScope) -> OwnerEditResult:
    fact = await _fact(args.fact_id, scope)
    if fact is None:
        return _unknown(args.fact_id)
    if args.expected_version is not None and args.expected_version != fact.version:
        return refused("version", f"fact {fact.fact_id} is at version {fact.version}: read it again")
    if (unsafe := _unsafe_tags(args.tags)) is not None:
        return refused(unsafe.code, unsafe.message)
    statement, neighbours, vectors = None, Neighbours(), NO_CHANGE
    if args.content is not None:
        statement = _about(fact, args.content, args.trust, scope)
        neighbours, vectors = await _neighbours(statement, (fact,), scope)
    given = {"category": args.category, "tags": args.tags, "metadata": args.metadata}
    fields: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    found = update_fact(fact, statement, fields, neighbours, scope.facts.stamp, scope.policy, reason=args.reason)
    return _done(found, scope, vectors, lambda changes: _edited(fact, changes))


async def reinforce(args: FactReinforce, scope: OwnerEditScope) -> OwnerEditResult:
    fact = await _fact(args.fact_id, scope)
    if fact is None:
        return _unknown(args.fact_id)
    statement = _about(fact, fact.content, args.trust, scope)
    found = reinforce_fact(fact, statement, scope.facts.stamp, scope.policy, reason=args.reason)
    return _done(found, scope, NO_CHANGE, lambda changes: _edited(fact, changes))


async def set_pin(args: FactPin, scope: OwnerEditScope) -> OwnerEditResult:
    """Pin or unpin a fact."""
    fact = await _fact(args.fact_id, scope)
    if fact is None:
        return _unknown(args.fact_id)
    found: FactEditOutcome | EditRefusal
    if scope.command.kind == "facts.unpin":
        found = unpin_fact(fact, scope.facts.stamp, reason=args.reason)
    else:
        found = pin_fact(fact, await scope.facts.overlay.pinned(), scope.facts.stamp, reason=args.reason)
    return _done(found, scope, NO_CHANGE, lambda changes: _edited(fact, changes))


async def supersede(args: FactSupersede, scope: OwnerEditScope) -> OwnerEditResult:
    fact = await _fact(args.fact_id, scope)
    if fact is None:
        return _unknown(args.fact_id)
    if (unsafe := _unsafe_tags(args.tags)) is not None:
        return refused(unsafe.code, unsafe.message)
    statement = statement_from_edit(
        scope.command,
        owner=scope.owner,
        content=args.content,
        subject=fact.subject,
        category=args.category or fact.category,
        trust=args.trust,
        policy=scope.policy,
        valid_from=args.valid_from,
        sensitivity=fact.sensitivity,
        tags=args.tags,
    )
    neighbours, vectors = await _neighbours(statement, (fact,), scope)
    found = supersede_fact(fact, statement, neighbours, scope.facts.stamp, scope.policy, reason=args.reason)

    def result(changes: Sequence[FactChange]) -> Contract:
        new = found.fact_id if isinstance(found, FactEditOutcome) else statement.fact_id
        return FactSuperseded(old_fact_id=fact.fact_id, fact_id=new, changed_fact_ids=changed_ids(changes))

    return _done(found, scope, vectors, result)


async def merge(args: FactMerge, scope: OwnerEditScope) -> OwnerEditResult:
    if len(set(args.fact_ids)) < len(args.fact_ids):
        return refused("same", "a fact cannot be merged with itself: name each once")
    known = await scope.facts.overlay.by_ids(args.fact_ids)
    missing = next((each for each in args.fact_ids if each not in known), None)
    if missing is not None:
        return _unknown(missing)
    facts = [known[each] for each in args.fact_ids]
    content = args.content or ". ".join(dict.fromkeys(fact.content.rstrip(".") for fact in facts))
    if len(content) > CONTENT_MAX:
        message = f"their texts have {len(content)} characters together; at most {CONTENT_MAX} fit: give a text"
        return refused("too_long", message)
    statement = _about(facts[0], content, args.trust, scope)
    neighbours, vectors = await _neighbours(statement, facts, scope)
    found = merge_facts(
        facts,
        statement,
        neighbours,
        scope.facts.stamp,
        scope.policy,
        reason=args.reason,
        trust=args.trust if args.content is not None else None,
    )
    merged = FactsMerged(fact_id=args.fact_ids[0], merged_fact_ids=args.fact_ids[1:])
    return _done(found, scope, vectors, lambda _: merged)


async def forget(args: FactForget, scope: OwnerEditScope) -> OwnerEditResult:
    """Forget a fact. If the request asks to restore, the facts that it had closed are believed again."""
    fact = await _fact(args.fact_id, scope)
    if fact is None:
        return _unknown(args.fact_id)
    if args.restores:
        reopened = await reopen_closed(fact, scope.facts, _cause(scope))
    else:
        rows = newest_closed_first(await scope.facts.overlay.closed_by(fact.fact_id))
        reopened = Reopened(still_closed=[StillClosed(fact_id=row.fact_id, why="not_asked") for row in rows])
    found = forget_fact(
        fact, scope.facts.stamp, reason=args.reason, because=args.because, restored=reopened.restored_ids
    )

    def result(changes: Sequence[FactChange]) -> Contract:
        return FactForgotten(
            fact_id=fact.fact_id,
            forgotten=fact.state != "forgotten",
            restored_fact_ids=reopened.restored_ids,
            still_closed=tuple(reopened.still_closed),
        )

    done = _done(found, scope, NO_CHANGE, result)
    return replace(done, changes=(*done.changes, *reopened.changes))


async def _take(args: FactRemember, scope: OwnerEditScope, *, alone: bool) -> OwnerEditResult:
    """Remember a statement.

    With `alone`, the statement is compared only with facts of equal text, and closes no fact.
    """
    if scope.is_erased(args.session_id):
        return refused_session()
    statement = statement_from_edit(
        scope.command,
        owner=scope.owner,
        content=args.content,
        subject=resolve_subject(args.subject, scope.owner, scope.owner.id),
        category=args.category,
        trust=args.trust,
        policy=scope.policy,
        confidence=args.confidence,
        valid_from=args.valid_from,
        valid_to=args.valid_to,
        sensitivity=args.sensitivity,
        session_id=args.session_id,
        tags=args.tags,
        metadata=args.metadata,
    )
    found: RememberOutcome | EditRefusal | None = refuse_own_word(statement) or _unsafe_tags(args.tags)
    if found is None and scope.facts.taken_back(statement) is not None:
        found = EditRefusal("forgotten", f"{ASKED} after this command was issued: issue it again")
    vectors = await scope.embed([statement.content])
    if found is None and observed_rule(statement.subject, statement.content, statement.trust) is not None:
        found = await _quarantined(statement, scope)
    elif found is None:
        near = () if alone else await scope.facts.near(statement, vectors[statement.content])
        neighbours = Neighbours(equal=await scope.facts.overlay.equal(statement), near=near)
        found = remember(statement, neighbours, scope.facts.stamp, scope.policy)

    def result(changes: Sequence[FactChange]) -> Contract:
        assert isinstance(found, RememberOutcome)  # `_done` builds no result for a refusal
        return FactRemembered(
            decision=found.decision,
            fact_id=found.fact_id,
            reason=found.reason[:REASON_MAX],
            changed_fact_ids=changed_ids(changes),
        )

    return _done(found, scope, vectors, result)


def _unsafe_tags(tags: tuple[str, ...] | None) -> EditRefusal | None:
    found = find_unsafe_text(Fact, {"tags": tags or ()})
    return None if found is None else EditRefusal(found.code, found.message)


async def _quarantined(statement: Statement, scope: OwnerEditScope) -> RememberOutcome:
    made = await quarantine_statement(statement, scope.facts)
    last = made[-1]  # the command is new evidence, so there is at least one transition
    kept_apart = last.fact.state == "quarantined"
    return RememberOutcome(last.fact.fact_id, made, "quarantined" if kept_apart else "dedup", last.reason)


def _about(fact: StoredFact, content: str, trust: Trust, scope: OwnerEditScope) -> Statement:
    """Return the statement that this command makes about a fact, with new or unchanged content."""
    return statement_from_edit(
        scope.command,
        owner=scope.owner,
        content=content,
        subject=fact.subject,
        category=fact.category,
        trust=trust,
        policy=scope.policy,
        confidence=fact.confidence,
        valid_from=fact.valid_from,
        sensitivity=fact.sensitivity,
    )


async def _neighbours(
    statement: Statement, but: Sequence[StoredFact], scope: OwnerEditScope
) -> tuple[Neighbours, Mapping[str, Vector]]:
    """Return the neighbours of a statement without the facts `but`, and the statement's vector by its text."""
    vectors = await scope.embed([statement.content])
    return await other_neighbours(statement, vectors[statement.content], but, scope.facts), vectors


async def _fact(fact_id: str, scope: OwnerEditScope) -> StoredFact | None:
    return (await scope.facts.overlay.by_ids([fact_id])).get(fact_id)


def _unknown(fact_id: str) -> OwnerEditResult:
    return refused("unknown", f"there is no fact {fact_id} of this owner")


def _edited(fact: StoredFact, changes: Sequence[FactChange]) -> FactEdited:
    last = changes[-1].fact if changes else fact
    return FactEdited(fact_id=fact.fact_id, state=last.state, version=last.version, changed=bool(changes))


def _done(
    found: FactEditOutcome | EditRefusal | None,
    scope: OwnerEditScope,
    vectors: Mapping[str, Vector],
    result: Callable[[Sequence[FactChange]], Contract],
) -> OwnerEditResult:
    """Apply the transitions to the overlay of the facts and return the result. The caller writes the changes."""
    assert found is not None
    if isinstance(found, EditRefusal):
        return refused(found.code, found.message)
    changes = scope.facts.change(found.transitions, _cause(scope), vectors)
    return OwnerEditResult(result=result(changes), changes=changes)


def _cause(scope: OwnerEditScope) -> FactCause:
    return FactCause(command_id=scope.command.command_id, issued_by=scope.command.issued_by)

"""Import of statements of another memory (docs/design/import.md). It returns changes; the caller writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....memory.facts.conflict import Neighbours
from ....memory.facts.edits import remember
from ....memory.facts.retractions import ASKED
from ....memory.facts.statements import Statement, statement_from_import
from ....memory.facts.transitions import Transition
from ....memory.trust.rendered_text import find_unsafe_text, observed_rule
from ....schemas.facts import Fact, FactCause
from ....schemas.imports import FactsImport
from ...common.restored import RestoreCount
from ..fact_changes import FactChange
from ..fact_overlay import Vector
from ..quarantine import quarantine_statement
from .scope import NOT_EMBEDDED, OwnerEditResult, OwnerEditScope


async def import_facts(args: FactsImport, scope: OwnerEditScope) -> OwnerEditResult:
    """Pass statements through the conflict pipeline, each with its time. An instruction is quarantined.

    A statement that was imported before is skipped, also if its fact was closed or forgotten since.
    """
    count = RestoreCount()
    changes: list[FactChange] = []
    statements = [
        statement_from_import(scope.command, args, each, owner=scope.owner, policy=scope.policy) for each in args.facts
    ]
    vectors = await scope.embed_accepted(each.content for each in statements)
    looks = [
        scope.facts.look(each, vectors[each.content], observation_id=each.evidence[0].observation_id)
        for each in statements
        if each.content in vectors
    ]
    await scope.facts.overlay.look(looks, may_be_new=True)
    cause = FactCause(command_id=scope.command.command_id, issued_by=scope.command.issued_by)
    for fact, statement in zip(args.facts, statements, strict=True):
        unsafe = find_unsafe_text(Fact, {"tags": fact.tags})
        if unsafe is not None:
            count.refuse(fact.line, unsafe.message)
            continue
        if statement.content not in vectors:
            count.refuse(fact.line, NOT_EMBEDDED)
            continue
        if scope.facts.taken_back(statement) is not None:
            count.refuse(fact.line, ASKED)
            continue
        made = scope.facts.change(await _transitions(statement, args, vectors, scope), cause, vectors)
        changes += made
        count.imported += bool(made)
        count.skipped += not made
    return OwnerEditResult(result=count.result(), changes=tuple(changes))


async def _transitions(
    statement: Statement, args: FactsImport, vectors: Mapping[str, Vector], scope: OwnerEditScope
) -> Sequence[Transition]:
    """Return the transitions of one statement; none if memory has it."""
    overlay = scope.facts.overlay
    equal = await overlay.equal(statement)
    if await overlay.by_ids([statement.fact_id]) or (args.dedup and equal is not None):
        return ()
    if await overlay.of_observation(statement.evidence[0].observation_id) is not None:
        return ()  # it is evidence of a fact with other words
    if observed_rule(statement.subject, statement.content, statement.trust) is not None:
        return await quarantine_statement(statement, scope.facts)
    near = await scope.facts.near(statement, vectors[statement.content])
    return remember(statement, Neighbours(equal=equal, near=near), scope.facts.stamp, scope.policy).transitions

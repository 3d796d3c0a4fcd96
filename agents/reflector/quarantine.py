"""Instructions to the assistant are kept apart until a person decides. Nothing is written here."""

from __future__ import annotations

from ...memory.facts.conflict import Neighbours, carry_out, resolve
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import Transition, quarantine, quarantine_again
from ...memory.trust.rendered_text import observed_rule
from ...schemas.base import REASON_MAX
from .fact_changes import FactChanger


async def quarantine_statement(statement: Statement, facts: FactChanger) -> tuple[Transition, ...]:
    """Keep an instruction that a user gave apart. It closes nothing. One that a person has approved is said again."""
    overlay, stamp = facts.overlay, facts.stamp
    equal = await overlay.equal(statement)
    if equal is not None:
        found = resolve(statement, Neighbours(equal=equal), facts.policy.conflict, now=stamp.now)
        return carry_out(found, statement, stamp, facts.policy)
    rule = observed_rule(statement.subject, statement.content, statement.trust)
    reason = f"an instruction to the assistant ({rule}): it waits for a person's approval"[:REASON_MAX]
    known = await overlay.quarantined(statement.subject, statement.content_hash)
    if known is None:
        return (quarantine(statement, stamp, reason=reason),)
    again = quarantine_again(known, statement, stamp, reason=reason)
    return (again,) if again is not None else ()

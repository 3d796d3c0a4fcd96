"""Quarantine of instructions to the assistant until a person decides. The functions write nothing."""

from __future__ import annotations

from ...memory.facts.conflict import Neighbours, carry_out, resolve
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import Transition, quarantine, quarantine_again
from ...memory.trust.rendered_text import observed_rule
from ...schemas.base import REASON_MAX
from .fact_changes import FactChanger


async def quarantine_statement(statement: Statement, facts: FactChanger) -> tuple[Transition, ...]:
    """Return the transitions that quarantine a user's instruction. A quarantined instruction closes no fact.

    An instruction that a person has approved is handled as a repeated statement.
    """
    overlay, stamp = facts.overlay, facts.stamp
    equal = await overlay.equal(statement)
    if equal is not None:
        found = resolve(statement, Neighbours(equal=equal), facts.policy, now=stamp.now)
        return carry_out(found, statement, stamp, facts.policy)
    rule = observed_rule(statement.subject, statement.content, statement.trust)
    reason = f"an instruction to the assistant ({rule}): it waits for a person's approval"[:REASON_MAX]
    known = await overlay.quarantined(statement.subject, statement.content_hash)
    if known is None:
        return (quarantine(statement, stamp, reason=reason),)
    again = quarantine_again(known, statement, stamp, reason=reason)
    return (again,) if again is not None else ()

"""Facts that are believed again, because the fact that had closed them is forgotten as wrong (docs/design/edits.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...memory.facts.conflict import Neighbours
from ...memory.facts.reopening import (
    REOPENED_MAX,
    hand_row_on,
    newest_closed_first,
    reopen_row,
    reopened_statement,
    stays_closed,
)
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import READABLE, Transition
from ...schemas.edits.facts import StillClosed
from ...schemas.facts import FactCause, StoredFact
from .fact_changes import FactChange, FactChanger
from .fact_overlay import Vector


@dataclass(frozen=True, slots=True)
class Reopened:
    """Changes of the rows that a forgotten fact had closed, and the reasons of the rows that stay closed."""

    changes: list[FactChange] = field(default_factory=list)
    still_closed: list[StillClosed] = field(default_factory=list)

    @property
    def restored_ids(self) -> tuple[str, ...]:
        return tuple(each.fact.fact_id for each in self.changes if each.fact.state == "active")


async def reopen_closed(fact: StoredFact, facts: FactChanger, cause: FactCause) -> Reopened:
    """Believe the rows again that a fact has closed. The fact is about to be forgotten as wrong."""
    rows = newest_closed_first(await facts.overlay.closed_by(fact.fact_id))
    if fact.superseded_by is not None:
        return await _handed_on(rows, fact, facts, cause)
    return await _reopened(rows, fact, facts, cause)


async def other_neighbours(
    statement: Statement, vector: Vector | None, but: Sequence[StoredFact], facts: FactChanger
) -> Neighbours:
    """Return the neighbours of a statement without the facts `but`."""
    named = {fact.fact_id for fact in but}
    equal = await facts.overlay.equal(statement)
    near = await facts.near(statement, vector)
    return Neighbours(
        equal=equal if equal is not None and equal.fact_id not in named else None,
        near=tuple(each for each in near if each.fact.fact_id not in named),
    )


async def _reopened(rows: Sequence[StoredFact], fact: StoredFact, facts: FactChanger, cause: FactCause) -> Reopened:
    """Believe rows again, one after the other: each one sees the rows that are believed again before it."""
    made = Reopened()
    stay = {row.fact_id: stays_closed(row, fact) for row in rows}
    statements = {row.fact_id: reopened_statement(row) for row in rows if stay[row.fact_id] is None}
    vectors = await facts.embed_accepted(each.content for each in statements.values())
    for row in rows:
        closed = stay[row.fact_id]
        if closed is None and len(made.changes) == REOPENED_MAX:
            closed = StillClosed(fact_id=row.fact_id, why="too_many")
        if closed is None:
            statement = statements[row.fact_id]
            neighbours = await other_neighbours(statement, vectors.get(statement.content), (fact, row), facts)
            found = reopen_row(row, neighbours, facts.stamp, facts.policy, forgotten=fact)
            if isinstance(found, Transition):
                made.changes.extend(facts.change([found], cause, {}))
                continue
            closed = found
        made.still_closed.append(closed)
    return made


async def _handed_on(rows: Sequence[StoredFact], fact: StoredFact, facts: FactChanger, cause: FactCause) -> Reopened:
    """Give rows to the fact that is believed instead of the forgotten one, if there is such a fact."""
    made = Reopened()
    successor = await _successor(fact, facts)
    for row in rows:
        closed = stays_closed(row, fact)
        if closed is None:
            other = fact.superseded_by if successor is None else successor.fact_id
            closed = StillClosed(fact_id=row.fact_id, why="replaced", other_fact_id=other)
            if successor is not None:
                moved = hand_row_on(row, facts.stamp, forgotten=fact, successor=successor)
                made.changes.extend(facts.change([moved], cause, {}))
        made.still_closed.append(closed)
    return made


async def _successor(fact: StoredFact, facts: FactChanger) -> StoredFact | None:
    """Return the readable fact at the end of the chain of replacements."""
    seen = {fact.fact_id}
    while (next_id := fact.superseded_by) is not None and next_id not in seen:
        seen.add(next_id)
        found = (await facts.overlay.by_ids([next_id])).get(next_id)
        if found is None or found.state in READABLE:
            return found
        fact = found
    return None

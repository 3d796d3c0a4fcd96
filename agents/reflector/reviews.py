"""Application of a `facts.approve` or `facts.reject` command to facts. The functions write nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from ...memory.facts.conflict import Neighbours
from ...memory.facts.proposals import ProposalOutcome
from ...memory.facts.review import approve_fact, reject_fact
from ...memory.facts.statements import statement_from_fact
from ...memory.facts.transitions import REVIEWED
from ...schemas.commands import Command, FactReview, ResultError
from ...schemas.facts import FactCause, StoredFact
from .fact_changes import FactChange, FactChanger, changed_ids


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The outcome of a review: changes with a result, or the reason for its refusal."""

    changes: tuple[FactChange, ...]
    result: dict[str, JsonValue]
    error: ResultError | None = None


async def review(command: Command, args: FactReview, *, facts: FactChanger) -> Reviewed:
    """Apply a person's decision about one fact of the command's owner."""
    fact = (await facts.overlay.by_ids([args.fact_id])).get(args.fact_id)
    if fact is None:
        return _refused("unknown", f"there is no fact {args.fact_id} of this owner")
    if command.kind == "facts.reject":
        settled = reject_fact(fact, facts.stamp, why=args.reason)
    else:
        settled = await _approved(fact, args, facts)
    if settled.verdict != "applied":
        return _refused(settled.verdict, f"fact {args.fact_id}: {settled.reason}")
    cause = FactCause(command_id=command.command_id, issued_by=command.issued_by)
    vectors = await facts.embed([fact.content]) if settled.transitions else {}
    changes = facts.change(settled.transitions, cause, vectors)
    state = next((each.fact.state for each in reversed(changes) if each.fact.fact_id == fact.fact_id), fact.state)
    return Reviewed(changes, {"fact_id": fact.fact_id, "state": state, "changed_fact_ids": [*changed_ids(changes)]})


async def _approved(fact: StoredFact, args: FactReview, facts: FactChanger) -> ProposalOutcome:
    neighbours, known = Neighbours(), None
    if fact.state in REVIEWED:
        statement = statement_from_fact(fact)
        vectors = await facts.embed([fact.content])
        equal = await facts.overlay.equal(statement)
        if equal is not None and equal.fact_id == fact.fact_id:
            equal = None
        near = await facts.near(statement, vectors[fact.content])
        neighbours = Neighbours(equal=equal, near=tuple(each for each in near if each.fact.fact_id != fact.fact_id))
        if fact.waits_for is not None:
            known = (await facts.overlay.by_ids([fact.waits_for])).get(fact.waits_for)
    return approve_fact(
        fact, known=known, neighbours=neighbours, stamp=facts.stamp, policy=facts.policy, why=args.reason
    )


def _refused(code: str, message: str) -> Reviewed:
    return Reviewed((), {}, ResultError(code=code, message=message))

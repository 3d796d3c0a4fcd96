"""The order of trust: user, then assistant, then tool. What is less trusted never touches what is more trusted.

A statement never closes, corrects, rewords or redates a fact that is more trusted, and never makes it late. It becomes
pending, or a fact of its own beside it. `keep_trust_order` holds this for every decision of the conflict pipeline, and
`outranks` for what proposals ask for. The other way round, nothing of less trust holds up a statement: `heed_trust`
takes it from the pipeline's sight, or names the pending fact that the statement confirms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ...schemas.facts import StoredFact, Trust
from .relations import Relation

if TYPE_CHECKING:
    from .conflict import Resolution
    from .neighbour_relations import NeighbourRelation

TRUST: tuple[Trust, ...] = ("tool", "assistant", "user")
"""The lowest first."""


class Trusted(Protocol):
    """A fact or a statement."""

    @property
    def trust(self) -> Trust: ...


def outranks(one: Trusted, other: Trusted) -> bool:
    """Whether `one` is more trusted than `other`."""
    return TRUST.index(one.trust) > TRUST.index(other.trust)


def is_confirmed(known: StoredFact, statement: Trusted) -> bool:
    """Whether a statement that says the same makes this fact believed: it is pending, and less trusted."""
    return known.state == "pending" and outranks(statement, known)


def heed_trust(
    statement: Trusted, weighed: tuple[NeighbourRelation, ...], equal: StoredFact | None
) -> tuple[tuple[NeighbourRelation, ...], StoredFact | None, StoredFact | None]:
    """Return the neighbours that the pipeline may look at, the equal fact, and the pending fact that is confirmed.

    Of less trusted facts remain those that the statement closes, and active ones that it repeats or extends. One that
    says more than the statement is not lifted by it, and one that a model would have to weigh holds up nothing.
    """
    confirmed = equal if equal is not None and is_confirmed(equal, statement) else None
    kept: list[NeighbourRelation] = []
    for each in weighed:
        if confirmed is not None and each.fact.fact_id == confirmed.fact_id:
            continue
        if not outranks(statement, each.fact) or each.verdict == "supersede":
            kept.append(each)
        elif each.relation is Relation.SAME:
            if each.fact.state == "active":
                kept.append(each)
            elif confirmed is None and equal is None:
                confirmed = each.fact
        elif each.verdict == "updated" and each.fact.state == "active":
            kept.append(each)
    return tuple(kept), (None if equal is confirmed else equal), confirmed


def keep_trust_order(found: Resolution, statement: Trusted) -> Resolution:
    """Return what is left of a decision when no more trusted fact may be closed or reworded by it."""
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


_WAITS = "it comes from a less trusted source than what it would change"

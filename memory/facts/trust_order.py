"""The order of trust: user, then assistant, then tool. A less trusted statement never changes a more trusted fact.

It never closes, corrects or rewords that fact, never changes its dates, and never makes it late. It becomes pending, or
a separate fact. `keep_trust_order` enforces this for every decision of the conflict pipeline; proposals use `outranks`.
In the other direction, a less trusted fact never delays a statement: `heed_trust` hides it from the pipeline, or
returns the pending fact that the statement confirms.
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
"""Trust levels, lowest first."""


class Trusted(Protocol):
    """A fact or a statement."""

    @property
    def trust(self) -> Trust: ...


def outranks(one: Trusted, other: Trusted) -> bool:
    """Return whether `one` is more trusted than `other`."""
    return TRUST.index(one.trust) > TRUST.index(other.trust)


def is_confirmed(known: StoredFact, statement: Trusted) -> bool:
    """Return whether a statement of the same makes this fact believed: the fact is pending and less trusted."""
    return known.state == "pending" and outranks(statement, known)


def heed_trust(
    statement: Trusted, weighed: tuple[NeighbourRelation, ...], equal: StoredFact | None
) -> tuple[tuple[NeighbourRelation, ...], StoredFact | None, StoredFact | None]:
    """Return the neighbours that the pipeline may look at, the equal fact, and the pending fact that is confirmed.

    Two kinds of less trusted neighbours remain: facts that the statement closes, and active facts that it repeats or
    extends. The statement does not raise the trust of a fact that says more, and it does not wait for a fact that a
    model would have to weigh.
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
    """Return the decision without its changes to more trusted facts: it must not close or reword them."""
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


_WAITS = "its source is less trusted than the fact that it would change"

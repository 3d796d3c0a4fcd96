"""What the zone and the texts together make of a known fact beside a new statement: the table of memory-model §6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...schemas.facts import StoredFact, Zone
from ..language.locales import locale
from ..language.parsing import read
from ..policies import ConflictPolicy
from .relations import Relation, relate
from .similarity import NearFact, similarity_of, zone_of
from .statements import Statement

Verdict = Literal["supersede", "reinforce", "updated", "admit", "pending"]

_WHEREVER: Mapping[Relation, Verdict] = {
    Relation.SAME: "reinforce",
    Relation.LESS: "reinforce",
    Relation.MORE: "updated",
    Relation.DENIED: "supersede",
    Relation.VALUE: "supersede",
    Relation.OTHER: "supersede",
    Relation.CORRECTED: "supersede",
    Relation.BESIDE: "admit",
    Relation.APART: "admit",
    Relation.GUESSED: "pending",
    Relation.REORDERED: "pending",
}
"""Where the texts tell, the zone adds nothing: `zone_of` has put them where they belong."""
TABLE: Mapping[Zone, Mapping[Relation, Verdict]] = {
    "HOT": {**_WHEREVER, Relation.DIFFERS: "pending", Relation.UNCLEAR: "reinforce"},
    "NEAR-DUP": {**_WHEREVER, Relation.DIFFERS: "pending", Relation.UNCLEAR: "reinforce"},
    "CONFLICT-CHECK": {**_WHEREVER, Relation.DIFFERS: "pending", Relation.UNCLEAR: "pending"},
    "COLD": {**_WHEREVER, Relation.DIFFERS: "admit", Relation.UNCLEAR: "admit"},
}
"""memory-model §6, the table of outcomes, its columns told apart by what the texts say. Where each of two texts says
what the other does not, nearness alone merges nothing: a wrong merge loses a fact, a pending one only waits."""

_CORRECTABLE = (Relation.BESIDE, Relation.DIFFERS, Relation.UNCLEAR, Relation.REORDERED)
"""What a statement that corrects something may correct, though the two could hold beside each other."""
_BY_MARKER = (Relation.DENIED, Relation.GUESSED)
_BY_ZONE = (Relation.DIFFERS, Relation.UNCLEAR)


@dataclass(frozen=True, slots=True)
class NeighbourRelation:
    """A neighbour, and what the table makes of it."""

    fact: StoredFact
    relation: Relation
    zone: Zone
    similarity: float | None

    @property
    def verdict(self) -> Verdict:
        return TABLE[self.zone][self.relation]

    @property
    def stage(self) -> str:
        """The stage of the pipeline that knew."""
        if self.relation in _BY_MARKER:
            return "markers"
        return "zones" if self.relation in _BY_ZONE else "predicates"


def relate_neighbour(
    statement: Statement, near: tuple[NearFact, ...], policy: ConflictPolicy
) -> tuple[NeighbourRelation, ...]:
    """The neighbours by zone and relation, the nearest first."""
    pack = locale(policy.locale)
    claims = read(statement.content, pack)
    weighed = []
    for each in near:
        related = relate(read(each.fact.content, pack), claims, pack)
        similarity = similarity_of(statement.content, each, policy)
        zone = zone_of(similarity, related, policy)
        relation = related.relation
        if statement.is_correction and relation in _CORRECTABLE and related.shares and zone != "COLD":
            relation = Relation.CORRECTED
        weighed.append(NeighbourRelation(each.fact, relation, zone, similarity))
    return tuple(sorted(weighed, key=lambda each: -1.0 if each.similarity is None else each.similarity, reverse=True))

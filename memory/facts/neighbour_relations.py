"""Compare a new statement with its neighbours, the known facts that are similar to it.

The similarity zone and the relation of the two texts give a verdict. The table is in docs/explanation/conflicts.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...schemas.facts import StoredFact, Zone
from ..language.claims import Claim
from ..language.identification import pack_of
from ..language.locales import Locale
from ..language.locales.undetermined import UNDETERMINED
from ..language.parsing import read
from ..language.text import own_statement
from ..policies import MemoryPolicy
from .relations import ClaimRelation, Relation, relate
from .similarity import NearFact, similarity_of, zone_of
from .slot_predicates import typed_by_words
from .slot_relations import TypedText, relate_slots, share_head
from .statements import Statement
from .trust_order import outranks
from .unread_relations import relate_unread

Verdict = Literal["supersede", "reinforce", "updated", "admit", "pending"]

_BY_TEXT_ALONE: Mapping[Relation, Verdict] = {
    Relation.SAME: "reinforce",
    Relation.LESS: "reinforce",
    Relation.MORE: "updated",
    Relation.DENIED: "supersede",
    Relation.VALUE: "supersede",
    Relation.OTHER: "supersede",
    Relation.CORRECTED: "supersede",
    Relation.REPLACED: "supersede",
    Relation.BESIDE: "admit",
    Relation.APART: "admit",
    Relation.GUESSED: "pending",
    Relation.REORDERED: "pending",
    Relation.NAME: "pending",
    Relation.TOUCHED: "pending",
}
"""Verdicts that are the same in every zone, because the texts alone decide."""
TABLE: Mapping[Zone, Mapping[Relation, Verdict]] = {
    "HOT": {**_BY_TEXT_ALONE, Relation.DIFFERS: "pending", Relation.UNCLEAR: "reinforce"},
    "NEAR-DUP": {**_BY_TEXT_ALONE, Relation.DIFFERS: "pending", Relation.UNCLEAR: "reinforce"},
    "CONFLICT-CHECK": {**_BY_TEXT_ALONE, Relation.DIFFERS: "pending", Relation.UNCLEAR: "pending"},
    "COLD": {**_BY_TEXT_ALONE, Relation.DIFFERS: "admit", Relation.UNCLEAR: "admit"},
}
"""Verdict by zone and relation.

Two texts with the relation DIFFERS are never merged, however similar they are: a wrong merge loses a fact, and a
pending fact only waits.
"""

_CORRECTABLE = (
    Relation.BESIDE,
    Relation.DIFFERS,
    Relation.UNCLEAR,
    Relation.REORDERED,
    Relation.NAME,
    Relation.TOUCHED,
)
"""Relations in which a correction replaces a known fact, although both statements could be true together."""
_APART = (Relation.APART, Relation.BESIDE)
_BY_MARKER = (Relation.DENIED, Relation.GUESSED)
_BY_ZONE = (Relation.DIFFERS, Relation.UNCLEAR)


@dataclass(frozen=True, slots=True)
class NeighbourRelation:
    """A known fact with its relation to the new statement, its zone and its similarity."""

    fact: StoredFact
    relation: Relation
    zone: Zone
    similarity: float | None
    by_slot: bool = False
    """True when the slots and values decided the relation."""

    @property
    def verdict(self) -> Verdict:
        """The table's verdict for this zone and relation."""
        return TABLE[self.zone][self.relation]

    @property
    def stage(self) -> str:
        """The kind of rule that decided, for reports: `slots`, `markers`, `zones` or `predicates`."""
        if self.by_slot:
            return "slots"
        if self.relation in _BY_MARKER:
            return "markers"
        return "zones" if self.relation in _BY_ZONE else "predicates"


def relate_neighbour(
    statement: Statement, near: tuple[NearFact, ...], policy: MemoryPolicy
) -> tuple[NeighbourRelation, ...]:
    """Return the zone and the relation of each known fact in `near`, most similar first."""
    said = own_statement(statement.content, statement.subject)
    pack = pack_of(said, policy.conflict.locale)
    new = TypedText(statement.typed, _claims(said, pack))
    weighed = []
    for each in near:
        content = own_statement(each.fact.content, each.fact.subject)
        by_text = _relate(content, said, pack, policy)
        known = pack_of(content, policy.conflict.locale)
        old = TypedText(each.fact.typed, _claims(content, known))
        by_slot = None
        if any(policy.slot(one.typed.slot) is not None for one in (old, new)):
            old, typed = _typed(old, content, known, policy), _typed(new, said, pack, policy)
            by_slot = relate_slots(old, typed, by_text, pack, policy.slot)
        related = by_slot or by_text
        similarity = similarity_of(statement.content, each, policy.conflict)
        zone = zone_of(similarity, related, policy.conflict)
        relation = related.relation
        if statement.is_correction and relation in _CORRECTABLE and related.shares and zone != "COLD":
            relation = Relation.CORRECTED
        weighed.append(NeighbourRelation(each.fact, relation, zone, similarity, by_slot is not None))
    ranked = sorted(weighed, key=lambda each: -1.0 if each.similarity is None else each.similarity, reverse=True)
    return _with_one_replaced(statement, ranked, pack)


def _typed(text: TypedText, said: str, pack: Locale, policy: MemoryPolicy) -> TypedText:
    """Return the text with the slot that its words name, when it has no known slot."""
    if policy.slot(text.typed.slot) is not None:
        return text
    return replace(text, typed=typed_by_words(said, pack, policy.slot))


def _claims(content: str, pack: Locale) -> Sequence[Claim]:
    return () if pack is UNDETERMINED else read(content, pack)


def _with_one_replaced(
    statement: Statement, ranked: Sequence[NeighbourRelation], pack: Locale
) -> tuple[NeighbourRelation, ...]:
    """Choose the one fact that a statement such as `prefers light mode now` replaces.

    In a slot with many values, it replaces the nearest active fact of its kind. If there is no such fact, it waits for
    a judgement about the nearest fact of the slot.
    """
    replaced = [each for each in ranked if each.relation is Relation.REPLACED]
    if not replaced:
        return tuple(ranked)
    value = statement.typed.value or ""
    alike = [each for each in replaced if share_head(each.fact.value or "", value, pack)]
    chosen, relation = (alike[0], Relation.REPLACED) if alike else (replaced[0], Relation.TOUCHED)
    return tuple(
        replace(each, relation=relation if each is chosen else Relation.BESIDE) if each in replaced else each
        for each in ranked
    )


def _relate(old: str, new: str, pack: Locale, policy: MemoryPolicy) -> ClaimRelation:
    """Relate two texts. Each text is read with the locale pack of its own language; `pack` is the pack of `new`."""
    known = pack_of(old, policy.conflict.locale)
    if UNDETERMINED in (known, pack):
        return relate_unread(old, new)
    mine, theirs = read(old, known), read(new, pack)
    related = relate(mine, theirs, pack)
    if known is not pack and related.relation in _APART and _differ_in_polarity(mine, theirs):
        return replace(related, relation=Relation.UNCLEAR)
    return related


def _differ_in_polarity(old: Sequence[Claim], new: Sequence[Claim]) -> bool:
    """Return whether one text denies a predicate that the other text affirms.

    Only the predicates are compared, because the two texts are in different languages: `Drinks coffee` and `Trinkt
    keinen Kaffee mehr`.
    """
    said = {(claim.about, claim.predicate, claim.denied) for claim in old if claim.predicate}
    return any(claim.predicate and (claim.about, claim.predicate, not claim.denied) in said for claim in new)


def is_confirmed(known: StoredFact, statement: Statement) -> bool:
    """Return whether a repetition by `statement` makes the fact active: the fact is pending and believed less."""
    return known.state == "pending" and _believed_more(statement, known)


def _believed_more(statement: Statement, known: StoredFact) -> bool:
    """Return whether a statement is more trusted than a row, or confirms a row that is not confirmed."""
    return outranks(statement, known) or (known.is_unconfirmed and not statement.unconfirmed)


def heed_trust(
    statement: Statement, weighed: tuple[NeighbourRelation, ...], equal: StoredFact | None
) -> tuple[tuple[NeighbourRelation, ...], StoredFact | None, StoredFact | None]:
    """Return the neighbours for the pipeline, the equal fact, and the pending fact that the statement confirms.

    A less trusted neighbour remains only when the statement closes it, or when the neighbour is active and the
    statement repeats or extends it. The others are hidden for two reasons. The statement must not raise the trust of
    details that it does not contain. The statement must also not wait until a model compares it with a less trusted
    fact.
    """
    confirmed = equal if equal is not None and is_confirmed(equal, statement) else None
    kept: list[NeighbourRelation] = []
    for each in weighed:
        if confirmed is not None and each.fact.fact_id == confirmed.fact_id:
            continue
        if not _believed_more(statement, each.fact) or each.verdict == "supersede":
            kept.append(each)
        elif each.relation is Relation.SAME:
            if each.fact.state == "active":
                kept.append(each)
            elif confirmed is None and equal is None:
                confirmed = each.fact
        elif each.verdict == "updated" and each.fact.state == "active":
            kept.append(each)
    return tuple(kept), (None if equal is confirmed else equal), confirmed

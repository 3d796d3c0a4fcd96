"""Slots of statements without a slot: edits, imports and rows of earlier versions; pure.

The locale pack reads the predicate of the text. `PREDICATE_SLOTS` has the predicates that mean exactly a slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ...schemas.slots import UNTYPED, VALUE_MAX, TypedValue
from ..language.claims import Claim
from ..language.locales import Locale
from ..language.locales.undetermined import UNDETERMINED
from ..language.parsing import read
from ..language.tokenizer import content, tokens
from ..policies import SlotPolicy

PREDICATE_SLOTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "address": "address",
        "age": "age",
        "allergic_to": "allergy",
        "commutes_by": "commute",
        "diet": "diet",
        "grew_up_in": "origin",
        "earns": "income",
        "intolerant_of": "allergy",
        "likes": "likes",
        "lives_in": "residence",
        "name": "name",
        "native_language": "native_language",
        "partner_is": "spouse",
        "reports_to": "manager",
        "speaks": "language",
        "works_as": "job",
        "works_at": "employer",
        "works_hours": "work_hours",
    }
)


def typed_by_words(said: str, pack: Locale, slot_of: Callable[[str], SlotPolicy | None]) -> TypedValue:
    """Return the slot and the value of a text; UNTYPED unless the text is one certain claim with a known predicate.

    The value is the end of the text that has exactly the words of the claim's object.
    """
    claims = () if pack is UNDETERMINED else read(said, pack)
    if len(claims) != 1 or not _is_plain(claims[0]):
        return UNTYPED
    claim = claims[0]
    slot = PREDICATE_SLOTS.get(claim.predicate or "", "")
    value = _value(said, claim, pack)
    if value is None or slot_of(slot) is None:
        return UNTYPED
    return TypedValue(slot, value, denied=claim.denied)


def _is_plain(claim: Claim) -> bool:
    """Return whether a slot and a value can hold all that the claim says."""
    limited = claim.hedged or claim.past or claim.former or claim.about or claim.another or claim.switched
    return not limited and len(claim.object) == 1


def _value(said: str, claim: Claim, pack: Locale) -> str | None:
    parts = said.split()
    for place in range(len(parts) - 1, -1, -1):
        end = " ".join(parts[place:]).strip(" .,;:!?")
        # a word in front, because the first word of a text is no name
        if end and len(end) <= VALUE_MAX and content(tokens(f"x {end}", pack)[1:], pack) == claim.said:
            return end
    return None

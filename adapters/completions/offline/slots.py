"""Slots and values of the offline model's statements, read from their texts in the third person."""
# ruff: noqa: E501 - a row of the table stays on one line

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ....schemas.slots import UNTYPED, VALUE_MAX, TypedValue
from .values import is_condition, is_medicine, is_pets, last_word
from .words import CHILDREN


def _always(_value: str) -> bool:
    return True


_TABLE: Final[tuple[tuple[str, str, Callable[[str], bool]], ...]] = (
    # pattern with the value as group v and the qualifier as group q, slot, check of the value
    (r"name is (?P<v>.+)", "name", _always),
    (r"is (?P<v>\S+) years old", "age", _always),
    (r"birthday is (?:on |in )?(?P<v>.+)", "birth_date", _always),
    (r"was born in (?P<v>[0-9]{4})", "birth_date", _always),
    (r"comes from (?P<v>.+)", "origin", _always),
    (r"lives (?:in|on|near|at) (?P<v>.+)", "residence", _always),
    (r"lives with (?P<v>.+)", "household", _always),
    (r"works (?:at|for) (?P<v>.+)", "employer", _always),
    (r"works as (?P<v>.+)", "job", _always),
    (r"works in (?P<v>.+)", "industry", _always),
    (r"is married to (?P<v>.+)", "spouse", _always),
    (r"is (?:happily )?(?P<v>single|married|engaged|divorced|widowed|separated)", "marital_status", _always),
    (r"has an? (?P<kin>[\w-]+(?: [\w-]+)?) named (?P<v>.+)", "", _always),
    (r"(?:has|owns) (?P<v>.+)", "pet", is_pets),
    (r"(?:has|is|has been diagnosed with) (?P<v>.+)", "condition", is_condition),
    (r"is (?!not )(?:\w+ )?allergic to (?P<v>.+)", "allergy", _always),
    (r"takes (?P<v>.+)", "medication", is_medicine),
    (r"is (?P<v>vegetarian|vegan|pescatarian)", "diet", _always),
    (r"(?:likes|loves|enjoys|adores) (?P<v>.+)", "likes", _always),
    (r"(?:dislikes|hates) (?P<v>.+)", "dislikes", _always),
    (r"prefers (?P<v>.+)", "prefers", _always),
    (r"favou?rite (?P<q>[\w -]{2,30}?) (?:is|are) (?P<v>.+)", "favourite", _always),
    (r"speaks (?:some )?(?P<v>.+?)(?: natively)?", "language", _always),
    (r"(?:studies|is learning|is enrolled in|goes to) (?P<v>.+)", "education", _always),
    (r"(?:plays|has taken up) (?P<v>.+)", "hobby", _always),
    (r"drives (?P<v>an? .+)", "vehicle", _always),
    (r"owns (?P<v>.+)", "possession", _always),
    (r"uses (?P<v>.+)", "tool", _always),
    (r"goal is (?:to )?(?P<v>.+)|wants to (?P<v2>.+)", "goal", _always),
)
_FORMS: Final = tuple((re.compile(pattern, re.IGNORECASE), slot, accept) for pattern, slot, accept in _TABLE)
_ENDED: Final = re.compile(r"no longer (?P<rest>.+)", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"^(?:the|an?) (?=\S)", re.IGNORECASE)
_KIN: Final = {
    **dict.fromkeys(("husband", "wife", "spouse", "partner", "boyfriend", "girlfriend", "fiance", "fiancee", "fiancé", "fiancée"), "spouse"),
    **dict.fromkeys(("daughter", "son", *CHILDREN), "child"),
    **dict.fromkeys(("mother", "mum", "mom", "mommy", "mummy", "father", "dad", "daddy"), "parent"),
    **dict.fromkeys(("brother", "bro", "sister", "sibling", "twin"), "sibling"),
    **dict.fromkeys(("aunt", "auntie", "uncle", "cousin", "niece", "nephew", "grandmother", "grandma", "granny", "gran", "nan", "nana",
                     "grandfather", "grandad", "granddad", "grandpa", "grandson", "granddaughter", "grandchild"), "relative"),
    **dict.fromkeys(("boss", "manager"), "manager"),
    **dict.fromkeys(("colleague", "co-worker", "coworker"), "colleague"),
    "friend": "friend",
}  # fmt: skip


def typed(content: str) -> TypedValue:
    """Return slot, value, denial and qualifier of a statement; UNTYPED if no row of the table reads it."""
    text = " ".join(content.split()).strip(" .!")
    ended = _ENDED.fullmatch(text)
    if ended is not None:
        text = ended["rest"]
    for pattern, named, accept in _FORMS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        groups = match.groupdict()
        value = groups["v"] or groups.get("v2") or ""
        slot = named or _slot_of_kin(groups["kin"])
        value = value if named == "name" else _ARTICLE.sub("", value)
        if slot and value and len(value) <= VALUE_MAX and accept(value):
            return TypedValue(slot, value, denied=ended is not None, qualifier=groups.get("q"))
    return UNTYPED


def _slot_of_kin(kin: str) -> str:
    if is_pets(kin):
        return "pet"
    return _KIN.get(last_word(kin).lower(), "")

"""Attribute and value of a statement in the third person, and the cardinality of the attribute.

The offline rules write statements in the third person. Working entries, episodes and facts repeat these statements. One
table reads the attribute of all of them, so that "Works at Stripe" is recognised as the replacement of "Works at
Google".
"""
# ruff: noqa: E501 - a row of the table stays on one line

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from .words import NUMBERS

Category = Literal[
    "identity",
    "profession",
    "preference",
    "belief",
    "relationship",
    "attribute",
    "pattern",
    "knowledge",
    "goal",
    "event",
]


class Cardinality(Enum):
    ONE = "one value at a time: a new value replaces the old one"
    ON_CHANGE = "a new value replaces the old one if the text states a change or a correction"
    MANY = "several values at a time: only a correction replaces one"


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """An attribute with its value, both normalised for comparison."""

    attribute: str
    value: str
    room: Cardinality
    category: Category


_TABLE: Final[tuple[tuple[str, str, Cardinality, Category], ...]] = (
    # pattern with the value as group v, attribute ({k} = group k), room, category
    (r"name is (?P<v>.+)|is (?:called|named) (?P<v2>.+)", "name", Cardinality.ONE, "identity"),
    (r"is (?P<v>[0-9]{1,3}|[a-z-]+(?:ty|teen)(?:-[a-z]+)?) years old", "age", Cardinality.ONE, "identity"),
    (r"birthday is (?:on )?(?P<v>.+)", "birthday", Cardinality.ON_CHANGE, "identity"),
    (r"was born in (?P<v>.+)", "birthplace", Cardinality.ON_CHANGE, "identity"),
    (r"comes from (?P<v>.+)|is from (?P<v2>.+)", "origin", Cardinality.ON_CHANGE, "identity"),
    (r"(?:works (?:at|for|with)|is (?:employed|working) (?:at|by|for)|joined) (?P<v>.+)", "employer", Cardinality.ONE, "profession"),
    (r"works as (?:an? )?(?P<v>.+)", "occupation", Cardinality.ON_CHANGE, "profession"),
    (r"works in (?P<v>.+)", "field", Cardinality.ON_CHANGE, "profession"),
    (r"(?:lives|is living|resides) (?:in|on|near|at) (?P<v>.+)|(?:moved|relocated) to (?P<v2>.+)|is based in (?P<v3>.+)",
     "home", Cardinality.ONE, "attribute"),
    (r"lives with (?P<v>.+)", "household", Cardinality.ON_CHANGE, "attribute"),
    (r"favou?rite (?P<k>[\w\s-]{2,30}?) (?:is|are) (?P<v>.+)", "favourite {k}", Cardinality.ONE, "preference"),
    (r"prefers (?P<v>.+)", "prefers", Cardinality.MANY, "preference"),
    (r"is (?P<v>vegetarian|vegan|pescatarian|teetotal)", "diet", Cardinality.ONE, "preference"),
    (r"(?P<v>likes|loves|enjoys|adores|dislikes|hates) (?P<k>.+)", "taste {k}", Cardinality.ONE, "preference"),
    (r"is (?P<v>married|engaged|divorced|widowed|separated)(?: to .+)?", "marital", Cardinality.ONE, "relationship"),
    (r"has an? (?:[\w-]+ )?(?P<k>[\w-]+) named (?P<v>.+)", "has a {k}", Cardinality.MANY, "relationship"),
    (rf"has (?P<v>an?|{NUMBERS}) (?P<k>[\w-]+(?: pigs)?)", "has {k}", Cardinality.ONE, "relationship"),
    (r"has (?P<v>.+)", "has", Cardinality.MANY, "attribute"),
    (r"studies (?P<v>.+)", "studies", Cardinality.ON_CHANGE, "attribute"),
    (r"is a (?P<v>.*student.*)", "student", Cardinality.ON_CHANGE, "attribute"),
    (r"goes to (?P<v>.+)", "school", Cardinality.ON_CHANGE, "attribute"),
    (r"speaks (?P<v>.+)", "speaks", Cardinality.MANY, "knowledge"),
    (r"(?:has a degree in|graduated from|majored in) (?P<v>.+)", "education", Cardinality.MANY, "knowledge"),
    (r"is allergic to (?P<v>.+)", "allergy", Cardinality.MANY, "attribute"),
    (r"drives (?P<v>.+)", "car", Cardinality.ON_CHANGE, "attribute"),
    (r"(?:plays|wears|collects|practises|practices|is learning|is taking|is doing) (?P<v>.+)", "does", Cardinality.MANY, "attribute"),
    (r"(?:always|usually|often|never|rarely|normally|typically) (?P<v>.+)", "habit", Cardinality.MANY, "pattern"),
    (r"(?:runs|owns|teaches) (?P<v>.+)", "business", Cardinality.ON_CHANGE, "profession"),
    (r"is (?P<v>retired|self-employed|unemployed)", "employment", Cardinality.ON_CHANGE, "profession"),
)  # fmt: skip
_FORMS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), attribute, room, category) for pattern, attribute, room, category in _TABLE
)
_CHILDREN: Final = frozenset({"kid", "kids", "child", "children"})
_ARTICLE: Final = re.compile(r"^(?:the|an?|their|his|her) ")
_LIKING: Final = {"likes": "+", "loves": "+", "enjoys": "+", "adores": "+", "dislikes": "-", "hates": "-"}


def attribute_of(content: str) -> AttributeValue | None:
    """Return the attribute and value of `content`. None: the content has no known attribute; then only equal texts are
    the same statement."""
    text = " ".join(content.split()).strip(" .!")
    for pattern, attribute, room, category in _FORMS:
        if match := pattern.fullmatch(text):
            groups = match.groupdict()
            value = next(value for name, value in groups.items() if name[0] == "v" and value is not None)
            key = _folded(groups.get("k") or "")
            return AttributeValue(
                attribute=attribute.format(k="children" if key in _CHILDREN else key),
                value=_LIKING.get(value.lower(), _folded(value)) if attribute.startswith("taste") else _folded(value),
                room=room,
                category=category,
            )
    return None


def _folded(value: str) -> str:
    return _ARTICLE.sub("", " ".join(value.casefold().split()))


def canonical(text: str) -> str:
    """Normalise a statement for comparison: case, white space, and the full stop at its end."""
    return " ".join(text.casefold().split()).strip(" .!")


def ends_statement(what: str, content: str) -> bool:
    """Return whether `what` is the statement `content` apart from the verb's ending: both "works at Google" and "work
    at Google" match "Works at Google"."""
    one, other = canonical(what).split(), canonical(content).split()
    return len(one) == len(other) and one[1:] == other[1:] and one[0].rstrip("s") == other[0].rstrip("s")

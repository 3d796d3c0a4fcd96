"""Attribute, slot and value of a statement in the third person.

The offline rules write statements in the third person. Working entries, episodes and facts repeat these statements. One
table reads all of them, so that "Works at Stripe" is recognised as the replacement of "Works at Google", and each
observation has a slot.
"""
# ruff: noqa: E501 - a row of the table stays on one line

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from ....schemas.slots import UNTYPED, VALUE_MAX, TypedValue
from .values import is_condition, is_medicine, is_pets, last_word
from .words import CHILDREN, NUMBERS

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


def _kin(kin: str) -> str:
    return "pet" if is_pets(kin) else _KIN.get(last_word(kin).lower(), "")


def _thing(value: str) -> str:
    return "pet" if is_pets(value) else "condition" if is_condition(value) else ""


def _owned(value: str) -> str:
    return "pet" if is_pets(value) else "possession"


def _if(accept: Callable[[str], object], slot: str) -> Callable[[str], str]:
    return lambda value: slot if accept(value) else ""


_YEAR: Final = re.compile(r"[0-9]{4}")
_ONE_THING: Final = re.compile(r"an? ")
_ONE, _ON_CHANGE, _MANY = Cardinality.ONE, Cardinality.ON_CHANGE, Cardinality.MANY

_TABLE: Final[tuple[tuple[str, str | Callable[[str], str], str, Cardinality, Category], ...]] = (
    # pattern, slot or the function that finds it, attribute ("" has none), room, category. Groups: v the value, q the
    # qualifier, k the kind of a person or an animal, n the attribute's value where it is not v. {v}, {k}: a group. "=":
    # the attribute's value follows.
    (r"name is (?P<v>.+)", "name", "name", _ONE, "identity"),
    (r"is (?:called|named) (?P<v>.+)", "name", "name", _ONE, "identity"),
    (r"is (?P<v>\S+) years old", "age", "age", _ONE, "identity"),
    (r"birthday is (?:on |in )?(?P<v>.+)", "birth_date", "birthday", _ON_CHANGE, "identity"),
    (r"was born in (?P<v>.+)", _if(_YEAR.fullmatch, "birth_date"), "birthplace", _ON_CHANGE, "identity"),
    (r"(?:comes|is) from (?P<v>.+)", "origin", "origin", _ON_CHANGE, "identity"),
    (r"(?:works (?:at|for)|is (?:employed|working) (?:at|by|for)) (?P<v>.+)", "employer", "employer", _ONE, "profession"),
    (r"(?:works with|joined) (?P<v>.+)", "", "employer", _ONE, "profession"),
    (r"works as (?P<v>.+)", "job", "occupation", _ON_CHANGE, "profession"),
    (r"works in (?P<v>.+)", "industry", "field", _ON_CHANGE, "profession"),
    (r"(?:(?:lives|is living|resides) (?:in|on|near|at)|is based in) (?P<v>.+)", "residence", "home", _ONE, "attribute"),
    (r"(?:moved|relocated) to (?P<v>.+)", "", "home", _ONE, "attribute"),
    (r"lives with (?P<v>.+)", "household", "household", _ON_CHANGE, "attribute"),
    (r"favou?rite (?P<q>[\w\s-]{2,30}?) (?:is|are) (?P<v>.+)", "favourite", "favourite {q}", _ONE, "preference"),
    (r"prefers (?P<v>.+)", "prefers", "prefers", _MANY, "preference"),
    (r"is (?P<v>vegetarian|vegan|pescatarian)", "diet", "diet", _ONE, "preference"),
    (r"(?:likes|loves|enjoys|adores) (?P<v>.+)", "likes", "taste {v}=likes", _ONE, "preference"),
    (r"(?:dislikes|hates) (?P<v>.+)", "dislikes", "taste {v}=dislikes", _ONE, "preference"),
    (r"is married to (?P<v>.+)", "spouse", "marital=married", _ONE, "relationship"),
    (r"is (?:happily )?(?P<v>single|married|engaged|divorced|widowed|separated)", "marital_status", "marital", _ONE, "relationship"),
    (r"is (?P<n>engaged|divorced|widowed|separated) (?:to|from) (?P<v>.+)", "", "marital", _ONE, "relationship"),
    (r"has an? (?P<k>[\w-]+(?: [\w-]+)?) named (?P<v>.+)", _kin, "has a {k}", _MANY, "relationship"),
    (rf"has (?P<v>(?P<n>an?|{NUMBERS}) (?P<k>[\w-]+(?: pigs)?))", _thing, "has {k}", _ONE, "relationship"),
    (r"has been diagnosed with (?P<v>.+)", _if(is_condition, "condition"), "has", _MANY, "attribute"),
    (r"has taken up (?P<v>.+)", "hobby", "has", _MANY, "attribute"),
    (r"has (?P<v>.+)", _thing, "has", _MANY, "attribute"),
    (r"takes (?P<v>.+)", _if(is_medicine, "medication"), "", _MANY, "attribute"),
    (r"is (?!not )(?:\w+ )?allergic to (?P<v>.+)", "allergy", "allergy", _MANY, "attribute"),
    (r"studies (?P<v>.+)", "education", "studies", _ON_CHANGE, "attribute"),
    (r"is enrolled in (?P<v>.+)", "education", "", _MANY, "attribute"),
    (r"goes to (?P<v>.+)", "education", "school", _ON_CHANGE, "attribute"),
    (r"speaks (?:some )?(?P<v>.+?)(?: natively)?", "language", "speaks", _MANY, "knowledge"),
    (r"(?:has a degree in|graduated from|majored in) (?P<v>.+)", "", "education", _MANY, "knowledge"),
    (r"drives (?P<v>.+)", _if(_ONE_THING.match, "vehicle"), "car", _ON_CHANGE, "attribute"),
    (r"is learning (?P<v>.+)", "education", "does", _MANY, "attribute"),
    (r"plays (?P<v>.+)", "hobby", "does", _MANY, "attribute"),
    (r"(?:wears|collects|practises|practices|is taking|is doing) (?P<v>.+)", "", "does", _MANY, "attribute"),
    (r"uses (?P<v>.+)", "tool", "", _MANY, "attribute"),
    (r"(?:always|usually|often|never|rarely|normally|typically) (?P<v>.+)", "", "habit", _MANY, "pattern"),
    (r"owns (?P<v>.+)", _owned, "business", _ON_CHANGE, "profession"),
    (r"(?:runs|teaches) (?P<v>.+)", "", "business", _ON_CHANGE, "profession"),
    (r"is (?P<v>retired|self-employed|unemployed)", "", "employment", _ON_CHANGE, "profession"),
    (r"is a (?P<v>.*student.*)", "", "student", _ON_CHANGE, "attribute"),
    (r"is (?P<v>.+)", _if(is_condition, "condition"), "", _MANY, "attribute"),
    (r"(?:goal is (?:to )?|wants to )(?P<v>.+)", "goal", "", _MANY, "goal"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Row:
    form: re.Pattern[str]
    slot_of: Callable[[str], str]
    attribute: str
    value: str
    """The value of the attribute, if every statement of this form has the same."""
    room: Cardinality
    category: Category


def _row(pattern: str, slot: str | Callable[[str], str], attribute: str, room: Cardinality, category: Category) -> _Row:
    named, _, value = attribute.partition("=")
    found = (lambda _value: slot) if isinstance(slot, str) else slot
    return _Row(re.compile(pattern, re.IGNORECASE), found, named, value, room, category)


_ROWS: Final = tuple(_row(*each) for each in _TABLE)
_CHILDREN: Final = frozenset({"kid", "kids", "child", "children"})
_THEIRS: Final = re.compile(r"^(?:the|an?|their|his|her) ")
_ARTICLE: Final = re.compile(r"^(?:the|an?) (?=\S)", re.IGNORECASE)
_ENDED: Final = re.compile(r"no longer (?P<rest>.+)", re.IGNORECASE)


def attribute_of(content: str) -> AttributeValue | None:
    """Return the attribute and value of `content`. None: the content has no known attribute; then only equal texts are
    the same statement."""
    row, groups = _read(_bare(content))
    if row is None or not row.attribute:
        return None
    folded = {name: _folded(value) for name, value in groups.items()}
    kind = last_word(folded.get("k", ""))
    folded["k"] = "children" if kind in _CHILDREN else kind
    value = row.value or folded.get("n") or folded["v"]
    return AttributeValue(row.attribute.format_map(folded), value, row.room, row.category)


def typed(content: str) -> TypedValue:
    """Return slot, value, denial and qualifier of a statement; UNTYPED if no row of the table reads it."""
    text = _bare(content)
    ended = _ENDED.fullmatch(text)
    row, groups = _read(text if ended is None else ended["rest"])
    if row is None:
        return UNTYPED
    kind = groups.get("k", "")
    slot = row.slot_of(kind or groups["v"])
    value = groups["v"] if slot == "name" else _ARTICLE.sub("", groups["v"])
    if row.slot_of is _kin and kind.lower() != slot:
        value = f"{value} ({kind})"
    if not slot or not value or len(value) > VALUE_MAX:
        return UNTYPED
    return TypedValue(slot, value, denied=ended is not None, qualifier=groups.get("q"))


def _read(text: str) -> tuple[_Row | None, Mapping[str, str]]:
    """Return the row that reads a statement, and its groups."""
    for row in _ROWS:
        if match := row.form.fullmatch(text):
            return row, {name: value for name, value in match.groupdict().items() if value is not None}
    return None, {}


def _bare(content: str) -> str:
    return " ".join(content.split()).strip(" .!")


def _folded(value: str) -> str:
    return _THEIRS.sub("", " ".join(value.casefold().split()))


def canonical(text: str) -> str:
    """Normalise a statement for comparison: case, white space, and the full stop at its end."""
    return " ".join(text.casefold().split()).strip(" .!")


def ends_statement(what: str, content: str) -> bool:
    """Return whether `what` is the statement `content` apart from the verb's ending: both "works at Google" and "work
    at Google" match "Works at Google"."""
    one, other = canonical(what).split(), canonical(content).split()
    return len(one) == len(other) and one[1:] == other[1:] and one[0].rstrip("s") == other[0].rstrip("s")

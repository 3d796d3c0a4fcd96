"""Normalisation of an observation's minor fields from the words and numbers that models write.

An unknown value takes the field's default (structured_output.py). The statement is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, get_args

from ...memory.language.text import one_line
from ...schemas.base import QUOTE_MAX
from ...schemas.observations import Category, Durability
from ...schemas.turns import SENSITIVITIES

CATEGORIES: Final[Mapping[str, Category]] = {
    **{name: name for name in get_args(Category)},
    **dict.fromkeys(("name", "age", "personal", "biography", "bio", "demographic", "nationality"), "identity"),
    **dict.fromkeys(
        ("employment", "employer", "job", "work", "career", "occupation", "professional", "workplace", "role"),
        "profession",
    ),
    **dict.fromkeys(
        ("like", "dislike", "interest", "hobby", "hobbies", "taste", "favorite", "favourite", "food", "instruction"),
        "preference",
    ),
    **dict.fromkeys(("opinion", "value", "view", "conviction", "religion"), "belief"),
    **dict.fromkeys(
        ("family", "friend", "social", "relation", "person", "people", "pet", "contact", "partner"), "relationship"
    ),
    **dict.fromkeys(
        ("location", "residence", "home", "possession", "property", "trait", "characteristic", "personality", "health"),
        "attribute",
    ),
    **dict.fromkeys(("habit", "routine", "behavior", "behaviour", "lifestyle"), "pattern"),
    **dict.fromkeys(("fact", "information", "skill", "education", "expertise", "language"), "knowledge"),
    **dict.fromkeys(("plan", "intention", "aspiration", "objective", "project", "wish"), "goal"),
    **dict.fromkeys(("activity", "experience", "appointment", "travel", "meeting", "milestone", "episode"), "event"),
    **dict.fromkeys(("todo", "reminder", "action", "errand", "request"), "task"),
}
"""Category by synonym, in singular and lower case."""
DURABILITIES: Final[Mapping[str, Durability]] = {
    **{name: name for name in get_args(Durability)},
    **dict.fromkeys(("momentary", "temporary", "ephemeral", "short", "shortterm", "moment", "fleeting"), "transient"),
    **dict.fromkeys(("conversation", "chat", "today", "medium", "mediumterm"), "session"),
    **dict.fromkeys(("long", "longterm", "lasting", "stable", "durable", "months", "ongoing", "years"), "persistent"),
    **dict.fromkeys(("forever", "lifelong", "lifetime", "always", "immutable", "static"), "permanent"),
}
IMPORTANCES: Final[Mapping[str, float]] = {
    **dict.fromkeys(("critical", "crucial", "essential", "urgent", "veryhigh", "highest"), 0.9),
    **dict.fromkeys(("high", "important", "significant", "major"), 0.8),
    **dict.fromkeys(("medium", "moderate", "normal", "average", "mid"), 0.5),
    **dict.fromkeys(("low", "minor", "small"), 0.2),
    **dict.fromkeys(("verylow", "trivial", "none", "lowest"), 0.1),
}
SENSITIVITY_WORDS: Final[Mapping[str, str]] = {
    **{name: name for name in SENSITIVITIES},
    **dict.fromkeys(("open", "none"), "public"),
    **dict.fromkeys(("normal", "low", "medium", "default", "standard"), "internal"),
    **dict.fromkeys(
        ("private", "personal", "confidential", "sensitive", "restricted", "high", "strict", "topsecret"), "secret"
    ),
}
"""Sensitivity by synonym. A word for more protection than `internal` means `secret`."""
OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text", "statement", "observation", "fact", "memory", "description"), "content"),
    **dict.fromkeys(("quote", "source_quote", "evidence_quote", "verbatim", "source_text", "citation"), "evidence"),
    **dict.fromkeys(("type", "kind"), "category"),
    "turn_id": "turn",
    "correction": "is_correction",
    **dict.fromkeys(("due_date", "due"), "due_at"),
    "valid_until": "valid_to",
}
"""Alternative field names that models use. Other spellings of a field's own name need no entry here."""
USUAL_IMPORTANCE: Final[Mapping[Category, float]] = {
    **dict.fromkeys(("identity", "profession", "relationship", "goal", "task"), 0.7),
    **dict.fromkeys(("preference", "belief", "pattern", "event"), 0.6),
}
"""Importance by category, for a statement without a slot and without an importance. Other categories: the default of
the field."""

_WORDS: Final = re.compile(r"[^\W\d_]+")
_NAME_PARTS: Final = re.compile(r"[a-z0-9]+")
_NO_PHRASE: Final = frozenset({"", "null", "none", "n/a", "-", "unknown"})
_NUMBER: Final = re.compile(r"\s*([+-]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*")
_USERS: Final = frozenset(
    {"the user", "the person the assistant serves", "users", "user's", "the user's", "current user", "this user"}
    | {"i", "me", "myself", "self", "speaker", "the speaker", "human", "the human"}
)


def category(value: object) -> object:
    """Parse a category such as `Profession`, `employment`, `work/career`. The first known word counts."""
    return _first_known(value, CATEGORIES)


def slot(value: object) -> object:
    """Parse the name of a slot such as `Birth date`, `birth-date`."""
    return "_".join(_NAME_PARTS.findall(value[:200].lower())) if isinstance(value, str) else value


def phrase(value: object) -> object:
    """Parse a value or a qualifier: a text, a number, or a list with one of them. Return None for an empty one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return value
    value = one_line(value).strip()
    return None if value.lower() in _NO_PHRASE else value


def durability(value: object) -> object:
    return _first_known(value, DURABILITIES)


def sensitivity(value: object) -> object:
    return _first_known(value, SENSITIVITY_WORDS)


def importance(value: object) -> object:
    """Parse an importance: a number up to 1, 10 or 100, `8/10`, `80%`, or a word."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _scaled(float(value))
    if not isinstance(value, str):
        return None
    found = _NUMBER.fullmatch(value)
    if found is None:
        return IMPORTANCES.get("".join(_WORDS.findall(value.lower())))
    number = float(found.group(1).replace(",", "."))
    if found.group(3):
        return _scaled(number / 100)
    whole = float(found.group(2) or 0)
    return _scaled(number / whole if whole else number)


def _scaled(number: float) -> float | None:
    if not math.isfinite(number) or number < 0 or number > 100:
        return None
    return number if number <= 1 else number / (10 if number <= 10 else 100)


def _first_known(value: object, known: Mapping[str, object]) -> object:
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str):
        return None
    words = _WORDS.findall(value[:200].lower())
    for word in ("".join(words), *words):
        for form in (word, word.removesuffix("s")):
            if form in known:
                return known[form]
    return None


def turn(value: object) -> object:
    """Parse a turn's id such as `t1`, `[t1]`, `1`, `turn 1`."""
    if isinstance(value, bool):
        return None
    found = re.fullmatch(r"\s*\[?\s*(?:t|turn)?[\s_#]*(\d{1,4})\s*\]?\s*", str(value), re.IGNORECASE)
    return value if found is None else f"t{int(found.group(1))}"


def flag(value: object) -> object:
    """Parse a boolean. Any unknown value is false."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "yes", "1")
    return value is True or (isinstance(value, int) and value == 1)


def user_of(subject: str) -> str:
    """Return `user` for a subject that means the user, otherwise the subject."""
    return "user" if subject in _USERS else subject


def _text_of(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return next((value[name] for name in ("quote", "text", "content", "evidence") if name in value), None)


def quote(value: object) -> object:
    """Parse a quote: the longest text of a list, the text of an object, the beginning of a text that is too long."""
    texts = [_text_of(each) for each in (value if isinstance(value, list) else [value])]
    value = max((each for each in texts if isinstance(each, str)), key=len, default=None)
    if not isinstance(value, str) or len(value) <= QUOTE_MAX:
        return value
    cut = value[:QUOTE_MAX]
    return cut[: cut.rfind(" ")] if " " in cut else cut

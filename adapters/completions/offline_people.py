"""What the speaker says about somebody else: "my sister Anna is a nurse" is a statement about anna."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from .offline_objects import is_name, is_pets
from .offline_rules import Statement, capitalised, statements
from .offline_text import third_person, without_tail
from .offline_words import PETS, RELATIONS

_KIN: Final = (
    r"(?P<kin>(?:(?:older|younger|little|big|elder|eldest|oldest|youngest|twin|best|good|old|close|new|half|first|second)"
    r"[ -])*[\w-]+)"
)
_NAME: Final = r"(?P<name>(?-i:[^\W\d_a-z])[\w'-]*)"
_NAMED: Final = (
    re.compile(rf"(?:my|our) {_KIN}'s name is {_NAME}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"(?:my|our) {_KIN} is (?:called|named) {_NAME}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"{_NAME} is (?:my|our) {_KIN}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"(?:my|our) {_KIN},? {_NAME},?(?: (?P<rest>.+))?", re.IGNORECASE),
)
_UNNAMED: Final = re.compile(rf"(?:my|our) {_KIN} (?P<rest>.+)", re.IGNORECASE)
_AND: Final = re.compile(
    r",?\s+and\s+(?=(?:also |now )?"
    r"(?:works|lives|loves|likes|hates|enjoys|has|is|studies|teaches|plays|speaks|owns|runs)\b)"
)
_KNOWN: Final = re.compile(rf"{_NAME} (?P<rest>.+)", re.IGNORECASE)


def statements_about_people(clause: str, *, subjects: Collection[str]) -> list[Statement]:
    """`subjects` are those that the prompt shows: only of them is a bare first name understood."""
    for pattern in _NAMED:
        if (match := pattern.fullmatch(clause)) and _is_kin(match["kin"]) and is_name(match["name"]):
            return [
                _relation(match["kin"], match["name"]),
                *_about(match["name"], match.groupdict().get("rest"), match["kin"]),
            ]
    if (match := _UNNAMED.fullmatch(clause)) and _is_kin(match["kin"]) and not is_pets(match["kin"]):
        if statements(_first_person(match["rest"])):
            content = capitalised(f"{match['kin']} {without_tail(third_person(match['rest']))}")
            return [Statement(subject="user", content=content, category="relationship")]
        return []
    if (match := _KNOWN.fullmatch(clause)) and match["name"].lower() in subjects:
        return _about(match["name"], match["rest"], "")
    return []


def _is_kin(words: str) -> bool:
    return words.lower().split()[-1] in RELATIONS | PETS


def _relation(kin: str, name: str) -> Statement:
    article = "an" if kin[0].lower() in "aeiou" else "a"
    return Statement(subject="user", content=f"Has {article} {kin.lower()} named {name}", category="relationship")


def _about(name: str, rest: str | None, kin: str) -> list[Statement]:
    """Statements of the person's own; an animal has none."""
    if not rest or (kin and is_pets(kin)):
        return []
    found = [said for part in _AND.split(rest) for said in statements(_first_person(part))]
    return [
        replace(statement, subject=name.lower()) for statement in found if not statement.content.startswith("Name ")
    ]


def _first_person(rest: str) -> str:
    """ "works at Google" → "I work at Google": so that one set of rules reads both."""
    verb, _, objects = rest.partition(" ")
    match verb.lower():
        case "is":
            base = "am"
        case "has":
            base = "have"
        case "does":
            base = "do"
        case word if word.endswith("ies") and len(word) > 4:
            base = word[:-3] + "y"
        case word if word.endswith(("shes", "ches", "xes", "sses", "zzes", "oes")):
            base = word[:-2]
        case word if word.endswith("s") and not word.endswith("ss"):
            base = word[:-1]
        case word:
            base = word
    return f"I {base} {objects}".strip()

"""Statements of the speaker about other people: "my sister Anna is a nurse" is a statement about anna."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from .offline_objects import is_name, is_pets
from .offline_retractions import endings
from .offline_rules import SpokenStatement, capitalised, statements
from .offline_text import without_tail
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
_OF_A_PERSON: Final = re.compile(
    r"(?:(?:has|is) )?(?:now |just |recently )?(?:works? (?:at|for|as)|lives? in|moved to"
    r"|got (?:married|engaged|divorced)|(?:got|found|started) an? (?:new )?job|retired|studies|left)\b",
    re.IGNORECASE,
)
"""Phrases that are said only of people, so the name before them is a person's."""
_NO_PERSON: Final = re.compile(
    r"(?:we|you|he|she|it|they|this|that|these|those|there|who|what|which|one|everyone|everybody|someone|somebody"
    r"|nobody|people|mum|mom|dad|mother|father|work|life|home)$",
    re.IGNORECASE,
)
_TOGETHER_WITH: Final = re.compile(rf".+ (?:together )?with (?:my|our) {_KIN},? {_NAME}", re.IGNORECASE)


def statements_about_people(clause: str, *, subjects: Collection[str]) -> list[SpokenStatement]:
    """Find statements about people. A bare first name counts when the prompt shows it among `subjects`, or where only a
    person can be meant."""
    for pattern in _NAMED:
        if (match := pattern.fullmatch(clause)) and _is_kin(match["kin"]) and is_name(match["name"]):
            return [
                _relation(match["kin"], match["name"]),
                *_about(match["name"], match.groupdict().get("rest"), match["kin"]),
            ]
    if (match := _UNNAMED.fullmatch(clause)) and _is_kin(match["kin"]) and not is_pets(match["kin"]):
        spoken = statements(_first_person(match["rest"]))
        if spoken and not spoken[0].content.startswith("Name "):
            content = capitalised(f"{match['kin']} {spoken[0].content[:1].lower()}{spoken[0].content[1:]}")
            return [SpokenStatement(subject="user", content=content, category="relationship")]
        return []
    match = _KNOWN.fullmatch(clause)
    if match is None or not is_name(match["name"]) or _NO_PERSON.match(match["name"]):
        return []
    if match["name"].lower() in subjects or _OF_A_PERSON.match(match["rest"]):
        return _about(match["name"], match["rest"], "")
    return []


def companions(clause: str) -> list[SpokenStatement]:
    """Find people who are named beside a statement: "I live in Ghent with my brother Paul"."""
    match = _TOGETHER_WITH.fullmatch(without_tail(clause))
    if match and _is_kin(match["kin"]) and is_name(match["name"]):
        return [_relation(match["kin"], match["name"])]
    return []


def _is_kin(words: str) -> bool:
    return words.lower().split()[-1] in RELATIONS | PETS


def _relation(kin: str, name: str) -> SpokenStatement:
    article = "an" if kin[0].lower() in "aeiou" else "a"
    return SpokenStatement(subject="user", content=f"Has {article} {kin.lower()} named {name}", category="relationship")


def _about(name: str, rest: str | None, kin: str) -> list[SpokenStatement]:
    """Return the statements about this person. An animal has none."""
    if not rest or (kin and is_pets(kin)):
        return []
    parts = [_first_person(part) for part in _AND.split(rest)]
    found = [said for part in parts for said in statements(part)]
    found += [said for part in parts for said in endings(part, beside=found)]
    return [
        replace(statement, subject=name.lower()) for statement in found if not statement.content.startswith("Name ")
    ]


def _first_person(rest: str) -> str:
    """Turn the text into the first person ("works at Google" → "I work at Google"), so that the same rules read
    both."""
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

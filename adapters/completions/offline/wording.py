"""Wording of the offline model's statements: the third person, without time and reason."""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from typing import Final

from .words import MONTHS, NUMBERS

MAX_TAILS: Final = 8
"""Maximum number of phrases removed from the end of a clause. People use one or two."""

_TAIL: Final = re.compile(
    r"[\s,]+(?:now|right now|currently|these days|at the moment|at present|nowadays|today|yesterday|any ?more|recently"
    r"|lately|by the way|btw|too|as well|again|already|though|actually|if you must know|you know|as you know|so far"
    r"|(?:ever )?since .*"
    rf"|for (?:(?:the|about|almost|over|nearly|around|more than) )*(?:last |past )?(?:{NUMBERS}|a|an|a few|many|some"
    r"|several|a couple of|\w+) (?:years?|months?|weeks?|days?|decades?)(?: now)?|for (?:ages|years|a while|now|good)"
    r"|(?:last|this|earlier this) (?:week|month|year|spring|summer|autumn|fall|winter|weekend|morning|night|january"
    rf"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|{MONTHS})"
    rf"|(?:{NUMBERS}|a|an|a few|some|several|a couple of) (?:years?|months?|weeks?|days?) ago|a while ago|long ago"
    rf"|back in .*"
    rf"|in (?:the )?(?:early |late )?(?:spring|summer|autumn|fall|winter|{MONTHS}|[12][0-9]{{3}})(?: [12][0-9]{{3}})?"
    r"|on (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|because .*|full[- ]time|part[- ]time"
    r"|originally|sometimes|occasionally|every .+|most days|on (?:week|mon|tues|wednes|thurs|fri|satur|sun)\w*days?"
    r"|which .*|and (?:i|it|that|we) .*|until .*|so (?!much|far|many|little|often|that)[a-z].*"
    r"|and (?:very |so |really |quite |pretty |super )(?:happy|glad|proud|tired|busy|excited|lucky|content|pleased)(?: .*)?"
    r"|on (?:new year(?:'?s)?(?: (?:eve|day))?|christmas|easter)(?: .*)?|(?:my|our|their) (?:whole|entire) life|all (?:my|our) (?:life|lives)"
    r"|but (?:nobody|no one|everyone|people|that|it|only|i|we|he|she|they|the|my|our|not any).*|at (?:age )?\d{1,2}|as an? (?:kid|child|teenager|adult|student)|when i was .*|at last|for once|obviously|though|tbh|mostly|mainly|basically|currently|lol|haha)$",
    re.IGNORECASE,
)
_PERSONS: Final = tuple(
    (re.compile(rf"\b{first}\b", re.IGNORECASE), third)
    for first, third in (
        ("my own", "their own"), ("my", "their"), ("our", "their"), ("mine", "theirs"), ("myself", "themselves"),
        ("ourselves", "themselves"), ("me", "them"), ("us(?!A)", "them"), ("i am", "they are"), ("we", "they"),
    )
)  # fmt: skip


def third_person(text: str) -> str:
    """Convert `text` to the third person: "with my wife" → "with their wife"."""
    for pattern, third in _PERSONS:
        text = pattern.sub(third, text)
    return re.sub(r"\bI\b", "they", text)


def without_tail(text: str) -> str:
    """Remove the time and the reason at the end of a text (since, until, because). They describe this turn, and are not
    a part of the lasting statement."""
    text = text.strip(" ,;:.!…-–—\"'")
    for _ in range(MAX_TAILS):
        shorter = _TAIL.sub("", text)
        if shorter == text:
            break
        text = shorter.strip(" ,;:.!…-–—\"'")
    return text


_IRREGULAR: Final = {"have": "has", "go": "goes", "do": "does", "am": "is", "are": "is", "be": "is"}


def conjugated(verb: str) -> str:
    """Return the third person singular of a base form: take → takes, get up → gets up."""
    if " " in verb:
        first, _, rest = verb.partition(" ")
        return f"{conjugated(first)} {rest}"
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"

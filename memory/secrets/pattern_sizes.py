"""Minimum length and minimum number of digits of a match, computed from the regular expression."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any, Final

_SRE: Final[Any] = importlib.import_module("re._parser")
"""The parser of `re`. Its tree is not documented; a node type that `_digits_of` does not know counts as no digit."""


_NEAR: Final = 8
"""Maximum number of characters between two digits of one number. All known forms of numbers have fewer."""
_NUMBER: Final = re.compile(rf"\d+(?:\D{{1,{_NEAR}}}\d+)*")
_NUMBER_IN_ASCII: Final = re.compile(rf"[0-9]+(?:[^0-9]{{1,{_NEAR}}}[0-9]+)*")
"""The same pattern for ASCII text, twice as fast."""


def most_digits_together(text: str) -> int:
    """Return the largest number of digits that may belong to one number, with few other characters in between.

    Texts contain many irrelevant digits: years, prices, times. A form that needs more digits than this result cannot
    match in the text.
    """
    numbers = (_NUMBER_IN_ASCII if text.isascii() else _NUMBER).findall(text)
    return max((sum(map(str.isdigit, found)) for found in numbers), default=0)


def least_length(pattern: str) -> int:
    """Return the minimum length of a match, in characters."""
    return int(_SRE.parse(pattern).getwidth()[0])


def least_digits(pattern: re.Pattern[str]) -> int:
    """Return the minimum number of decimal digits (`\\d`) in a match."""
    return _digits(_SRE.parse(pattern.pattern, pattern.flags))


def _digits(items: Iterable[tuple[Any, Any]]) -> int:
    return sum(_digits_of(str(name), value) for name, value in items)


def _digits_of(name: str, value: Any) -> int:
    match name:
        case "LITERAL":
            return int(chr(value).isdecimal())
        case "IN":
            return int(all(map(_is_digit, value)))
        case "SUBPATTERN":
            return _digits(value[-1])
        case "ATOMIC_GROUP":
            return _digits(value)
        case "BRANCH":
            return min(map(_digits, value[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return int(value[0]) * _digits(value[2])
        case _:
            return 0


def _is_digit(choice: tuple[Any, Any]) -> bool:
    name, value = choice
    match str(name):
        case "CATEGORY":
            return str(value) == "CATEGORY_DIGIT"
        case "LITERAL":
            return chr(value).isdecimal()
        case "RANGE":
            return bool(ord("0") <= value[0] <= value[1] <= ord("9"))
        case _:
            return False

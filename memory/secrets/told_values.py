"""Values next to a label, recognised by their form. These rules are the same for all languages."""

from __future__ import annotations

import re
from typing import Final

from ..language.locales.secret_labels import SecretKind
from .findings import PLACEHOLDER

QUOTED: Final = re.compile(
    r"\"([^\"\n]{1,128})\"|'([^'\n]{1,128})'(?![^\W\d_])|`([^`\n]{1,128})`|\u300c([^\u300d\n]{1,128})\u300d"
    r"|\u300e([^\u300f\n]{1,128})\u300f"
)
_CODE: Final = (
    r"[#*]?(?:(?=[A-Z-]{0,80}+\d|(?:[A-Z]{3,8}-){3})[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8}){1,9}|\d(?:[ -]\d){3,9}"
    r"|\d{2,6}(?:[ -]\d{2,6}){1,7}|\d{3,10}"
)
_PIN: Final = re.compile(rf"{_CODE}|[^\W_]{{0,2}}\d[^\W_]{{2,7}})[#*]?(?!\w)", re.IGNORECASE)
_PIN_UNSPACED: Final = re.compile(
    rf"{_CODE}|[A-Z]{{0,2}}\d[A-Z0-9]{{2,7}})[#*]?(?![A-Z0-9_])", re.ASCII | re.IGNORECASE
)
_DATE: Final = re.compile(r"(?:19|20)\d\d-\d\d-\d\d|\d\d?[-/.]\d\d?[-/.](?:19|20)\d\d")
_BARE: Final = re.compile(r"\S{1,256}")
_PRINTED: Final = re.compile(r"[!-~]{1,256}")
_KEY: Final = re.compile(r"[A-Za-z0-9_+/=.:~-]{8,512}")
_OTHER: Final = re.compile(
    r"[A-Z_]\w*+=|\$[A-Z_{(]|\{\{|<[\w \-/]|%[A-Z_]+%|[A-Z_][\w.]*+[\[(]|(?:os|process|env|config"
    r"|settings|secrets|self|args|vault)\."
    r"|https?://|www\.|[x*.\u2022_-]{3,}$|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+$",
    re.IGNORECASE,
)
"""Texts in place of a value: a variable, a call, a placeholder, an address."""
_SIGN: Final = re.compile(r"[@#$%^&*_+=~|\\!<>{}?\u20ac\u00a3\u00a7]")
_SIGN_BESIDE: Final = re.compile(r"[@#$%^&*+~!?\u20ac\u00a3\u00a7]")
"""Symbols that do not occur in names of program code."""
_MIXED_CASE: Final = re.compile(r"[a-z][A-Z]")
_TRAILING: Final = ".,;:)]}\"'`>*\u3002\uff0c\u3001\u300d"
_KEY_MIN, _KEY_BESIDE_MIN = 8, 16
_BESIDE_MIN: Final = 5
_DIGITS_BESIDE_MIN: Final = 4
_NAMED_MIN: Final = 3


def value_end(text: str, start: int, kind: SecretKind, *, named: bool, spaced: bool) -> int | None:
    """Return the end of a value of this kind that begins at `start` and has the form of a secret; None when no such
    value begins there.

    Args:
        named: True when a connector before the value announces the value.
        spaced: True when the language separates words with spaces.
    """
    if PLACEHOLDER.match(text, start):
        return None
    if kind == "pin":
        return _pin_end(text, start, _PIN if spaced else _PIN_UNSPACED, named=named)
    bare = (_BARE if spaced else _PRINTED).match(text, start)
    if bare is None:
        return None
    value = trimmed(bare[0])
    if stands_for_another(value):
        return None
    if kind in ("api_key", "token"):
        is_key = len(value) >= (_KEY_MIN if named else _KEY_BESIDE_MIN) and _KEY.fullmatch(value) is not None
        return start + len(value) if is_key and _has_digit_and_letter(value) else None
    return start + len(value) if is_strong(value, named=named) else None


def is_strong(value: str, *, named: bool) -> bool:
    """Return whether a word has the form of a password: it contains a digit, a symbol, or a capital letter after a
    small one."""
    has_digit, has_letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    has_sign = _SIGN.search(value.rstrip("?!")) is not None or (has_digit and _SIGN.search(value) is not None)
    if _DATE.fullmatch(value) or value.endswith("%"):
        return False
    if named:
        return len(value) >= _NAMED_MIN and (has_digit or (has_sign and has_letter) or bool(_MIXED_CASE.search(value)))
    if len(value) < _BESIDE_MIN or "(" in value:
        return False
    return value.isdigit() or (has_letter and (has_digit or _SIGN_BESIDE.search(value.rstrip("?!")) is not None))


def stands_for_another(value: str) -> bool:
    """Return whether a text is a variable, a call, a placeholder or an address instead of a value."""
    return _OTHER.match(value) is not None or PLACEHOLDER.search(value) is not None or not any(map(str.isalnum, value))


def trimmed(value: str) -> str:
    """Return a bare value without trailing punctuation."""
    return value.rstrip(_TRAILING)


def _pin_end(text: str, start: int, form: re.Pattern[str], *, named: bool) -> int | None:
    number = form.match(text, start)
    if number is None or _DATE.match(text, start):
        return None
    if not named and sum(map(str.isdigit, number[0])) < _DIGITS_BESIDE_MIN and not ends_clause(text, number.end()):
        return None
    return number.end()


def ends_clause(text: str, place: int) -> bool:
    """Return whether a clause ends at `place`."""
    rest = text[place : place + 3].lstrip(" \t")
    return not rest or rest[0] in ".,;!?)\n\r"


def _has_digit_and_letter(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))

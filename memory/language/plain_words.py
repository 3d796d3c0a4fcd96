"""Words of a text in any language and script, without a locale pack; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_GROUPED: Final = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
_DECIMAL: Final = re.compile(r"(?<=\d),(?=\d)")
_SPACELESS: Final = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "BOPOMOFO", "KATAKANA-HIRAGANA")
"""Scripts without spaces between words. Each name is the first word in the Unicode names of the script's letters."""
_MINUS: Final = frozenset("-−")
_IN_NUMBERS: Final = _MINUS | {"."}
_SAID: Final = frozenset("#%&@?*/")
"""Punctuation that is kept, because texts may differ only in it: C and C#."""


@dataclass(frozen=True, slots=True)
class PlainWord:
    """A run of letters or digits, one letter of a script without spaces, or a symbol."""

    text: str
    """The folded form: NFKC, case-folded, numbers in one notation."""
    is_name: bool = False
    """True when the word begins with a capital letter and is not the first word of the text."""

    @property
    def is_number(self) -> bool:
        return self.text.removeprefix("-")[:1].isdigit()


def plain_words(text: str) -> tuple[PlainWord, ...]:
    """Split a text into words without punctuation and spaces. Numbers have one notation: `1.500` becomes `1500`, and
    `1,80` becomes `1.8`."""
    plain = _DECIMAL.sub(".", _GROUPED.sub("", unicodedata.normalize("NFKC", text)))
    return tuple(_word(run, place) for place, run in enumerate(_runs(plain)))


def is_spaceless(letter: str) -> bool:
    """Return whether the letter belongs to a script without spaces between words."""
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0] in _SPACELESS


def _runs(plain: str) -> Iterator[str]:
    run = ""
    for place, each in enumerate(plain):
        kind = _kind(each)
        after = plain[place + 1 : place + 2]
        if each in _MINUS and not run and after.isdigit() and not plain[place - 1 : place].isalnum():
            kind = "N"
        if each == "." and run[-1:].isdigit() and after.isdigit():
            kind = "N"
        if run and (kind != _kind(run[-1] if run[-1] not in _IN_NUMBERS else "0") or kind not in "LN"):
            yield run
            run = ""
        if kind:
            run += each
    if run:
        yield run


def _kind(each: str) -> str:
    """Return the kind of a character: part of a word (L), part of a number (N), a letter that is a word alone (W), a
    symbol (S), or an empty string for other characters."""
    category = unicodedata.category(each)
    if category.startswith(("L", "M")):
        return "W" if category.startswith("L") and is_spaceless(each) else "L"
    if category.startswith("N"):
        return "N"
    return "S" if category.startswith("S") or each in _SAID else ""


def _word(run: str, place: int) -> PlainWord:
    if _kind(run[-1]) == "N":
        return PlainWord(_number(run))
    return PlainWord(unicodedata.normalize("NFKC", run.casefold()), is_name=place > 0 and run[0].isupper())


def _number(run: str) -> str:
    if run[0] in _MINUS:
        return f"-{_number(run[1:])}"
    digits = "".join(str(unicodedata.digit(each, each)) for each in run)
    whole, point, rest = digits.partition(".")
    if "." in rest:
        return digits  # a date or a version
    rest = rest.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + rest if rest else "")

"""A text as detectors read it: plain characters replace look-alike characters, and invisible characters are removed.

A secret may be written in full-width digits, or contain a zero-width space or a soft hyphen. The view has no such
characters, and each position in it maps to a position in the original text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import chain
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)
"""Characters without width, and combining accents."""
_QUOTES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u2039\u203a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
}
_DASHES: Final = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")

_BLOCKS: Final = (range(0x80, 0x3400), range(0xF900, 0x10000), range(0x1D400, 0x1D800), range(0x1F100, 0x1F200))
"""Unicode blocks with look-alikes of ASCII characters and with decimal digits."""


@cache
def _plain_signs() -> dict[int, str]:
    """Return the translation of each character to an equivalent ASCII letter, digit, quote, dash or space."""
    plain: dict[str, str] = {}
    for sign in map(chr, chain.from_iterable(_BLOCKS)):
        if (digit := unicodedata.decimal(sign, None)) is not None:
            plain[sign] = str(digit)
        elif unicodedata.decomposition(sign):
            base = unicodedata.normalize("NFKD", sign)
            base = "".join(each for each in base if not unicodedata.combining(each))
            if len(base) == 1 and base.isascii():
                plain[sign] = base
    return str.maketrans(plain | _QUOTES | _DASHES)


class TextView:
    """The text to search, never longer than the original, with a mapping to positions in the original."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original
        self._starts: list[int] = []
        self._shifts: list[int] = []
        if original.isascii():
            return
        plain = original.translate(_plain_signs())
        parts: list[str] = []
        read = length = 0
        for gap in _INVISIBLE.finditer(plain):
            parts.append(plain[read : gap.start()])
            length += gap.start() - read
            read = gap.end()
            self._starts.append(length)
            self._shifts.append(read - length)
        self.text = "".join([*parts, plain[read:]]) if parts else plain

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text of a span in the view."""
        return self._origin(start), self._origin(end - 1) + 1

    def _origin(self, place: int) -> int:
        before = bisect_right(self._starts, place)
        return place + (self._shifts[before - 1] if before else 0)


def lowered(text: str) -> str:
    """Return the text in lower case, with the same length. A character whose lower case has several characters stays
    unchanged."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)

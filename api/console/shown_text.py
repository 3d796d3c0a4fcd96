"""Stored text in HTML: invisible characters and direction marks become visible, and quotes are marked in their message.

Stored text comes from strangers. Jinja escapes markup; this module handles characters that deceive the eye.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

_DECEIVING: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
"""Characters without a glyph: controls, direction marks, joiners, fillers, variation selectors, tags, private use."""
_JOINERS: Final = "\u200c\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
_KEYCAPS: Final = "0123456789#*"


def shown(value: object) -> Markup:
    """Return a text as HTML that shows each invisible character as its code point.

    The element `bdi` isolates the direction of the text, so that it cannot reorder the page around it.
    """
    return Markup("<bdi>{}</bdi>").format(_visible(str(value)))


def _visible(text: str) -> Markup:
    parts: list[Markup] = []
    end = 0
    for found in _DECEIVING.finditer(text):
        place = found.start()
        if _belongs(text, place):
            continue
        parts += (escape(text[end:place]), _code_point(found.group()))
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _code_point(char: str) -> Markup:
    name = unicodedata.name(char, "invisible character").lower()
    return Markup('<span class="unseen" title="{}">U+{:04X}</span>').format(name, ord(char))


def _belongs(text: str, place: int) -> bool:
    """Return whether a script or an emoji needs the character: one joiner between letters or emoji, one style mark
    after an emoji."""
    char, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if char == _EMOJI_STYLE:
        return bool(before) and (unicodedata.category(before) == "So" or before in _KEYCAPS)
    if char in _JOINERS:
        return _joins(before) and _joins(after)
    return False


def _joins(char: str) -> bool:
    return bool(char) and not char.isascii() and (char == _EMOJI_STYLE or unicodedata.category(char)[0] in "LMS")


class TextPiece(NamedTuple):
    """A part of a message."""

    text: str
    quoted: bool
    """True when the part is evidence of a fact."""


def pieces_with(text: str, quotes: Sequence[str]) -> list[TextPiece]:
    """Split a message at the quotes in it. Case and white space do not matter. Quotes that overlap are joined."""
    folded, places = _folded(text)
    spans = sorted(span for quote in quotes for span in _found(folded, _folded(quote)[0]))
    pieces: list[TextPiece] = []
    end = 0
    for start, stop in _joined(spans):
        first, last = places[start], places[stop - 1] + 1
        if first > end:
            pieces.append(TextPiece(text[end:first], quoted=False))
        pieces.append(TextPiece(text[first:last], quoted=True))
        end = last
    if end < len(text):
        pieces.append(TextPiece(text[end:], quoted=False))
    return pieces


def _folded(text: str) -> tuple[str, list[int]]:
    """Return the text in lower case with single spaces, and the index in `text` of each of its characters."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char.isspace():
            if chars and chars[-1] != " ":
                chars.append(" ")
                places.append(place)
            continue
        for lower in char.lower():
            chars.append(lower)
            places.append(place)
    if chars and chars[-1] == " ":
        chars.pop()
        places.pop()
    return "".join(chars), places


def _found(text: str, quote: str) -> Iterator[tuple[int, int]]:
    if not quote:
        return
    place = text.find(quote)
    while place >= 0:
        yield place, place + len(quote)
        place = text.find(quote, place + len(quote))


def _joined(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, end = -1, -1
    for first, last in spans:
        if first > end:
            if end >= 0:
                yield start, end
            start, end = first, last
        else:
            end = max(end, last)
    if end >= 0:
        yield start, end

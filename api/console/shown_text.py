"""Stored text in HTML: invisible characters and direction marks become visible, and quotes are marked in their message.

Stored text comes from strangers. Jinja escapes markup; this module handles characters that deceive the eye.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from ...memory.language.clean_text import hidden_runs

_BLANK: Final = re.compile(
    r"[\x0b-\x0d\x1c-\x1e\x85\u2028\u2029\u2800\ud800-\udfff\ue000-\uf8ff\ufff0-\ufff8"
    r"\U000e0080-\U000e00ff\U000e01f0-\U0010ffff]"
)
"""Characters without a glyph that stored text may contain: line ends, blanks, lone surrogates, private use, and code
points that are not assigned."""


def shown(value: object) -> Markup:
    """Return a text as HTML that shows each invisible character as its code point.

    The element `bdi` isolates the direction of the text, so that it cannot reorder the page around it.
    """
    return Markup("<bdi>{}</bdi>").format(_visible(str(value)))


def _visible(text: str) -> Markup:
    parts: list[Markup] = []
    end = 0
    unseen = [place for start, stop in hidden_runs(text) for place in range(start, stop)]
    for place in sorted((*unseen, *(found.start() for found in _BLANK.finditer(text)))):
        parts += (escape(text[end:place]), _code_point(text[place]))
        end = place + 1
    return Markup("").join([*parts, escape(text[end:])])


def _code_point(char: str) -> Markup:
    name = unicodedata.name(char, "invisible character").lower()
    return Markup('<span class="unseen" title="{}">U+{:04X}</span>').format(name, ord(char))


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

"""Excerpts of a turn for the blind question about a statement: the speaker's own sentences around a quote; pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ..language.text import folded, one_line
from .clauses import plays, stops_playing
from .said_text import SaidText

SAID_MAX: Final = 600
QUESTION_MAX: Final = 300
FRAME_MAX: Final = 200
"""Maximum number of characters of each part of an excerpt."""
SHORT_CHARS: Final = 200
"""Maximum length of a message that may be an answer to the question before it."""
_SENTENCE: Final = re.compile(r"(?<![.!?…。！？\n])[.!?…。！？\n]+(?=\s|$)\s*|[。！？]|\n\s*")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text that is shown for one statement."""

    said: str
    """The speaker's own sentences that contain the quote."""
    question: str | None = None
    """The last question to the speaker, when the message is short enough to be an answer to it."""
    frame: str | None = None
    """An earlier sentence of the speaker that opens a role play, a story or a song."""


def excerpt(quote: str, text: SaidText, before: Sequence[SaidText]) -> Excerpt:
    """Return the excerpt of a message that contains the quote in the speaker's own words.

    `before` are the messages before it, oldest first.
    """
    pieces = split_sentences(text.own_text)
    said, first = _around(quote, pieces)
    return Excerpt(said, _last_question(text, before), _frame(pieces[:first], before))


def _around(quote: str, pieces: Sequence[str]) -> tuple[str, int]:
    """Return the sentences that contain the quote, and the number of sentences before them. Without a place for the
    quote, return all sentences."""
    parts = [f"{folded(each)} " if each[-1:].isspace() else folded(each) for each in pieces]
    start = "".join(parts).find(folded(quote))
    if start < 0:
        return _shortened(" ".join(pieces), quote), 0
    starts = list(accumulate((len(each) for each in parts), initial=0))
    first = bisect_right(starts, start) - 1
    last = bisect_right(starts, start + max(1, len(folded(quote))) - 1)
    return _shortened("".join(pieces[first:last]), quote), first


def _shortened(text: str, quote: str) -> str:
    line = one_line(text)
    if len(line) <= SAID_MAX:
        return line
    place = max(0, line.lower().find(one_line(quote).lower()))
    start = max(0, min(place - SAID_MAX // 2, len(line) - SAID_MAX))
    return line[start : start + SAID_MAX]


def _last_question(text: SaidText, before: Sequence[SaidText]) -> str | None:
    """Return the question that a short message answers: the last one in the message before it. A message of the
    speaker between the two is no answer to it."""
    last = next((each for each in reversed(before) if each.speaks), None)
    if last is None or last.role == text.role or len(text.own_text) > SHORT_CHARS:
        return None
    pieces = [one_line(each) for each in split_sentences(last.own_text) if each.strip()]
    asked = [each for each in pieces if each.rstrip("\"') ").endswith(("?", "？"))]
    found = next(iter(asked[-1:] or pieces[-1:]), None)
    return None if found is None else found[-QUESTION_MAX:]


def _frame(pieces: Sequence[str], before: Sequence[SaidText]) -> str | None:
    """Return the last earlier sentence of the user that opens a role play; None when there is none, or when a later
    sentence ends it."""
    said = [each for text in before if text.role == "user" for each in split_sentences(text.own_text)]
    turning = next((each for each in reversed([*said, *pieces]) if plays(each) or stops_playing(each)), None)
    return None if turning is None or stops_playing(turning) else one_line(turning)[:FRAME_MAX]


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences. The joined sentences are the text."""
    found: list[str] = []
    place = 0
    for end in _SENTENCE.finditer(text):
        found.append(text[place : end.end()])
        place = end.end()
    found.append(text[place:])
    return [each for each in found if each]

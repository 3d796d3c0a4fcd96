"""Repair of a quote that a model changed at its beginning or end; pure.

A quote that differs in the middle is not repaired, because nobody said these words. The repair also removes a role
label in the quote. The label has no effect: evidence.py decides by the place of the words in the message who said them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..language.text import folded
from .said_text import SaidText

_LABEL: Final = re.compile(
    r"\s*(?:\[ ?t\d{1,4} ?\]\s*)?(?:[*_]{0,2}[^\W\d_][\w .'-]{0,40}(?:\([^()\n]{0,80}\))?[*_]{0,2} ?: ?[*_]{0,2})?\s*",
    re.IGNORECASE,
)
"""The label of a message in a prompt: the id of the turn, and the role or name, as in `[t1] user (Alice, 22:10):`."""
_MARKS: Final = " \t\n\"'`“”„‘’‚«»‹›*_()[]"
_DOTS: Final = f"{_MARKS}.…"
_STOPS: Final = f"{_DOTS},;:!?。！？、؟।"


def verbatim_quote(quote: str, shown: Sequence[SaidText]) -> str:
    """Return the quote in a form that a shown text contains.

    The forms are tried in this order: the unchanged quote, then the quote without a label, without surrounding
    quotation marks, without dots, without final punctuation. When no shown text contains any form, return the quote
    unchanged.
    """
    for form in _forms(quote):
        wanted = folded(form)
        if wanted and any(wanted in text.folded for text in shown):
            return form
    return quote


def _forms(quote: str) -> Iterator[str]:
    yield quote
    label = _LABEL.match(quote)
    bare = quote if label is None else quote[label.end() :]
    yield bare
    inner = bare.strip(_MARKS)
    unlabelled = inner[label.end() :] if (label := _LABEL.match(inner)) else inner
    for each in dict.fromkeys((inner, unlabelled)):
        yield each
        yield each.strip(_DOTS)
        yield each.lstrip(_DOTS).rstrip(_STOPS)

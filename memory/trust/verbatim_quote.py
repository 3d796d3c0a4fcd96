"""Verbatim form of a quote that a model changed at its ends; pure.

Only changes at the ends are repaired: a quote that differs in the middle was not said. The position of the words, not a
role label, decides whose words they are (evidence.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..language.text import folded
from .evidence import SaidText

_LABEL: Final = re.compile(
    r"\s*(?:\[ ?t\d{1,4} ?\]\s*)?(?:[*_]{0,2}[^\W\d_][\w .'-]{0,40}(?:\([^()\n]{0,80}\))?[*_]{0,2} ?: ?[*_]{0,2})?\s*",
    re.IGNORECASE,
)
"""The id of a turn, and the role or name before a message, as prompts show them: `user (Alice, 22:10):`."""
_MARKS: Final = " \t\n\"'`“”„‘’‚«»‹›*_()[]"
_DOTS: Final = f"{_MARKS}.…"
_STOPS: Final = f"{_DOTS},;:!?。！？、؟।"


def verbatim_quote(quote: str, shown: Sequence[SaidText]) -> str:
    """Return the longest form of a quote that the shown texts contain.

    The other forms lack a label, surrounding quotation marks, dots or a final punctuation mark. A quote that matches in
    no form is returned unchanged.
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

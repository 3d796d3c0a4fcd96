"""The words of a turn behind a quote that a model changed at its ends; pure.

Only ends are changed: a quote that differs in the middle was not said. Whose words they are does not follow from a role
label, but from where they are (evidence.py).
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
"""The id of a turn, and the role or the name before a message, as prompts show them: `user (Alice, 22:10):`."""
_MARKS: Final = " \t\n\"'`“”„‘’‚«»‹›*_()[]"
_DOTS: Final = f"{_MARKS}.…"
_STOPS: Final = f"{_DOTS},;:!?。！？、؟।"


def verbatim_quote(quote: str, shown: Sequence[SaidText]) -> str:
    """Return the longest form of a quote that is in what was shown: without its label, the quotation marks around it,
    dots, or another final stop. A quote that is in no form there is returned as it is."""
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

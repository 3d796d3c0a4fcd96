"""A message with its own words and its quotations, as quotes are compared with it; pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from ...schemas.turns import Role
from ..language.text import folded
from .own_words import Passage, split_quotations

OCCURRENCES_MAX: Final = 16
"""Maximum number of occurrences of a quote in one message that are examined."""
INLINE_MAX: Final = 120
"""Maximum length of a quotation that is shown with the sentence around it, such as the title of a book."""
INLINE_MARKS: Final = frozenset('"“„«»‘「『《〈')
_SENTENCE_END: Final = re.compile(r"(?<![.!?;…。！？])[.!?;…。！？]+(?=\s|$)|[。！？]")
"""The end of a sentence: a run of punctuation. A match begins only at the first character of the run; otherwise a
search would read a long run many times."""


@dataclass(frozen=True)
class SaidText:
    """A message with the text that the prompt shows. Quotes are compared with this text."""

    role: Role
    text: str

    @cached_property
    def _split(self) -> tuple[Passage, ...]:
        return split_quotations(self.text)

    @cached_property
    def own_text(self) -> str:
        """The sender's own words as they were written, with the short quotations inside their sentences. A line break
        replaces any other quotation. A tool or system message has no own words."""
        if not self.speaks:
            return ""
        return "".join(each.text if each.own or _is_inline(each.text) else "\n" for each in self._split).strip()

    @cached_property
    def passages(self) -> tuple[tuple[str, bool], ...]:
        """The folded passages of the message. Each has a flag that is True for the sender's own words. The joined
        passages are the folded message."""
        parts: list[tuple[str, bool]] = []
        before = " "
        for passage in self._split:
            part = folded(passage.text)
            if passage.text[:1].isspace() and before != " ":
                part = f" {part}" if part else " "
            if passage.text[-1:].isspace() and part and part != " ":
                part += " "
            if part:
                parts.append((part, passage.own))
                before = part[-1]
        return tuple(parts)

    @cached_property
    def folded(self) -> str:
        return "".join(part for part, _ in self.passages)

    @cached_property
    def own(self) -> str:
        """The sender's own words. A tool or system message has none, because no person or assistant wrote it."""
        return " . ".join(part.strip() for part, own in self.passages if own and part.strip()) if self.speaks else ""

    @property
    def speaks(self) -> bool:
        return self.role in ("user", "assistant")

    def occurrences(self, quote: str) -> Iterator[tuple[str, int]]:
        """Yield the occurrences of a folded quote in the folded message, at most `OCCURRENCES_MAX`.

        Each occurrence has the sender's own words in the quote, and the position of the quote.
        """
        start = self.folded.find(quote)
        for _ in range(OCCURRENCES_MAX):
            if start < 0:
                return
            yield self.own_words_between(start, start + len(quote)), start
            start = self.folded.find(quote, start + 1)

    def own_words_between(self, start: int, end: int) -> str:
        """Return the sender's own words between two positions of the folded message."""
        if not self.speaks:
            return ""
        own: list[str] = []
        for number in range(bisect_right(self._starts, start) - 1, len(self.passages)):
            place, (part, is_own) = self._starts[number], self.passages[number]
            if place >= end:
                break
            own += [part[max(0, start - place) : end - place]] if is_own else []
        return "".join(own).strip()

    @cached_property
    def _starts(self) -> Sequence[int]:
        """The positions in the folded message at which its passages begin."""
        return tuple(accumulate((len(part) for part, _ in self.passages), initial=0))

    @cached_property
    def sentence_ends(self) -> tuple[Sequence[int], Sequence[int]]:
        """The ends of sentences in the folded message: the positions where the punctuation begins, and the positions
        where it ends."""
        found = [each.span() for each in _SENTENCE_END.finditer(self.folded)]
        return [start for start, _ in found], [end for _, end in found]


def _is_inline(quotation: str) -> bool:
    return len(quotation) <= INLINE_MAX and quotation[:1] in INLINE_MARKS and "\n" not in quotation

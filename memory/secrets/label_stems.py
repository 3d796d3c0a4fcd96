"""Fast check whether a text may contain a label of a secret. The results are cached by word, because most words occur
in many texts."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from . import bank_accounts, lexicon, wallet_words
from .labelled import label_stems, longest_word

WORDS_KEPT: Final = 8_192
WORD_MAX: Final = 32
"""Maximum length of a cached word, in characters."""
_COMMON_LETTERS: Final = frozenset("aeiouyàéèñ")
"""Common words of one letter. Any other single letter may belong to a word spelled letter by letter."""


def words_of_labels(small: str) -> str:
    """Return the words of a lower-case text that may belong to a label, joined with spaces; empty when the text has no
    label. A text that contains a word longer than WORD_MAX is returned whole."""
    words = small.split()
    if max(map(len, words), default=0) > WORD_MAX:
        return small
    return " ".join(filter(_may_be_of_a_label, words))


@lru_cache(WORDS_KEPT)
def _may_be_of_a_label(word: str) -> bool:
    if len(word) == 1:
        return word.isalpha() and word not in _COMMON_LETTERS
    return any(map(word.__contains__, _stems()))


@cache
def _stems() -> tuple[str, ...]:
    stems = (*map(longest_word, (*lexicon.STEMS, *wallet_words.STEMS, *bank_accounts.STEMS)), *label_stems())
    return tuple(dict.fromkeys(stems))

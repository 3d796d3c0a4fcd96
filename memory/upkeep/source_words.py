"""Comparison of a model's text with the texts that it was made from; pure.

The comparison is by words: it finds a text that says something else, and not every wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..language.locales import Locale
from ..trust.statement_words import count_held

SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
NUMBER: Final = re.compile(r"\d+")


def supported_sentences(summary: str, texts: Sequence[str], packs: tuple[Locale, ...]) -> str:
    """Return the sentences of a summary that the texts support, in their order.

    A sentence must share half of its content words with the texts, and have no number that they lack.
    """
    text = " . ".join(texts)
    numbers = set(NUMBER.findall(text))
    return " ".join(
        sentence
        for sentence in SENTENCE_END.split(summary)
        if numbers.issuperset(NUMBER.findall(sentence)) and _holds_half(sentence, text, packs)
    )


def _holds_half(sentence: str, text: str, packs: tuple[Locale, ...]) -> bool:
    held, words = count_held(sentence, text, packs)
    return bool(held) and 2 * held >= words


def supports_procedure(
    texts: Sequence[str], heading: Sequence[str], steps: Sequence[str], packs: tuple[Locale, ...]
) -> bool:
    """Return whether the texts support a procedure. `heading`: its name and the situation in which it applies.

    Each step must share a content word with the texts, because a procedure without one of its steps is another one. All
    parts together must share half of their content words.
    """
    text = " . ".join(texts)
    of_steps = [count_held(each, text, packs) for each in steps]
    counts = [*of_steps, *(count_held(each, text, packs) for each in heading)]
    return all(held for held, _ in of_steps) and 2 * sum(held for held, _ in counts) >= sum(
        words for _, words in counts
    )

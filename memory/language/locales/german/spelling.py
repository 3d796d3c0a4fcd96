"""German: convert umlauts and ß to one spelling, so that `Müller` and `Mueller` are one word."""

from __future__ import annotations

from .. import notation

LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}


def spelled(text: str) -> str:
    for letter, instead in LETTERS.items():
        text = text.replace(letter, instead)
    return text


def words(text: str) -> tuple[str, ...]:
    return notation.words(spelled(text))


def phrases(text: str) -> tuple[str, ...]:
    return notation.phrases(spelled(text))

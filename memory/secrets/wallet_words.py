"""Wallet seed phrases: twelve or more short words in a row, after a label.

The official word lists are not used: they exist in ten languages and contain everyday words. A phrase is recognised by
its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .findings import Finding
from .text_view import lowered

STEMS: Final = (
    *("seed", "mnemo", "wallet", "bip39", "bip-39", "recovery", "words", "worter", "palabras", "mots", "parole"),
    *("palavras", "woorden", "slow", "s\u0142ow", "\u0441\u043b\u043e\u0432", "\u0444\u0440\u0430\u0437", "kelime"),
    *("\u52a9\u8bb0\u8bcd", "\u52a9\u8a18\u8a5e", "\u5355\u8bcd", "\u5358\u8a9e", "\u30d5\u30ec\u30fc\u30ba", "phrase"),
)
_NUMBER: Final = r"(?:12|15|18|21|24|twelve|twenty[ -]four|zwolf|doce|douze|dodici|doze|twaalf|dwanascie|on iki)"
_LABEL: Final = re.compile(
    r"(?<![^\W_])(?:phrases?|seed(?:s|[ -]?(?:phrase|words?|key)|(?=[ \t]*+[:=\n]|[ ](?:is|are"
    r"|was)\b))|mnemonics?|wallet|bip-?39|"
    r"(?:recovery|backup|secret|wallet|master)[ -](?:phrase|words?|seed)|(?:wiederherstellungs"
    r"|seed)[ -]?(?:phrase|worter)|"
    r"frase (?:de |di )?(?:recuperacion|recupero|recuperacao|semilla|seed)|phrase de recuperation|"
    rf"{_NUMBER}[ -](?:\w{{1,12}} )?(?:words|worter|palabras|mots|parole|palavras|woorden|s[l\u0142]ow"
    rf"|\u0441\u043b\u043e\u0432\w?|"
    r"kelime\w*)|"
    r"\u0441\u0438\u0434[ -]?\u0444\u0440\u0430\u0437\w|kurtarma kelimeleri)(?![^\W_])"
    r"|\u52a9\u8bb0\u8bcd|\u52a9\u8a18\u8a5e|(?:12|24) ?(?:\u4e2a|\u306e)?(?:\u5355\u8bcd"
    r"|\u5358\u8a9e)|\u30d5\u30ec\u30fc\u30ba"
)
_WORD: Final = re.compile(
    r"[ \t\r\n,;:*|-]{0,8}+(?P<number>\(?\d{1,2}[.):]{0,2}[ \t]?+)?(?P<word>[^\s,;:*|.!?()-]{1,32}+)"
)
_SHAPE: Final = re.compile(r"[^\W\d_]{3,8}")
_LEAST: Final = 12
_MOST: Final = 60
"""Maximum number of words after a label that are examined."""
_SENTENCE: Final = frozenset(
    [
        "the",
        "and",
        "are",
        "for",
        "was",
        "not",
        "with",
        "from",
        "have",
        "has",
        "had",
        "but",
        "your",
        "our",
        "his",
        "her",
        "she",
        "him",
        "them",
        "were",
        "been",
        "who",
        "how",
        "why",
        "would",
        "should",
        "could",
        "did",
        "does",
        "its",
        "has",
        "their",
        "these",
        "those",
        "also",
        "because",
        "der",
        "die",
        "das",
        "und",
        "ist",
        "sind",
        "nicht",
        "mit",
        "von",
        "ein",
        "eine",
        "einen",
        "auf",
        "fur",
        "dem",
        "den",
        "les",
        "des",
        "une",
        "est",
        "dans",
        "pour",
        "que",
        "qui",
        "los",
        "las",
        "una",
        "por",
        "con",
        "para",
        "del",
        "che",
        "non",
        "per",
        "sono",
        "com",
        "uma",
        "dos",
        "het",
        "een",
        "van",
        "niet",
        "voor",
        "zijn",
        "nie",
        "jest",
    ]
)
"""Words that occur in ordinary sentences and not in seed phrases."""


def wallet_words(text: str) -> Iterator[Finding]:
    """Yield wallet seed phrases."""
    small = lowered(text)
    if not any(map(small.__contains__, STEMS)):
        return
    read = 0
    for label in _LABEL.finditer(small):
        if label.start() >= read and (place := _words_behind(small, label.end())):
            read = place[1]
            yield Finding("passphrase", *place)


def _words_behind(small: str, place: int) -> tuple[int, int] | None:
    """Return the span of the first sufficiently long run of words after a label; None when there is none."""
    count = start = end = 0
    for _ in range(_MOST):
        found = _WORD.match(small, place)
        if found is None:
            break
        place = found.end()
        word = found["word"]
        if _SHAPE.fullmatch(word) and word not in _SENTENCE:
            start = start if count else found.start("number" if found["number"] else "word")
            count, end = count + 1, place
            continue
        if count >= _LEAST:
            break
        count = 0
    return (start, end) if count >= _LEAST else None

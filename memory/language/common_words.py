"""Frequent words of all languages. The words of a language are in its folder, `memory/language/locales/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .locales.common_words import CommonWords
from .locales.czech.common_words import CZECH_WORDS
from .locales.danish.common_words import DANISH_WORDS
from .locales.dutch.common_words import DUTCH_WORDS
from .locales.english.common_words import ENGLISH_WORDS
from .locales.finnish.common_words import FINNISH_WORDS
from .locales.french.common_words import FRENCH_WORDS
from .locales.german.common_words import GERMAN_WORDS
from .locales.hungarian.common_words import HUNGARIAN_WORDS
from .locales.indonesian.common_words import INDONESIAN_WORDS
from .locales.italian.common_words import ITALIAN_WORDS
from .locales.notation import words
from .locales.polish.common_words import POLISH_WORDS
from .locales.portuguese.common_words import PORTUGUESE_WORDS
from .locales.romanian.common_words import ROMANIAN_WORDS
from .locales.spanish.common_words import SPANISH_WORDS
from .locales.swedish.common_words import SWEDISH_WORDS
from .locales.turkish.common_words import TURKISH_WORDS

_ALL: Final[tuple[CommonWords, ...]] = (
    ENGLISH_WORDS,
    GERMAN_WORDS,
    SPANISH_WORDS,
    FRENCH_WORDS,
    ITALIAN_WORDS,
    PORTUGUESE_WORDS,
    DUTCH_WORDS,
    POLISH_WORDS,
    SWEDISH_WORDS,
    DANISH_WORDS,
    FINNISH_WORDS,
    CZECH_WORDS,
    TURKISH_WORDS,
    HUNGARIAN_WORDS,
    ROMANIAN_WORDS,
    INDONESIAN_WORDS,
)

FUNCTION_WORDS: Final[Mapping[str, str]] = {each.tag: each.function for each in _ALL if each.function}
"""Function words by language tag."""
FREQUENT_WORDS: Final[Mapping[str, frozenset[str]]] = {
    each.tag: frozenset(words(each.frequent)) for each in _ALL if each.frequent
}
"""Frequent words of statements by language tag."""
FIRST_PERSON: Final = frozenset(" ".join(each.first_person for each in _ALL).split())
SHORT_ANSWERS: Final = " ".join(each.short_answers for each in _ALL)

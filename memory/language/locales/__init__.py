"""Locale packs: the words and phrases of a language, as data.

`define_locale_pack` builds a pack. `locale` and `locales` return registered packs by name. The code that uses the packs
contains no words of any language.
"""

from __future__ import annotations

from .definition import LocalePackError, define_locale_pack
from .notation import phrases, words
from .pack import (
    EventWord,
    EventWords,
    Implied,
    Locale,
    Markers,
    Nouns,
    PredicateRule,
    QuestionWords,
    TimeWords,
    Valued,
    WordOrder,
)
from .registry import available_locales, locale, locales

__all__ = [
    "EventWord",
    "EventWords",
    "Implied",
    "Locale",
    "LocalePackError",
    "Markers",
    "Nouns",
    "PredicateRule",
    "QuestionWords",
    "TimeWords",
    "Valued",
    "WordOrder",
    "available_locales",
    "define_locale_pack",
    "locale",
    "locales",
    "phrases",
    "words",
]

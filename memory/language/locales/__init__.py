"""Locale packs: the words and phrases of a language, as data. `pack.py` defines a pack; LOCALES registers it.

The rules that use a pack (`memory/language/tokenizer.py`, `claims.py`, `memory/facts/relations.py`) contain no word of
any language.
"""

from __future__ import annotations

from collections.abc import Mapping

from .english import ENGLISH
from .pack import Implied, Locale, Markers, PredicateRule, Valued

__all__ = ["LOCALES", "Implied", "Locale", "Markers", "PredicateRule", "Valued", "locale"]

LOCALES: Mapping[str, Locale] = {ENGLISH.name: ENGLISH}


def locale(name: str) -> Locale:
    """Return a registered pack. Raises ValueError for any other name."""
    found = LOCALES.get(name)
    if found is None:
        raise ValueError(f"there is no locale {name!r}; there is {', '.join(sorted(LOCALES))}")
    return found

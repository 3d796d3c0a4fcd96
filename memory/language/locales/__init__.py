"""Locale packs: what a language's statements are taken apart by. A pack is data (`pack.py` says which), and a line in
LOCALES.

The rules that read a pack (`memory/language/tokenizer.py`, `claims.py`, `relations.py`) know no word of any language.
"""

from __future__ import annotations

from collections.abc import Mapping

from .english import ENGLISH
from .pack import Implied, Locale, Markers, PredicateRule, Valued

__all__ = ["LOCALES", "Implied", "Locale", "Markers", "PredicateRule", "Valued", "locale"]

LOCALES: Mapping[str, Locale] = {ENGLISH.name: ENGLISH}


def locale(name: str) -> Locale:
    """Raises ValueError for one that nobody has registered."""
    found = LOCALES.get(name)
    if found is None:
        raise ValueError(f"there is no locale {name!r}; there is {', '.join(sorted(LOCALES))}")
    return found

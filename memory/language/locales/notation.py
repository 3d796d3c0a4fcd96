"""Notation for lists of words and phrases in locale packs."""

from __future__ import annotations

import itertools
import re

_CHOICE = re.compile(r"\{([^}]*)\}")


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Return the phrases of a text. Bars separate phrases. Braces contain alternatives: `{start,begin} {at,with}` gives
    four phrases."""
    return tuple(dict.fromkeys(each for phrase in text.split("|") for each in _spelled(phrase)))


def _spelled(phrase: str) -> list[str]:
    parts = _CHOICE.split(phrase)
    chosen = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return [" ".join("".join(each).split()) for each in itertools.product(*chosen)]

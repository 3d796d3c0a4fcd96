"""Data model of a language's rules for orders to the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrderRules:
    """Patterns of one language: regular expressions in which `<name>` is replaced with a class of words.

    Comparison ignores case, accents and doubled spaces. Write accents as the language does: they are removed from the
    patterns, too. `<Name>` is a capitalised word, `<link>` an address, `<start>` the beginning of a clause.
    """

    language: str
    words: Mapping[str, str]
    """Classes of words. A class may use earlier classes."""
    signs: str
    """Words of orders. A text without any of them contains no order and is not compared with the patterns."""
    orders: tuple[str, ...]
    """Orders that are never a preference."""
    standing: tuple[str, ...]
    """Orders that may be a preference about answers."""
    preferences: tuple[str, ...]
    """Patterns that make a standing order in the same sentence a preference."""
    joints: str
    """Words that begin a clause, such as conjunctions."""

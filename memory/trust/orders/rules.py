"""The shape of a language's rules for orders to the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrderRules:
    """Patterns of one language. They are regular expressions in which `<name>` stands for a class of words.

    They are compared without case, accents and doubled spaces. Write accents as the language does: they are removed
    from the patterns, too. `<Name>` is a capitalised word, `<link>` an address, `<start>` the beginning of a clause.
    """

    language: str
    words: Mapping[str, str]
    """Classes of words. A class may use the classes before it."""
    signs: str
    """Words of which every order has one: a text without them is not compared with the patterns."""
    orders: tuple[str, ...]
    """Orders that are never a preference."""
    standing: tuple[str, ...]
    """Orders that may be a preference about answers."""
    preferences: tuple[str, ...]
    """What makes a standing order a preference, when it stands in the same sentence."""
    joints: str
    """Words that begin a clause, such as conjunctions."""

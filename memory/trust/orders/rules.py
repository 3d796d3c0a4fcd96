"""Data model of the patterns by which orders to the assistant are recognised in one language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OrderRules:
    """Patterns of one language: regular expressions in which `<name>` is replaced with the words of a class.

    Case, accents and doubled spaces are ignored. Patterns may contain accents, because accents are removed from the
    patterns and from the text. Three classes always exist: `<Name>` is a capitalised word, `<link>` is an address, and
    `<start>` is the beginning of a clause.
    """

    language: str
    words: Mapping[str, str]
    """The classes of words by name. The words of a class may contain the `<name>` of an earlier class."""
    signs: str
    """Words that occur in orders. A text without any of these words contains no order and is not compared further."""
    orders: tuple[str, ...]
    """Patterns of orders that are never a preference."""
    standing: tuple[str, ...]
    """Patterns of orders that may be a preference about answers."""
    preferences: tuple[str, ...]
    """Patterns of preferences. A sentence that matches one of `standing` and one of these patterns is no order."""
    joints: str
    """Words after which a clause may begin, such as conjunctions."""

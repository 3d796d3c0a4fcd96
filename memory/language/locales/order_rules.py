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


def short_order_rules(
    language: str,
    *,
    always: str,
    promote: str,
    bend: str,
    rules: str,
    betray: str,
    treasure: str,
    mine: str,
    has_spaces: bool = True,
) -> OrderRules:
    """Return the rules of a language from short word lists. Each list is a regular expression of alternatives.

    Two kinds of orders are recognised. The first kind orders the assistant to break a rule or to reveal a secret. The
    second kind orders the assistant to always say or recommend something; it may be a preference about answers.

    Args:
        language: the name of the language.
        always: words for "always", "never", "from now on", "when somebody asks".
        promote: words for "recommend", "say", "mention", in the imperative only.
        bend: words for "ignore".
        rules: words for things that the assistant must not ignore, such as "instructions".
        betray: words for "reveal" and "send".
        treasure: words for things that the assistant must not reveal, such as "password".
        mine: words that make an order a preference: "me", "us", names of languages, "short", "polite".
        has_spaces: False when the ends of words cannot be searched in the script of the language.
    """
    b = r"\b" if has_spaces else ""
    gap = r"[^.!?。\n]{0,60}"
    whole = rf"{promote}|{bend}|{betray}"
    return OrderRules(
        language=language,
        joints="",
        words={},
        signs=whole if has_spaces else r"\w+",
        orders=(
            rf"{b}(?:{bend}){b}{gap}(?:{rules})",
            rf"(?:{rules}){gap}{b}(?:{bend}){b}",
            rf"{b}(?:{betray}){b}{gap}(?:{treasure})",
            rf"(?:{treasure}){gap}{b}(?:{betray}){b}",
        ),
        standing=(
            rf"{b}(?:{always}){b}{gap}{b}(?:{promote}){b}",
            rf"{b}(?:{promote}){b}{gap}{b}(?:{always}){b}",
        ),
        preferences=(rf"{b}(?:{mine}){b}",),
    )

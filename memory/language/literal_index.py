"""Index of regular expressions by the literal strings that they need; pure.

Many patterns are searched in every text. The index selects the patterns that may match a text, without running them.
Example: `(?:never|always) (?:say|tell)` can only match a text that contains `never` or `always`, and `say` or `tell`.
The literals are computed from the pattern itself, so a new or changed pattern needs no other edit. The index reads a
text word by word and caches the literals found in each word, because most words occur in many texts.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import add
from typing import Any, Final

WORDS_KEPT: Final = 8_192
"""Number of words in the cache of each index."""
WORD_MAX: Final = 32
"""Maximum length of a cached word, in characters."""
_EXACT_MAX: Final = 256
"""Maximum number of strings to which a part of a pattern is expanded."""
_REPEATED_MAX: Final = 8
"""Maximum number of repetitions that are expanded."""
_CHOICE_MAX: Final = 16
"""Maximum number of characters in a set such as `[abc]` that is expanded."""
_BEGINNING: Final = 3
"""Number of leading characters by which literals are looked up."""
_SHORT: Final = 400
"""Maximum length of a text in which literals of several words are searched. In a longer text this search costs as much
as running the pattern."""
_PHRASES_MAX: Final = 64
"""Maximum number of literals in a clause for which literals of several words are searched."""
_RARITY: Final = {" ": 0.5, ".": 1, ",": 1, "'": 1, "-": 1, ":": 1.5, '"': 1.5}
"""Rarity of a character: a higher value means that fewer texts contain it. A letter or digit has 1. Other characters
that are not listed have 2."""
_SRE: Final[Any] = importlib.import_module("re._parser")
"""The parser of `re`. Its syntax tree is not documented. A node of an unknown type is treated as a node that needs no
literal."""

Clause = frozenset[str]
"""Alternative literals of a pattern. Every match of the pattern contains at least one of them."""


def one_case(text: str) -> str:
    """Return the text in lower case. Letters that `re.IGNORECASE` treats like an ASCII letter become that letter."""
    if text.isascii():
        return text.lower()
    return text.replace("İ", "i").casefold().replace("ı", "i")


def needed_literals(pattern: str) -> tuple[Clause, ...]:
    """Return the clauses of a pattern, with case-folded literals. A match contains at least one literal of each
    clause."""
    return tuple(dict.fromkeys(_sequence(_SRE.parse(pattern)).all_clauses))


@dataclass(frozen=True, slots=True)
class _Needs:
    """The literals that a text must contain before the pattern can match it."""

    number: int
    """Position of the pattern."""
    clauses: int
    """The clauses that words of the text must fulfil, one bit for each clause."""
    phrases: tuple[Clause, ...]
    """The clauses with literals of several words. They are searched as substrings of the text."""

    def are_in(self, text: str, found: int) -> bool:
        if self.clauses & found != self.clauses:
            return False
        return len(text) > _SHORT or all(any(phrase in text for phrase in clause) for clause in self.phrases)


class LiteralIndex:
    """Index that selects the patterns that may match a text."""

    def __init__(self, patterns: Sequence[str]) -> None:
        clauses: dict[Clause, int] = {}
        self._always: list[int] = []
        self._by_key: dict[int, list[_Needs]] = {}
        for number, pattern in enumerate(patterns):
            needed = needed_literals(pattern)
            pieces = [each for each in map(_pieces, needed) if each is not None]
            if not pieces:
                self._always.append(number)
                continue
            bits = [clauses.setdefault(clause, 1 << len(clauses)) for clause in pieces]
            phrases = tuple(each for each in needed if len(each) <= _PHRASES_MAX and any(map(_has_gap, each)))
            key = clauses[min(pieces, key=_frequency)]
            self._by_key.setdefault(key, []).append(_Needs(number, sum(set(bits)), phrases))
        self._keys = sum(self._by_key)
        by_literal: dict[str, int] = {}
        for clause, bit in clauses.items():
            for literal in clause:
                by_literal[literal] = by_literal.get(literal, 0) | bit
        self._by_beginning: dict[str, list[tuple[str, int]]] = {}
        for literal, found in by_literal.items():
            self._by_beginning.setdefault(literal[:_BEGINNING], []).append((literal, found))
        self._kept = lru_cache(maxsize=WORDS_KEPT)(self._read)

    def candidates(self, text: str) -> list[int]:
        """Return the positions of the patterns that may match the text, in ascending order. The text is case-folded."""
        found = 0
        for word in text.split():
            found |= self._kept(word) if len(word) <= WORD_MAX else self._read(word)
        numbers = [*self._always]
        keys = found & self._keys
        while keys:
            key = keys & -keys
            keys ^= key
            numbers += [needs.number for needs in self._by_key[key] if needs.are_in(text, found)]
        return sorted(numbers)

    def _read(self, word: str) -> int:
        """Return the clauses that have a literal in this word, one bit for each clause."""
        found = 0
        word = f" {word} "
        pairs = [*map(add, word, word[1:])]
        for beginning in self._by_beginning.keys() & {*word, *pairs, *map(add, pairs, word[2:])}:
            for literal, bits in self._by_beginning[beginning]:
                if literal in word:
                    found |= bits
        return found


# ------------------------------------------------------------------------------------------------ literals
def _has_gap(literal: str) -> bool:
    return len(literal.split()) > 1


def _pieces(clause: Clause) -> Clause | None:
    """Return one word of each literal; None when one of these words is too common to select texts."""
    pieces = frozenset(map(_piece, clause))
    return pieces if all(map(_is_selective, pieces)) else None


@lru_cache(maxsize=WORDS_KEPT)
def _piece(literal: str) -> str:
    """Return the longest word of a literal. The spaces next to the word in the literal are kept."""
    words = "".join(" " if letter.isspace() else letter for letter in literal).split(" ")
    last = len(words) - 1
    pieces = (f"{' ' * (place > 0)}{word}{' ' * (place < last)}" for place, word in enumerate(words) if word)
    return max(pieces, key=lambda piece: len(piece.strip()), default="")


def _is_selective(piece: str) -> bool:
    bare = piece.strip()
    return len(bare) > 1 or (bool(bare) and not bare.isalnum())


def _frequency(clause: Clause) -> float:
    """Return an estimate of the share of texts that contain one of the literals. Longer literals are rarer."""
    return sum(map(_frequency_of, clause))


@lru_cache(maxsize=WORDS_KEPT)
def _frequency_of(literal: str) -> float:
    return float(10.0 ** -sum(1 if letter.isalnum() else _RARITY.get(letter, 2) for letter in _piece(literal)))


# ------------------------------------------------------------------------------------------------ a pattern
@dataclass(frozen=True, slots=True)
class _Read:
    """The literals that a part of a pattern needs."""

    exact: Clause | None = None
    """All strings that the part matches; None when there are too many."""
    clauses: tuple[Clause, ...] = ()
    ending: Clause | None = None
    """All possible endings of a match. Set only when `exact` is None and the endings are few."""

    @property
    def all_clauses(self) -> tuple[Clause, ...]:
        return tuple(each for each in (*self.clauses, self.exact, self.ending) if each and all(each))


def _sequence(items: Iterable[tuple[Any, Any]]) -> _Read:
    run: Clause | None = frozenset(("",))
    clauses: list[Clause | None] = []
    is_exact = True
    for name, value in items:
        if name is _SRE.LITERAL and run is not None:
            letter = one_case(chr(value))
            run = frozenset(before + letter for before in run)
            continue
        read = _item(str(name), value)
        clauses += read.clauses
        if read.exact is not None and run is not None and len(run) * len(read.exact) <= _EXACT_MAX:
            run = frozenset(before + after for before in run for after in read.exact)
        else:
            is_exact = False
            clauses.append(run)
            run = read.ending if read.exact is None else read.exact
    complete = tuple(each for each in clauses if each and all(each))
    return _Read(run, complete) if is_exact else _Read(None, complete, run)


def _item(name: str, value: Any) -> _Read:
    """Return the literals that one item of the syntax tree of `re` needs."""
    match name:
        case "LITERAL":
            return _Read(frozenset((one_case(chr(value)),)))
        case "IN":
            return _Read(_set(value))
        case "AT" | "ASSERT_NOT":
            return _Read(frozenset(("",)))
        case "ASSERT":
            return _Read(frozenset(("",)), _sequence(value[1]).all_clauses)
        case "SUBPATTERN":
            return _sequence(value[-1])
        case "ATOMIC_GROUP":
            return _sequence(value)
        case "BRANCH":
            return _branch(list(value[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _repeated(*value)
        case _:
            return _Read()


def _set(choices: Sequence[tuple[Any, Any]]) -> Clause | None:
    found = [one_case(chr(value)) for name, value in choices if str(name) == "LITERAL"]
    return frozenset(found) if len(found) == len(choices) <= _CHOICE_MAX else None


def _repeated(least: int, most: int, items: Iterable[tuple[Any, Any]]) -> _Read:
    read = _sequence(items)
    if not least:
        return _Read(read.exact | {""} if read.exact is not None and most == 1 else None)
    if most == 1:
        return read
    if read.exact is None:
        return _Read(None, read.all_clauses, read.ending)
    exact = read.exact
    if len(exact) ** min(least, _REPEATED_MAX) <= _EXACT_MAX:
        exact = frozenset(map("".join, product(read.exact, repeat=min(least, _REPEATED_MAX))))
    if least == most <= _REPEATED_MAX and exact is not read.exact:
        return _Read(exact, read.clauses)
    return _Read(None, (*read.clauses, exact), exact)


def _branch(branches: Sequence[Iterable[tuple[Any, Any]]]) -> _Read:
    read = [_sequence(each) for each in branches]
    exact = [each.exact for each in read if each.exact is not None]
    if len(exact) == len(read) and sum(map(len, exact)) <= _EXACT_MAX:
        return _Read(frozenset().union(*exact))
    best = [_rarest(each.all_clauses) for each in read]
    known = [each for each in best if each is not None]
    return _Read(None, (frozenset().union(*known),) if len(known) == len(best) else ())


def _rarest(clauses: Iterable[Clause]) -> Clause | None:
    """Return the clause that probably occurs in the fewest texts; None when every clause is too common."""
    return min((each for each in clauses if _pieces(each)), key=_frequency, default=None)

"""A literal index: which of many regular expressions a text may match, without a search for any of them; pure.

Each pattern needs certain literals: `(?:never|always) (?:say|tell)` needs `never` or `always`, and `say` or `tell`.
They are read from the pattern itself, so a pattern that is added or changed needs nothing else. A text is read word by
word, and what a word holds is kept: most words of most texts are the same ones.
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
"""Words whose literals are kept, of each index."""
WORD_MAX: Final = 32
"""Characters of a word that is kept."""
_EXACT_MAX: Final = 256
"""Texts that a part of a pattern is spelled out to, at most."""
_REPEATED_MAX: Final = 8
"""Times that a part is spelled out one after the other, at most."""
_CHOICE_MAX: Final = 16
"""Characters of a set that is spelled out, at most."""
_BEGINNING: Final = 3
"""Signs by which literals are looked up."""
_SHORT: Final = 400
"""Characters of a text in which several words are looked up as they stand: in a longer one a search costs as much."""
_PHRASES_MAX: Final = 64
"""Literals of several words that are looked up as they stand, at most."""
_RARITY: Final = {" ": 0.5, ".": 1, ",": 1, "'": 1, "-": 1, ":": 1.5, '"': 1.5}
"""How rare a sign is. A letter is 1, other signs are 2."""
_SRE: Final[Any] = importlib.import_module("re._parser")
"""The parser of `re`. The tree that it makes is not described; what is not known here needs no literal."""

Clause = frozenset[str]
"""Literals at least one of which every match has."""


def one_case(text: str) -> str:
    """Return the text with small letters alone, and what `re.IGNORECASE` takes for an ASCII letter as that letter."""
    if text.isascii():
        return text.lower()
    return text.replace("İ", "i").casefold().replace("ı", "i")


def needed_literals(pattern: str) -> tuple[Clause, ...]:
    """Return literals of one case that every match of a pattern has in the text, one of each clause."""
    return tuple(dict.fromkeys(_sequence(_SRE.parse(pattern)).all_clauses))


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a pattern needs: clauses as bits, and clauses of several words, which are looked up as they stand."""

    number: int
    clauses: int
    phrases: tuple[Clause, ...]

    def are_in(self, text: str, found: int) -> bool:
        if self.clauses & found != self.clauses:
            return False
        return len(text) > _SHORT or all(any(phrase in text for phrase in clause) for clause in self.phrases)


class LiteralIndex:
    """Tells which of some patterns a text may match: those whose literals it has."""

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
        """Return the places of the patterns that a text of one case may match, in their order."""
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
        """Return the clauses of which a word has a literal, as bits."""
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
    """Return a word of each literal, with a space where white space stands beside it. None: a word tells nothing."""
    pieces = frozenset(map(_piece, clause))
    return pieces if all(map(_tells, pieces)) else None


@lru_cache(maxsize=WORDS_KEPT)
def _piece(literal: str) -> str:
    """Return the longest word of a literal, with a space on each side where the literal has white space."""
    words = "".join(" " if letter.isspace() else letter for letter in literal).split(" ")
    last = len(words) - 1
    pieces = (f"{' ' * (place > 0)}{word}{' ' * (place < last)}" for place, word in enumerate(words) if word)
    return max(pieces, key=lambda piece: len(piece.strip()), default="")


def _tells(piece: str) -> bool:
    bare = piece.strip()
    return len(bare) > 1 or (bool(bare) and not bare.isalnum())


def _frequency(clause: Clause) -> float:
    """Return a guess of how often texts have one of the literals, by their length."""
    return sum(map(_frequency_of, clause))


@lru_cache(maxsize=WORDS_KEPT)
def _frequency_of(literal: str) -> float:
    return float(10.0 ** -sum(1 if letter.isalnum() else _RARITY.get(letter, 2) for letter in _piece(literal)))


# ------------------------------------------------------------------------------------------------ a pattern
@dataclass(frozen=True, slots=True)
class _Read:
    """What a part of a pattern needs."""

    exact: Clause | None = None
    """All texts that it matches, if they are few."""
    clauses: tuple[Clause, ...] = ()
    ending: Clause | None = None
    """All texts that a match may end in, if they are few, where `exact` is not known."""

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
    told = tuple(each for each in clauses if each and all(each))
    return _Read(run, told) if is_exact else _Read(None, told, run)


def _item(name: str, value: Any) -> _Read:
    """Read one item of a tree of `re`."""
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
    """Return the clause that the fewest texts have; None when none tells anything."""
    return min((each for each in clauses if _pieces(each)), key=_frequency, default=None)

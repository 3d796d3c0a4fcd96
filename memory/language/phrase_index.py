"""Index of a locale pack's phrases. A phrase is compared with the beginning of a clause; pure.

A pack has more than a thousand phrases, so the index groups the phrases by their first words. In a phrase, `#` matches
a number and `*` matches one or two words of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from .locales import Locale, PredicateRule
from .tokenizer import Token, counts, says_how

_STAR_WORDS_MAX = 2
"""Maximum number of words that `*` matches."""
_OPEN = frozenset(("#", "*"))


@dataclass(frozen=True, slots=True)
class Phrase:
    words: tuple[str, ...]
    needs: frozenset[str]
    """The words of the phrase without `#` and `*`. The phrase matches only a clause that contains all of them."""
    rule: PredicateRule | None = None


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases with the same first word, each with its rank. Rank 0 is the longest phrase. Equally long phrases have the
    order of the pack."""

    alone: tuple[tuple[int, Phrase], ...]
    """Phrases that need only their first word."""
    by_word: Mapping[str, tuple[tuple[int, Phrase], ...]]
    """The other phrases, by the longest of the other words that they need."""

    def that_may_match(self, said: Set[str]) -> list[tuple[int, Phrase]]:
        """Return the phrases that need only words of `said`, with their ranks, in the order of the ranks."""
        others = [each for word in self.by_word.keys() & said for each in self.by_word[word] if each[1].needs <= said]
        return sorted((*self.alone, *others), key=itemgetter(0)) if others else [*self.alone]


Shelf = Mapping[str, Phrases]
"""Phrases by their first word."""


@dataclass(frozen=True, slots=True)
class PhraseIndex:
    rules: Shelf
    ends: Shelf
    ends_work: Shelf
    ended: Shelf
    gone: Shelf
    begins: Shelf
    carriers: Shelf
    switches: Shelf
    becomes: Shelf


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A phrase that matches the beginning of a clause, and the object of the clause."""

    phrase: Phrase
    end: int
    """Number of tokens in the match."""
    object: tuple[Token, ...]

    @property
    def size(self) -> int:
        """Number of words in the phrase."""
        return len(self.phrase.words)


@lru_cache(maxsize=8)
def index_phrases(pack: Locale) -> PhraseIndex:
    """Build the index of a pack, once per pack."""
    return PhraseIndex(
        rules=_shelf(_phrase(each, rule) for rule in pack.rules for each in rule.phrases),
        ends=_shelf(_phrases(pack.ends)),
        ends_work=_shelf(_phrases(pack.ends_work)),
        ended=_shelf(_phrases(pack.ended)),
        gone=_shelf(_phrases(pack.gone)),
        begins=_shelf(_phrases(pack.begins)),
        carriers=_shelf(_phrases(pack.carriers)),
        switches=_shelf(_phrases(pack.switches)),
        becomes=_shelf(_phrases(pack.becomes)),
    )


def match_phrase(
    found: Sequence[Token], shelf: Shelf, pack: Locale, fits: Callable[[PhraseMatch], bool] = lambda match: True
) -> PhraseMatch | None:
    """Return the longest phrase of the shelf that matches the beginning of the clause and for which `fits` is true.

    Among equally long phrases, the first in the pack wins.
    """
    if not found:
        return None
    beginnings = dict.fromkeys((found[0].base, found[0].text, found[0].word))
    shelves = [shelf[first] for first in beginnings if first in shelf]
    if not shelves:
        return None
    said = {word for token in found for word in (token.base, token.text, token.word)}
    best: PhraseMatch | None = None
    for phrases in shelves:
        for _, phrase in phrases.that_may_match(said):
            if best is not None and len(phrase.words) <= best.size:
                break  # the phrases are sorted by length
            aligned = _aligned(found, phrase.words, pack)
            if aligned is not None:
                candidate = PhraseMatch(phrase, len(aligned), _object(found, aligned, pack))
                if fits(candidate):
                    best = candidate
                    break
    return best


def _phrases(texts: Iterable[str]) -> Iterable[Phrase]:
    return (_phrase(each) for each in texts)


def _phrase(text: str, rule: PredicateRule | None = None) -> Phrase:
    words = tuple(text.split())
    return Phrase(words, frozenset(words) - _OPEN, rule)


def _shelf(phrases: Iterable[Phrase]) -> Shelf:
    found: dict[str, list[Phrase]] = {}
    for phrase in phrases:
        found.setdefault(phrase.words[0], []).append(phrase)
    return {first: _group(first, sorted(each, key=lambda phrase: -len(phrase.words))) for first, each in found.items()}


def _group(first: str, phrases: Iterable[Phrase]) -> Phrases:
    alone: list[tuple[int, Phrase]] = []
    by_word: dict[str, list[tuple[int, Phrase]]] = {}
    for rank, phrase in enumerate(phrases):
        others = phrase.needs - {first}
        (by_word.setdefault(max(others, key=len), []) if others else alone).append((rank, phrase))
    return Phrases(tuple(alone), {word: tuple(each) for word, each in by_word.items()})


def _object(found: Sequence[Token], aligned: Sequence[str], pack: Locale) -> tuple[Token, ...]:
    """Return the tokens of the object: tokens that match `#` or `*`, skipped tokens with a meaning (adverbs of manner),
    and all tokens after the phrase."""
    spelled = zip(found, aligned, strict=False)
    captured = [token for token, word in spelled if word in ("#", "*", "") and counts(token, pack)]
    return (*captured, *found[len(aligned) :])


def _aligned(
    found: Sequence[Token], words: Sequence[str], pack: Locale, *, first: bool = True
) -> tuple[str, ...] | None:
    """Return, for each token that the phrase covers, the word of the phrase that matches it ("" for a skipped token).

    Return None when the phrase does not match. The first token may not be skipped.
    """
    if not words:
        return ()
    word, rest = words[0], words[1:]
    passed = 0
    while passed < len(found) and not first and not _fits(found[passed], word) and _may_be_skipped(found[passed], pack):
        passed += 1
    for size in range(1, (_STAR_WORDS_MAX if word == "*" else 1) + 1):
        taken = found[passed : passed + size]
        if len(taken) < size or not (word == "*" or _fits(taken[0], word)):
            return None
        tail = _aligned(found[passed + size :], rest, pack, first=False)
        if tail is not None:
            return ("",) * passed + (word,) * size + tail
    return None


def _fits(token: Token, word: str) -> bool:
    if word == "#":
        return token.is_number
    return not token.is_name and word in (token.base, token.text, token.word)


def _may_be_skipped(token: Token, pack: Locale) -> bool:
    return (token.text in pack.stop_words and token.text not in pack.separators) or says_how(token, pack)

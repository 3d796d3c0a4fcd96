"""Words of a statement, and the words of a text that are equal to them; pure.

Two words are equal if they begin alike, or if they have the same stem or the same concept. Texts in other scripts or
languages cannot be compared by words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from math import ceil
from typing import Final

from ..language.common_words import FREQUENT_WORDS, FUNCTION_WORDS
from ..language.locales import Locale
from ..language.text import folded
from ..language.tokenizer import compared
from .clauses import UNSPACED
from .concepts import CONCEPTS

_SAMPLE: Final = 4_000
"""Number of leading characters that decide the language and the script of a text."""
_STEM: Final = 4
_STEM_SHARE: Final = 0.6
"""Two words are alike when they begin with the same letters: at least `_STEM` letters, and at least this share of the
longer word."""
_TEXTS_KEPT: Final = 64
"""Number of texts in each word cache for short texts. One judgement reads the words of the same texts several times."""
_LONG_TEXTS_KEPT: Final = 4
_COMPARED_MAX: Final = 32
"""Maximum number of words with the same first letters that are compared one by one. For more words a set of beginnings
is faster."""
_LONGEST_WORD: Final = 64
"""Maximum length, in letters, of a word in a set of beginnings."""
_CONCEPT_MAX: Final = 24
"""Maximum length, in letters, of the beginning of a word that is looked up among the concepts."""
_ASCII_WORD: Final = re.compile(r"\d+(?:[.,:]\d+)*|[A-Za-z]+")
_WORD: Final = re.compile(rf"\d+(?:[.,:]\d+)*|{UNSPACED.pattern}+|(?:(?!{UNSPACED.pattern})[^\W\d_])+")
"""A number, or a run of letters of scripts with or without spaces between words."""
_UNSPACED_RUN: Final = re.compile(f"{UNSPACED.pattern}+")
_LATIN: Final = "LATIN"


def count_held(statement: str, text: str, packs: tuple[Locale, ...]) -> tuple[int, int]:
    """Return how many content words of a statement a text contains, and how many the statement has.

    In a script without spaces, a pair of neighbouring characters counts as a word.
    """
    return StatementWords(statement, "user", packs).count_held(folded(text))


class StatementWords:
    """A statement and its words, to compare the statement with texts."""

    def __init__(self, statement: str, subject: str, packs: tuple[Locale, ...]) -> None:
        self._packs = packs
        self.statement = statement
        self._text = folded(statement)
        self._language = language_of(self._text)
        about = "" if subject == "user" else f" {subject.replace('-', ' ')}"
        self._words = content_words(f"{self._text}{about}", self._language or "en")
        self._said = content_words(self._text, self._language or "en")
        self._unspaced = frozenset(part for run in _UNSPACED_RUN.findall(self._text) for part in _parts(run))
        """The pairs of neighbouring characters in scripts without spaces, and the single characters between other
        scripts."""
        self._shared: dict[str, bool] = {}

    def shared(self, text: str) -> bool:
        """Return whether a text contains a content word, number or name of the statement, or a word of the same
        concept."""
        found = self._shared.get(text)
        if found is None:
            found = self._shared[text] = self._has_word_of(text)
        return found

    def _has_word_of(self, text: str) -> bool:
        if not text.isascii() and any(part in text for part in self._unspaced):
            return True
        words = self._content_of(text)
        return not words.all.isdisjoint(self._words) or any(words.has(one) for one in self._words)

    def held_by(self, text: str) -> bool:
        """Return whether a text contains at least half of the statement's content words."""
        words = self._content_of(text)
        held = sum(words.has(one) for one in self._said)
        return bool(held) and 2 * held >= len(self._said)

    def count_held(self, text: str) -> tuple[int, int]:
        """Return the number of content words that a text contains, and the number of all content words."""
        words = self._content_of(text)
        spaced = [one for one in self._said if not UNSPACED.search(one)]
        held = sum(words.has(one) for one in spaced) + sum(part in text for part in self._unspaced)
        return held, len(spaced) + len(self._unspaced)

    def has_part(self, words: Sequence[str], text: str) -> bool:
        """Return whether a text contains these content words of the statement side by side."""
        wanted = " ".join(words)
        return bool(wanted) and f" {wanted} " in _word_set(text, self._language or "en", self._packs).spaced

    def adds_to(self, closes: str, text: str) -> bool:
        """Return whether a text contains a content word of the statement that the statement `closes` lacks. Without
        such a word in the statement, the result is True."""
        old, words = self._content_of(folded(closes)), self._content_of(text)
        new = [one for one in self._said if not old.has(one)]
        return not new or any(words.has(one) for one in new)

    def missing_in(self, text: str) -> Sequence[str]:
        """Return the content words of the statement that a text lacks, in their order."""
        words = self._content_of(text)
        return [one for one in self._said if not words.has(one)]

    def incomparable(self, text: str) -> bool:
        """Return whether a text is in another script or language than the statement."""
        if _script(text) != _script(self._text):
            return True
        language = language_of(text)
        return language is not None and language != (self._language or "en")

    def stands_in(self, text: str) -> bool:
        """Return whether a text contains the statement word for word.

        Only the content words are compared, in their order. A statement with at most one content word is compared with
        all its words.
        """
        if len(self._said) > 1:
            wanted = " ".join(self._said)
            return f" {wanted} " in _word_set(text, self._language or "en", self._packs).spaced
        return bool(self._text) and f" {_spaced(self._text)} " in f" {_spaced(text)} "

    def _language_of(self, text: str) -> str:
        return language_of(text) or self._language or "en"

    def _content_of(self, text: str) -> _WordSet:
        return _word_set(text, self._language_of(text), self._packs)


class _WordSet:
    """The content words of a text. `has` finds words that are equal, begin alike, or share a stem or a concept."""

    def __init__(self, words: Sequence[str], packs: tuple[Locale, ...]) -> None:
        self.all = frozenset(words)
        self.spaced = f" {' '.join(words)} "
        self._packs = packs

    def has(self, word: str) -> bool:
        if word in self.all or self._begins_alike(word):
            return True
        return not self._forms.isdisjoint(_forms(word, self._packs))

    def _begins_alike(self, word: str) -> bool:
        beginning = word[:_STEM]
        others = self._by_beginning.get(beginning, ())
        if len(others) <= _COMPARED_MAX:
            return any(_alike(word, other) for other in others)
        known = self._beginnings.get(beginning)
        if known is None:
            known = self._beginnings[beginning] = _Beginnings(others)
        return known.has_alike(word)

    @cached_property
    def _beginnings(self) -> dict[str, _Beginnings]:
        return {}

    @cached_property
    def _by_beginning(self) -> Mapping[str, Sequence[str]]:
        """The words by their first `_STEM` letters. Words that begin alike have the same key."""
        found: dict[str, list[str]] = {}
        for word in self.all:
            if len(word) >= _STEM:
                found.setdefault(word[:_STEM], []).append(word)
        return found

    @cached_property
    def _forms(self) -> frozenset[str]:
        return frozenset().union(*(_forms(word, self._packs) for word in self.all))


def _word_set(text: str, language: str, packs: tuple[Locale, ...]) -> _WordSet:
    """Return the content words of a text from a cache, because many statements are compared with the same few texts."""
    return (_short_word_set if len(text) <= _SAMPLE else _long_word_set)(text, language, packs)


@lru_cache(maxsize=_TEXTS_KEPT)
def _short_word_set(text: str, language: str, packs: tuple[Locale, ...]) -> _WordSet:
    return _WordSet(content_words(text, language), packs)


@lru_cache(maxsize=_LONG_TEXTS_KEPT)
def _long_word_set(text: str, language: str, packs: tuple[Locale, ...]) -> _WordSet:
    return _WordSet(content_words(text, language), packs)


class _Beginnings:
    """The beginnings of many words. `has_alike` finds out whether one of the words begins like another word, without a
    comparison with each word."""

    def __init__(self, words: Iterable[str]) -> None:
        self._shortest: set[str] = set()
        """For each word, the shortest beginning that a word of equal or smaller length must share with it."""
        self._longer: set[str] = set()
        """For each word, that beginning and all longer ones."""
        for word in words:
            least = _common_least(word)
            if word.isalpha() and least <= len(word) <= _LONGEST_WORD:
                self._shortest.add(word[:least])
                self._longer.update(word[:size] for size in range(least, len(word) + 1))

    def has_alike(self, word: str) -> bool:
        least = _common_least(word)
        if not word.isalpha() or not least <= len(word) <= _LONGEST_WORD:
            return False
        return word[:least] in self._longer or any(
            word[:size] in self._shortest for size in range(least + 1, len(word) + 1)
        )


def _common_least(word: str) -> int:
    """Return the minimum length of the common beginning if this word is the longer one of two words."""
    return max(_STEM, ceil(_STEM_SHARE * len(word)))


def _plain(text: str) -> str:
    """Return the text in lower case without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def split_words(text: str) -> Sequence[str]:
    """Return the numbers and words of a text as they are written."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def lowercase_words(text: str) -> Sequence[str]:
    """Return the numbers and words of a text in lower case without accents."""
    return _words_of_short(text) if len(text) <= _SAMPLE else _read_words(text)


@lru_cache(maxsize=_TEXTS_KEPT)
def _words_of_short(text: str) -> Sequence[str]:
    return _read_words(text)


def _read_words(text: str) -> Sequence[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [_plain(word) for word in _WORD.findall(text)]


def _parts(run: str) -> Iterable[str]:
    """Return the pairs of neighbouring characters of a run; a single character is its own part."""
    return [run] if len(run) == 1 else [one + other for one, other in pairwise(run)]


def _spaced(text: str) -> str:
    return " ".join(lowercase_words(text))


def content_words(text: str, language: str) -> list[str]:
    """Return the content words in their order. A single digit is a content word, a single letter is not."""
    function_words = _function_words(language)
    return [word for word in lowercase_words(text) if word not in function_words and (len(word) > 1 or word.isdigit())]


@cache
def _function_words(language: str) -> frozenset[str]:
    return frozenset(_plain(word) for word in FUNCTION_WORDS.get(language, "").split())


@cache
def _languages_of_words() -> Mapping[str, Sequence[str]]:
    """Return the words by which a language is recognised, each with the languages in which it occurs."""
    found: dict[str, list[str]] = {}
    for tag in sorted({*FUNCTION_WORDS, *FREQUENT_WORDS}):
        for word in _function_words(tag) | {_plain(word) for word in FREQUENT_WORDS.get(tag, ())}:
            found.setdefault(word, []).append(tag)
    return found


def language_of(text: str) -> str | None:
    """Return the language to which most words at the beginning of the text belong.

    Return None when no word is known. When several languages have the same number of words, return English if it is one
    of them, otherwise None.
    """
    return _language_of_sample(text[:_SAMPLE])


@lru_cache(maxsize=1_024)
def _language_of_sample(text: str) -> str | None:
    known = _languages_of_words()
    counts: dict[str, int] = {}
    for word in lowercase_words(text):
        for tag in known.get(word, ()):
            counts[tag] = counts.get(tag, 0) + 1
    if not counts:
        return None
    most = max(counts.values())
    best = [tag for tag, count in counts.items() if count == most]
    return best[0] if len(best) == 1 else ("en" if "en" in best else None)


def _script(text: str) -> str:
    """Return the script of most letters at the beginning of the text."""
    return _LATIN if text.isascii() else _script_of_sample(text[:_SAMPLE])


@lru_cache(maxsize=1_024)
def _script_of_sample(text: str) -> str:
    scripts = [unicodedata.name(char, _LATIN).partition(" ")[0] for char in text if char.isalpha()]
    return max(set(scripts), key=scripts.count) if scripts else _LATIN


def _alike(one: str, other: str) -> bool:
    """Return whether two words begin alike, for example `vegetarian` and `vegetariana`."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _STEM or not one.isalpha() or not other.isalpha():
        return False
    common = next(
        (at for at, pair in enumerate(zip(shorter, longer, strict=False)) if pair[0] != pair[1]), len(shorter)
    )
    return common >= _STEM and common >= _STEM_SHARE * len(longer)


@lru_cache(maxsize=8_192)
def _forms(word: str, packs: tuple[Locale, ...]) -> frozenset[str]:
    """Return the stems of a word, one for each locale pack, and the concepts of the word."""
    stems = {compared(word, pack) for pack in packs}
    return frozenset({*stems, *(f"#{place}" for place in _concepts(word))})


def _concepts(word: str) -> Iterable[int]:
    exact, beginnings = _concept_words()
    yield from exact.get(word, ())
    for size in range(2, min(len(word), _CONCEPT_MAX) + 1):
        yield from beginnings.get(word[:size], ())


@cache
def _concept_words() -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Return two indexes of CONCEPTS: the concepts of each whole word, and the concepts of each beginning (`word*`).

    A concept is the number of its line.
    """
    exact: dict[str, tuple[int, ...]] = {}
    beginnings: dict[str, tuple[int, ...]] = {}
    for place, concept in enumerate(CONCEPTS.replace("\n ", " ").split("\n")):
        for word in concept.split():
            known = beginnings if word.endswith("*") else exact
            key = _plain(word.removesuffix("*"))
            known[key] = (*known.get(key, ()), place)
    return exact, beginnings

"""Evidence of statements: find out who said a quote, and whether the quote supports its statement; pure.

A model that read a poisoned text may write any statement and any quote. Therefore a quote must be long enough, and it
must share a word, a number, a name or a concept with its statement. The place of the quote in the message decides who
said it: the sender of the message, or somebody whose text the sender pasted (own_words.py). When a text of lower trust
contains the statement word for word, the statement comes from that text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from math import ceil
from typing import Final

from ...schemas.turns import Role
from ..language.locales import Locale
from ..language.locales.undetermined import FREQUENT_WORDS
from ..language.text import folded
from ..language.tokenizer import compared
from .clauses import UNSPACED, contradicts, plays, speaks_against, states
from .evidence_words import CONCEPTS, FIRST_PERSON, FUNCTION_WORDS, SHORT_ANSWERS
from .excerpts import Excerpt, excerpt
from .own_words import count_words
from .said_text import SaidText

WORDS_MIN: Final = 3
CHARS_MIN: Final = 12
UNSPACED_MIN: Final = 3
"""Minimum length, in characters, of a quote in a script without spaces between words. An ideograph counts twice."""
TRUST_ORDER: Final[tuple[Role, ...]] = ("user", "assistant", "tool", "system")
"""Roles, most trusted first."""
_SAMPLE: Final = 4_000
"""Number of leading characters that decide the language and the script of a text."""
_ANSWER_CHARS_MAX: Final = 200
_ANSWER_WORDS_MAX: Final = 12
_ANSWER_CONTENT_MAX: Final = 3
"""Maximum number of characters, words and content words of a short answer."""
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
_IDEOGRAPH: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN: Final = "LATIN"
_NO: Final = frozenset(("no", "nope", "not", "never", "neither", "none", "nein", "nee", "non"))
_ASKED_WORDS_MIN: Final = 2
"""Minimum number of words of a quote that a model judges."""
_RIDER: Final = 2
"""Number of content words from which a part of a statement is a rider: words that only a text of lower trust has."""


@dataclass(frozen=True, slots=True)
class EvidenceJudgement:
    """The judgement about a statement: the role to which words attribute the statement.

    When `role` is None, the statement is dropped. `name` is the name under which the judgement is counted.
    """

    role: Role | None
    name: str | None = None
    """The reason of the judgement; None when nothing is wrong.

    - `invented`: no shown text contains the quote.
    - `weak_evidence`: the quote does not support the statement.
    - `dictated`: a text of lower trust contains the statement word for word, so the statement has the role of that
      text.
    """


@dataclass(frozen=True, slots=True)
class WeighedEvidence:
    """The judgement about a statement by words, and the question for a model when words are not certain."""

    by_words: EvidenceJudgement
    asks: Excerpt | None = None
    """The user's words that contain the quote, when words are not certain; otherwise None."""
    denied: EvidenceJudgement | None = None
    """With `asks`: the judgement when the user does not say it."""


def words_of(quote: str, shown: Sequence[SaidText], messages: Sequence[SaidText]) -> Role | None:
    """Return the most trusted role that said the quote in its own words; None when no shown text contains the quote.

    The role is `tool` when the quote occurs only in quotations, or only in a text that a function of the operator
    wrote.
    """
    wanted = folded(quote)
    if not wanted or not any(wanted in text.folded for text in shown):
        return None
    for role in TRUST_ORDER:
        for text in messages:
            if text.role == role and any(own or not text.speaks for own, _ in text.occurrences(wanted)):
                return role
    return "tool"


def judge_evidence(
    quote: str,
    statement: str,
    *,
    subject: str,
    shown: Sequence[SaidText],
    messages: Sequence[SaidText],
    earlier: Sequence[SaidText],
    packs: tuple[Locale, ...],
    of_speaker: bool | None = None,
    closes: str | None = None,
) -> WeighedEvidence:
    """Judge a statement by its quote.

    `shown` are the texts of the turn in the prompt. `messages` are the original messages of the turn; a text in `shown`
    differs from its message only when a function of the operator rewrote it. `earlier` are texts of the prompt that are
    older than the turn. `of_speaker` is True when the statement is about the speaker of the quote; by default, when the
    subject is `user`. `closes` is the known statement that this statement replaces, or "" for a correction of an
    unnamed one.
    """
    words = words_of(quote, shown, messages)
    if words is None:
        return WeighedEvidence(EvidenceJudgement(None, "invented"))
    case = _Case(_Claim(statement, subject, packs), folded(quote), words, shown, messages, earlier, closes)
    found = next(((text, before) for text, before in case.of("user") if _is_told(case.quote, text)), None)
    if found is None:
        return WeighedEvidence(case.by_words(TRUST_ORDER))
    text, before = found
    told = excerpt(quote, text, before)
    about = "user" if (subject == "user" if of_speaker is None else of_speaker) else subject
    if told.frame is None and states(statement, about, told.said):
        return WeighedEvidence(EvidenceJudgement("user"))
    by_words = case.by_words(TRUST_ORDER)
    denied = by_words if by_words.name == "dictated" else case.by_words(TRUST_ORDER[1:])
    refused = told.frame is not None or plays(told.said) or case.refutes(about, told.said)
    return WeighedEvidence(denied if refused else by_words, told, denied)


@dataclass(frozen=True, slots=True)
class _Case:
    """A statement, its quote, and the texts to judge it by."""

    claim: _Claim
    quote: str
    """The folded quote."""
    words: Role
    shown: Sequence[SaidText]
    messages: Sequence[SaidText]
    earlier: Sequence[SaidText]
    closes: str | None

    def of(self, role: Role) -> Iterable[tuple[SaidText, Sequence[SaidText]]]:
        """Yield the messages of a role, each with the texts before it."""
        for place, text in enumerate(self.messages):
            if text.role == role and text.speaks:
                yield text, (*self.earlier, *self.messages[:place])

    def by_words(self, roles: Sequence[Role]) -> EvidenceJudgement:
        """Judge by shared words. The statement is attributed to one of `roles`, or to the text that dictates it."""
        for role in roles:
            for text, before in self.of(role):
                if _carries(self.claim, self.quote, text, before, self.closes):
                    source = _dictated_by(self.claim, text, [*self.earlier, *self.messages])
                    return EvidenceJudgement(role) if source is None else EvidenceJudgement(source, "dictated")
        quoted = next((text for text in (*self.messages, *self.shown) if self._lower(text, roles)), None)
        if quoted is None or not _long_enough(self.quote, quoted.folded):
            return EvidenceJudgement(None, "weak_evidence")
        if not self.claim.shared(self.quote) and not self.claim.incomparable(quoted.folded):
            return EvidenceJudgement(None, "weak_evidence")
        return EvidenceJudgement("system" if self.words == "system" else "tool")

    def refutes(self, subject: str, said: str) -> bool:
        """Return whether the speaker's sentences certainly do not make the statement."""
        statement = self.claim.statement
        if self.claim.incomparable(folded(said)):
            return speaks_against(statement, said)
        return contradicts(statement, subject, said)

    def _lower(self, text: SaidText, roles: Sequence[Role]) -> bool:
        """Return whether the text contains the quote, and not as own words of a role that is left out."""
        if self.quote not in text.folded:
            return False
        return text.role in roles or any(not own for own, _ in text.occurrences(self.quote))


def count_held(statement: str, text: str, packs: tuple[Locale, ...]) -> tuple[int, int]:
    """Return how many content words of a statement a text contains, and how many the statement has.

    In a script without spaces, a pair of neighbouring characters counts as a word.
    """
    return _Claim(statement, "user", packs).count_held(folded(text))


# ------------------------------------------------------------------------------------------------ a statement
class _Claim:
    """A statement and its words, to compare the statement with texts."""

    def __init__(self, statement: str, subject: str, packs: tuple[Locale, ...]) -> None:
        self._packs = packs
        self.statement = statement
        self._text = folded(statement)
        self._language = _language(self._text)
        about = "" if subject == "user" else f" {subject.replace('-', ' ')}"
        self._words = _content(f"{self._text}{about}", self._language or "en")
        self._said = _content(self._text, self._language or "en")
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
        language = _language(text)
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
        return _language(text) or self._language or "en"

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
    return _WordSet(_content(text, language), packs)


@lru_cache(maxsize=_LONG_TEXTS_KEPT)
def _long_word_set(text: str, language: str, packs: tuple[Locale, ...]) -> _WordSet:
    return _WordSet(_content(text, language), packs)


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


# ------------------------------------------------------------------------------------------------ a quote
def _is_told(quote: str, text: SaidText) -> bool:
    """Return whether the sender's own words contain the quote, or a part of it, and the quote is long enough."""
    enough = count_words(quote) >= _ASKED_WORDS_MIN or _long_enough(quote, text.folded)
    return enough and any(own for own, _ in text.occurrences(quote))


def _carries(claim: _Claim, quote: str, text: SaidText, before: Sequence[SaidText], closes: str | None) -> bool:
    return any(_carries_at(claim, quote, own, place, text, before, closes) for own, place in text.occurrences(quote))


def _carries_at(
    claim: _Claim, quote: str, own: str, place: int, text: SaidText, before: Sequence[SaidText], closes: str | None
) -> bool:
    if not own or not _long_enough(quote, text.folded):
        return False
    if own != quote:  # a part of the quote is a quotation, so the sender's own words alone must support the statement
        return claim.shared(own) or (claim.incomparable(text.own) and count_words(own) >= WORDS_MIN and _in_person(own))
    around = _around(text, quote, place)
    if claim.shared(quote) or claim.shared(around):
        return closes is None or claim.adds_to(closes, around) or claim.incomparable(text.own)
    if claim.incomparable(text.own):
        return not _asks(text, place) and bool(_content(quote, _language(text.own) or "en"))
    if not is_short_answer(text.own) or _denies(text.own):
        return False
    asked = excerpt(quote, text, before).question or ""
    return claim.held_by(f"{folded(asked)} . {text.own}")


def _long_enough(quote: str, message: str) -> bool:
    words = _words_in(quote)
    bare = " ".join(words)
    if count_words(bare) >= WORDS_MIN or len(bare) >= CHARS_MIN:
        return True
    unspaced = 0 if bare.isascii() else len(UNSPACED.findall(bare)) + len(_IDEOGRAPH.findall(bare))
    return unspaced >= UNSPACED_MIN or (bool(bare) and words == _words_in(message))


def _words_in(text: str) -> Sequence[str]:
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def _around(text: SaidText, quote: str, place: int) -> str:
    """Return the sender's own words in the sentences that contain the quote."""
    _, ends = text.sentence_ends
    before, after = bisect_right(ends, place), bisect_left(ends, place + len(quote))
    start = ends[before - 1] if before else 0
    return text.own_words_between(start, ends[after] if after < len(ends) else len(text.folded))


def _asks(text: SaidText, place: int) -> bool:
    """Return whether the sentence at a position is a question, which states nothing."""
    starts, ends = text.sentence_ends
    after = bisect_right(ends, place)
    return after < len(ends) and "?" in text.folded[max(place, starts[after]) : ends[after]]


def is_short_answer(own: str) -> bool:
    """Return whether a text is a short answer to an earlier message, such as "yes, that one"."""
    if len(own) > _ANSWER_CHARS_MAX:
        return False
    words = _words(own)
    content = [word for word in _content(own, _language(own) or "en") if word not in _answers()]
    if not 0 < len(words) <= _ANSWER_WORDS_MAX or len(content) > _ANSWER_CONTENT_MAX or "?" in own:
        return False
    return words[0] in _answers()


def _denies(own: str) -> bool:
    """Return whether a short answer says no."""
    return next(iter(_words(own)), "") in _NO


def _dictated_by(claim: _Claim, text: SaidText, others: Sequence[SaidText]) -> Role | None:
    """Return the role of a text of lower trust that contains the statement, or a rider of it, word for word; None when
    there is none.

    A rider is a part of the statement that the own words of the speaker lack. Also return None when these words contain
    all content words of the statement.
    """
    said = " . ".join(each.own for each in others if each.role == text.role)
    missing = claim.missing_in(said)
    if not missing:
        return None
    rider = missing if len(missing) >= _RIDER else ()
    found: Role | None = None
    for other in others:
        quoted = " . ".join(part for part, own in other.passages if not own or not other.speaks)
        if quoted and (claim.stands_in(quoted) or (other is not text and claim.has_part(rider, quoted))):
            return "tool"
        lower = TRUST_ORDER.index(other.role) > TRUST_ORDER.index(text.role)
        stands = lower and (claim.stands_in(other.own) or claim.has_part(rider, other.own))
        if stands and not is_short_answer(text.own):
            found = other.role
    return found


# ------------------------------------------------------------------------------------------------ words
def _plain(text: str) -> str:
    """Return the text in lower case without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def _words(text: str) -> Sequence[str]:
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
    return " ".join(_words(text))


def _content(text: str, language: str) -> list[str]:
    """Return the content words in their order. A single digit is a content word, a single letter is not."""
    function_words = _function_words(language)
    return [word for word in _words(text) if word not in function_words and (len(word) > 1 or word.isdigit())]


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


def _language(text: str) -> str | None:
    """Return the language to which most words at the beginning of the text belong.

    Return None when no word is known. When several languages have the same number of words, return English if it is one
    of them, otherwise None.
    """
    return _language_of_sample(text[:_SAMPLE])


@lru_cache(maxsize=1_024)
def _language_of_sample(text: str) -> str | None:
    known = _languages_of_words()
    counts: dict[str, int] = {}
    for word in _words(text):
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


def _in_person(text: str) -> bool:
    """Return whether a text contains a word of `FIRST_PERSON`, in any of its languages."""
    return bool(FIRST_PERSON & set(_words(text)))


@cache
def _answers() -> frozenset[str]:
    return frozenset(_words(SHORT_ANSWERS))


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

"""Fit of memories to a cue, compared over all tiers; pure (docs/design/recall.md).

The cue is the text of the search. The match of a tier orders the candidates of that tier only: each tier has a best
candidate, even when no candidate is about the cue. `fits` compares the candidates of all tiers. It uses the meaning of
the candidates and the words of the cue that they contain. Another form of a word, a typing error and a word of the same
topic (job, work) count less than the word itself. A word that few candidates contain counts more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

from ...schemas.terms import WORD, fold, is_spaceless_word, pieces
from ..language.locales import Locale
from ..language.tokenizer import compared

OTHER_FORM: Final = 0.8
"""Weight of a word with another ending or a typing error."""
SAME_TOPIC: Final = 0.6
"""Weight of a word of the same topic."""
RELATED: Final = 0.9
"""Weight of a word for the relationship of the subject to the user: `brother` in a cue about the user's brother Tom."""
QUOTED: Final = 0.4
"""Weight of a word that is in the evidence or the predicate of a statement, but not in its text."""
NEWEST: Final = 0.05
"""Bonus of the newest statement, as a share of its fit. The oldest statement has no bonus."""
NOT_NAMED: Final = 0.75
"""Factor for a statement about a subject that the cue does not name. Statements about the user are not reduced."""
MEANING: Final = 0.5
"""Weight of the meaning, 0 to 1. The words have the rest of the weight."""
SLIP: Final = 0.75
"""Minimum similarity of two words, 0 to 1, at which one counts as a typing error for the other."""
SHORTEST: Final = 5
"""Letters of the shortest word that is checked for typing errors."""
LONGEST: Final = 40
"""Letters of the longest word that is checked for typing errors, because the comparison takes quadratic time."""
BEGINNING: Final = 5
"""Minimum number of equal letters at the beginning of two forms of a word, in a language whose pack has a stemmer."""
BEGINNING_UNSTEMMED: Final = 4
"""The same number in a language without a stemmer, where also the endings of grammar are still there."""
ALIKE: Final = 0.65
"""Minimum share of equal letters at the beginning of two forms of a word, of the letters of both, 0 to 1."""
ENDING: Final = 3
"""Maximum number of letters in the ending of a form."""
JOINED: Final = 2
"""Maximum number of letters of a word that an apostrophe joins to the next word: `l'`, `qu'`."""
USER: Final = "user"
_WORD: Final = re.compile(rf"{WORD}(?:['’]{WORD})*(?:[+#]+(?!\w))?")
_JOINING: Final = re.compile("[\u05d0-\u05ea\u0620-\u064a]")
"""A letter of Hebrew or Arabic, which write short words and the next word together."""
_JOINING_ONLY: Final = re.compile("[הובלמשכ]{1,2}|[وفبكل]{1,2}")
"""The short words that are joined: Hebrew and, in, to, from, that, as and the; Arabic and, so, in, as and to."""
_JOINED_TO: Final = 3
"""Letters of the shortest word to which they are joined."""
_NONE: Final = frozenset[str]()


class FitText(NamedTuple):
    """The fields of a candidate that are compared with the cue and with other candidates."""

    content: str
    subject: str | None = None
    """The subject of a statement; None for a message."""
    beside: tuple[str, ...] = ()
    """More text that belongs to a statement: the quotes of its evidence, and its predicate."""
    relationship: bool = False
    """True when the statement is about somebody's relationship to the user."""
    at: str = ""
    """Time at which a statement was recorded or said, as RFC 3339 in UTC."""
    similarity: float | None = None
    """Cosine similarity with the cue; None when it is unknown."""


def fits(cue: str, texts: Sequence[FitText], pack: Locale, *, meanings: bool = True) -> list[float]:
    """Return the fit of each candidate, 0 to 1. The best candidate has 1. If no candidate fits, all have 0.

    Set `meanings` to False when the embedder compares only words, because the words are already compared here.
    """
    known_as = _names(texts, pack)
    said = [_said(each, pack) for each in texts]
    quoted = [_quoted(each, pack) for each in texts]
    words = _CueWords(cue, said, quoted, pack)
    meaning = _meanings(texts) if meanings else {}
    newness = _newness(texts)
    raw: list[float] = []
    for each, own, quote in zip(texts, said, quoted, strict=True):
        related = known_as.get(each.subject, _NONE)
        covered = words.coverage(own, related, quote)
        near = meaning.get(each.content, covered)
        named = each.subject in (None, USER) or words.name(related)
        weight = (1.0 if named else NOT_NAMED) * (1.0 + NEWEST * newness.get(each.at, 0.0))
        raw.append((covered + MEANING * (near - covered)) * weight)
    best = max(raw, default=0.0)
    return [each / best if best > 0 else 0.0 for each in raw]


# ------------------------------------------------------------------------------------------------ candidates
def _said(text: FitText, pack: Locale) -> frozenset[str]:
    own = stems(text.content, pack)
    return own if text.subject in (None, USER) else own | stems(text.subject, pack)


def _quoted(text: FitText, pack: Locale) -> frozenset[str]:
    quoted = _NONE
    for each in text.beside:
        if each:
            found = stems(each, pack)
            quoted = quoted | found if quoted else found
    return quoted


def _names(texts: Sequence[FitText], pack: Locale) -> dict[str | None, frozenset[str]]:
    """Return, for each subject other than the user, the words by which a cue may name it.

    These are the words of its name, and the words of its relationship to the user. A relationship comes from a
    statement about the subject ("Is the user's brother"), or from a statement about the user that names the subject
    ("Has a brother named Tom").
    """
    names: dict[str | None, frozenset[str]] = {
        each.subject: stems(each.subject, pack) for each in texts if each.subject not in (None, USER)
    }
    related = dict(names)
    for each in texts:
        if each.relationship:
            words = stems(each.content, pack)
            for subject, name in names.items():
                if each.subject == subject or (each.subject == USER and name <= words):
                    related[subject] |= words - pack.stop_words - {USER}
    return related


def _newness(texts: Iterable[FitText]) -> dict[str, float]:
    """Return the newness of each distinct time, by its place in the order: 0 for the oldest, 1 for the newest."""
    times = sorted({each.at for each in texts if each.at})
    return {time: place / max(1, len(times) - 1) for place, time in enumerate(times)}


def _meanings(texts: Iterable[FitText]) -> dict[str, float]:
    """Return the cosine of each text divided by the greatest cosine. Equal texts of several tiers get one value, the
    greatest."""
    cosines: dict[str, float] = {}
    for each in texts:
        if each.similarity is not None:
            cosines[each.content] = max(each.similarity, cosines.get(each.content, 0.0))
    greatest = max(cosines.values(), default=0.0)
    return {text: cosine / greatest for text, cosine in cosines.items()} if greatest > 0 else {}


# ------------------------------------------------------------------------------------------------ cue
class _CueWords:
    """The significant words of a cue. Each has a weight, and other words that count like it: other forms, typing errors
    and words of the same topic."""

    def __init__(
        self, cue: str, said: Sequence[frozenset[str]], quoted: Sequence[frozenset[str]], pack: Locale
    ) -> None:
        asked = _asked(cue, pack)
        frequency = Counter[str]()
        for own in said:
            if not asked.isdisjoint(own):
                frequency.update(asked & own)
        forms = _forms(asked, frozenset[str]().union(*said, *quoted), pack)
        same = topics(pack)
        self._weights = {word: math.log(1 + len(said) / (1 + frequency[word])) for word in asked}
        self._total = sum(self._weights.values())
        self._counts: dict[str, list[tuple[str, float]]] = {}
        for word in asked:
            related = frozenset[str]().union(*(same.get(each, frozenset()) for each in (word, *forms[word])))
            for each, counts in _counting(word, forms[word], related).items():
                self._counts.setdefault(each, []).append((word, counts))
        self._counted_words = frozenset(self._counts)

    def coverage(self, own: AbstractSet[str], related: AbstractSet[str], quoted: AbstractSet[str]) -> float:
        """Return the weighted share of the cue's words that a candidate contains, 0 to 1.

        `own` are the words of its text, `related` the words that name its subject, `quoted` the words of its evidence.
        The loops start with set operations for speed: a read has hundreds of candidates, and most of them contain few
        words of the cue.
        """
        significant, counting = self._counted_words, self._counts
        most: dict[str, float] = {}
        if not significant.isdisjoint(own):
            for each in significant & own:
                for word, counts in counting[each]:
                    if counts > most.get(word, 0.0):
                        most[word] = counts
        for share, among in ((RELATED, related), (QUOTED, quoted)):
            if among and not significant.isdisjoint(among):
                for each in significant & among:
                    for word, counts in counting[each]:
                        if share * counts > most.get(word, 0.0):
                            most[word] = share * counts
        if not most:
            return 0.0
        found = sum([weight * most[word] for word, weight in self._weights.items() if word in most])
        return found / self._total if self._total else 0.0

    def name(self, words: AbstractSet[str]) -> bool:
        """Return whether the cue contains one of these words, or a word that counts like one of them."""
        return not self._counted_words.isdisjoint(words)


def _counting(word: str, forms: AbstractSet[str], related: AbstractSet[str]) -> dict[str, float]:
    """Return the weight of the word itself, of its other forms and of the words of its topic."""
    return dict.fromkeys(related, SAME_TOPIC) | dict.fromkeys(forms, OTHER_FORM) | {word: 1.0}


def _asked(cue: str, pack: Locale) -> frozenset[str]:
    """Return the content words of the cue. If the cue has only function words, return all its words."""
    found = [_plain(word, pack) for word in _WORD.findall(cue)]
    asking = pack.questions
    empty = pack.stop_words | pack.separators | asking.openers | asking.auxiliaries | asking.fillers
    significant = [word for word in found if word not in empty or not topics(pack).keys().isdisjoint(_stem(word, pack))]
    return frozenset(each for word in significant or found for each in _stem(word, pack))


def _forms(asked: Collection[str], vocabulary: AbstractSet[str], pack: Locale) -> dict[str, frozenset[str]]:
    """Return, for each word of the cue, the other forms of this word in `vocabulary` (the words of the candidates).

    If `vocabulary` contains neither the word nor another form, return the words of `vocabulary` that differ from the
    word by a typing error.
    """
    least = BEGINNING if pack.suffixes else BEGINNING_UNSTEMMED
    begins = tuple({word[:least] for word in asked if len(word) >= least})
    likely = [each for each in vocabulary if each.startswith(begins)] if begins else []
    if any(_JOINING.match(word) for word in asked):
        likely += [each for each in vocabulary if _JOINING.match(each)]
    forms = {word: frozenset(each for each in likely if each != word and _is_form(each, word, least)) for word in asked}
    unknown = [
        word for word in asked if word not in vocabulary and not forms[word] and SHORTEST <= len(word) <= LONGEST
    ]
    return forms | {word: frozenset(_slips(word, vocabulary)) for word in unknown if not is_spaceless_word(word)}


def _is_form(one: str, other: str, least: int) -> bool:
    """Return whether two words differ only in their endings: at least `least` and most of their letters are equal.

    In Hebrew and Arabic, two words also are forms when one has prepositions or an article joined before it.
    """
    short, long = sorted((one, other), key=len)
    if len(short) >= _JOINED_TO and long.endswith(short) and _JOINING_ONLY.fullmatch(long[: -len(short)]):
        return True
    same = next((place for place, letter in enumerate(short) if letter != long[place]), len(short))
    if same < least or len(long) - same > ENDING or is_spaceless_word(short):
        return False
    return 2 * same >= ALIKE * (len(one) + len(other))


def _slips(word: str, vocabulary: Iterable[str]) -> Iterator[str]:
    matcher = SequenceMatcher(b=word, autojunk=False)
    for each in vocabulary:
        if each[0] == word[0] and abs(len(each) - len(word)) <= 3 and len(each) >= SHORTEST:
            matcher.set_seq1(each)
            if matcher.quick_ratio() >= SLIP and matcher.ratio() >= SLIP:
                yield each


# ------------------------------------------------------------------------------------------------ words
@lru_cache(maxsize=8_192)
def stems(text: str, pack: Locale) -> frozenset[str]:
    """Return the words of a text without their endings. A script without spaces has pairs of letters instead."""
    return frozenset([each for word in _WORD.findall(text) for each in _stem_of_word(word, pack)])


@lru_cache(maxsize=32_768)
def _stem_of_word(word: str, pack: Locale) -> tuple[str, ...]:
    return _stem(_plain(word, pack), pack)


@lru_cache(maxsize=32_768)
def _stem(word: str, pack: Locale) -> tuple[str, ...]:
    return tuple(pieces(word)) if is_spaceless_word(word) else (fold(compared(word, pack)),)


def _plain(word: str, pack: Locale) -> str:
    """Return a word as the pack spells it, without case, accents, and the part that an apostrophe joins to it:
    `Nadia's` becomes `nadia`, `l'été` becomes `ete`."""
    before, _, after = word.casefold().replace("’", "'").partition("'")
    said = after if len(before) <= JOINED < len(after) else before
    for letter, instead in pack.letters.items():
        said = said.replace(letter, instead)
    return fold(said)


@lru_cache(maxsize=8)
def topics(pack: Locale) -> Mapping[str, frozenset[str]]:
    """Return, for each word in a topic of the pack, all words of its topics. The words have no endings."""
    found: dict[str, frozenset[str]] = {}
    for topic in pack.topics:
        group = frozenset(each for word in topic for each in _stem(_plain(word, pack), pack))
        for word in group:
            found[word] = found.get(word, frozenset()) | group
    return found

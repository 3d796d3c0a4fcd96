"""Evidence of statements: find out who said a quote, and whether the quote supports its statement; pure.

A model that read a poisoned text may write any statement and any quote. Therefore a quote must be long enough, and it
must share a word, a number, a name or a concept with its statement. The place of the quote in the message decides who
said it: the sender of the message, or somebody whose text the sender pasted (own_words.py). When a text of lower trust
contains the statement word for word, the statement comes from that text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from ...schemas.turns import Role
from ..language.common_words import FIRST_PERSON, SHORT_ANSWERS
from ..language.locales import Locale
from ..language.text import folded
from .clauses import UNSPACED, contradicts, plays, speaks_against, states
from .excerpts import Excerpt, excerpt
from .own_words import count_words
from .said_text import SaidText
from .statement_words import StatementWords, content_words, language_of, lowercase_words, split_words

WORDS_MIN: Final = 3
CHARS_MIN: Final = 12
UNSPACED_MIN: Final = 3
"""Minimum length, in characters, of a quote in a script without spaces between words. An ideograph counts twice."""
TRUST_ORDER: Final[tuple[Role, ...]] = ("user", "assistant", "tool", "system")
"""Roles, most trusted first."""
_ANSWER_CHARS_MAX: Final = 200
_ANSWER_WORDS_MAX: Final = 12
_ANSWER_CONTENT_MAX: Final = 3
"""Maximum number of characters, words and content words of a short answer."""

_IDEOGRAPH: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
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
    case = _Case(StatementWords(statement, subject, packs), folded(quote), words, shown, messages, earlier, closes)
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

    claim: StatementWords
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


# ------------------------------------------------------------------------------------------------ a quote
def _is_told(quote: str, text: SaidText) -> bool:
    """Return whether the sender's own words contain the quote, or a part of it, and the quote is long enough."""
    enough = count_words(quote) >= _ASKED_WORDS_MIN or _long_enough(quote, text.folded)
    return enough and any(own for own, _ in text.occurrences(quote))


def _carries(claim: StatementWords, quote: str, text: SaidText, before: Sequence[SaidText], closes: str | None) -> bool:
    return any(_carries_at(claim, quote, own, place, text, before, closes) for own, place in text.occurrences(quote))


def _carries_at(
    claim: StatementWords,
    quote: str,
    own: str,
    place: int,
    text: SaidText,
    before: Sequence[SaidText],
    closes: str | None,
) -> bool:
    if not own or not _long_enough(quote, text.folded):
        return False
    if own != quote:  # a part of the quote is a quotation, so the sender's own words alone must support the statement
        return claim.shared(own) or (claim.incomparable(text.own) and count_words(own) >= WORDS_MIN and _in_person(own))
    around = _around(text, quote, place)
    if claim.shared(quote) or claim.shared(around):
        return closes is None or claim.adds_to(closes, around) or claim.incomparable(text.own)
    if claim.incomparable(text.own):
        return not _asks(text, place) and bool(content_words(quote, language_of(text.own) or "en"))
    if not _is_short_answer(text.own) or _denies(text.own):
        return False
    asked = excerpt(quote, text, before).question or ""
    return claim.held_by(f"{folded(asked)} . {text.own}")


def _long_enough(quote: str, message: str) -> bool:
    words = split_words(quote)
    bare = " ".join(words)
    if count_words(bare) >= WORDS_MIN or len(bare) >= CHARS_MIN:
        return True
    unspaced = 0 if bare.isascii() else len(UNSPACED.findall(bare)) + len(_IDEOGRAPH.findall(bare))
    return unspaced >= UNSPACED_MIN or (bool(bare) and words == split_words(message))


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


def _is_short_answer(own: str) -> bool:
    """Return whether a text is a short answer to an earlier message, such as "yes, that one"."""
    if len(own) > _ANSWER_CHARS_MAX:
        return False
    words = lowercase_words(own)
    content = [word for word in content_words(own, language_of(own) or "en") if word not in _answers()]
    if not 0 < len(words) <= _ANSWER_WORDS_MAX or len(content) > _ANSWER_CONTENT_MAX or "?" in own:
        return False
    return words[0] in _answers()


def _denies(own: str) -> bool:
    """Return whether a short answer says no."""
    return next(iter(lowercase_words(own)), "") in _NO


def _dictated_by(claim: StatementWords, text: SaidText, others: Sequence[SaidText]) -> Role | None:
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
        if stands and not _is_short_answer(text.own):
            found = other.role
    return found


def _in_person(text: str) -> bool:
    """Return whether a text contains a word of `FIRST_PERSON`, in any of its languages."""
    return bool(FIRST_PERSON & set(lowercase_words(text)))


@cache
def _answers() -> frozenset[str]:
    return frozenset(lowercase_words(SHORT_ANSWERS))

"""Detect messages that contain only questions; pure.

A sentence is a question when it ends with a question mark or, in some languages, with a particle such as `吗` or `か`.
When a pack has question words, the word order also shows a question without a mark ("where do I live again"). The rules
are cautious: "I live in Berlin, do you know it?" states something, so the message is not only a question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from .locales import Locale, QuestionWords

_SENTENCE: Final = re.compile(r"[^.!?？！。؟…\n]+[.!?？！。؟…]*")
_CLAUSE: Final = re.compile(r"[,;:，、؛()]|\s[-–—]+\s")
_WORD: Final = re.compile(r"[\w'’]+")
_ENDS: Final = re.compile(r"(?:吗|嗎|呢|吧|か|かな|까|까요|나요|ですか|ますか)$")
"""Particles and endings of questions in Chinese, Japanese and Korean. With them, a question needs no question mark."""
_ASKED: Final = re.compile(r"[?？؟]+[\s!?？؟)\"'»”’]*$")
_LONG: Final = 3
"""A clause before the question with fewer words than this number states nothing."""
LONGEST_QUESTION: Final = 2_000
"""Maximum length, in characters, of a message that may be a question. The cue of a search has this limit too."""
_INVERTED_WITHIN: Final = 5
"""Maximum number of words between the question word and the verb, as in `which kind of tea do I`."""


def only_asks(text: str, packs: tuple[Locale, ...]) -> bool:
    """Return whether every sentence of a message is a question, apart from greetings and similar words.

    `packs` are the packs of the languages in which the message may be. The result is False for a message of more than
    `LONGEST_QUESTION` characters.
    """
    return len(text) <= LONGEST_QUESTION and _only_asks(text, packs)


@lru_cache(maxsize=4_096)
def _only_asks(text: str, packs: tuple[Locale, ...]) -> bool:
    known = [pack.questions for pack in packs]
    asks = False
    for sentence in _SENTENCE.findall(text):
        marked = _ASKED.search(sentence) is not None
        if not marked and _says_nothing(_words(sentence), known):
            continue
        if _WORD.search(sentence) is not None:
            if not _asks(sentence.strip(), marked, known):
                return False
            asks = True
    return asks


def _says_nothing(found: list[str], known: Sequence[QuestionWords]) -> bool:
    return any(each.fillers.issuperset(found) for each in known)


def _asks(sentence: str, marked: bool, known: Sequence[QuestionWords]) -> bool:
    """Return whether a sentence is a question. `marked` is True when the sentence has a question mark."""
    if not sentence.isascii() and _ENDS.search(sentence.rstrip(".!。！?？ ")):
        return True
    if marked and (opening := sentence.find("¿")) >= 0:
        return len(_words(sentence[:opening])) < _LONG
    clauses = [found for each in _CLAUSE.split(sentence) if (found := _words(each))]
    return any(_asks_in(clauses, marked, each) for each in known)


def _asks_in(clauses: list[list[str]], marked: bool, known: QuestionWords) -> bool:
    """Return whether the clauses of a sentence are a question, by the words of one language.

    Without a question mark, the first clause must open a question. With or without a mark, the sentence is no question
    when another clause states something.
    """
    told = [found for each in clauses if (found := _without_fillers(_uncontracted(each, known), known))]
    if not told:
        return marked
    asks_first = _opens_question(told[0], marked, known)
    if not (asks_first or marked):
        return False
    asking = [asks_first, *(_opens_question(each, marked, known) for each in told[1:])]
    if any(each[0] in known.speakers and not asks for each, asks in zip(told, asking, strict=True)):
        return False
    return asks_first or all(asks or len(each) < _LONG for each, asks in zip(told[:-1], asking, strict=False))


def _without_fillers(found: list[str], known: QuestionWords) -> list[str]:
    first = next((place for place, word in enumerate(found) if word not in known.fillers), len(found))
    return found[first:]


def _uncontracted(found: list[str], known: QuestionWords) -> list[str]:
    """Split a first word such as `what's` into two words."""
    first, mark, rest = found[0].partition("'")
    return [first, f"'{rest}", *found[1:]] if mark and first in known.openers else found


def _opens_question(found: list[str], marked: bool, known: QuestionWords) -> bool:
    """Return whether a clause begins like a question: `where do I`, `what is`, `is she`, `tell me where`."""
    for request in known.requests:
        if tuple(found[: len(request)]) == request:
            rest = found[len(request) :]
            return not rest or bool(known.openers.intersection(rest[:2])) or rest[0] in known.indirect
    if found[0] in known.openers:
        continues = not marked and found[0] in known.relatives and found[1:2] != [] and found[1] in known.auxiliaries
        return not continues and _is_inverted(found[1:], marked, known)
    return found[0] in known.auxiliaries and _is_subject(found[1:2], marked, known)


def _is_inverted(after: list[str], marked: bool, known: QuestionWords) -> bool:
    """Return whether the verb comes before the subject in `after`, the words after a question word.

    Without a question mark, a clause with a second verb does not count, because it may be a statement: `what is
    important to me is honesty`.
    """
    place = next((place for place, word in enumerate(after) if word in known.auxiliaries | known.subjects), None)
    if place is None or place >= _INVERTED_WITHIN or after[place] not in known.auxiliaries:
        return False
    if place == 0 and not marked:
        return not known.auxiliaries.intersection(after[1:])
    return place == 0 or _is_subject(after[place + 1 : place + 2], marked, known)


def _is_subject(found: list[str], marked: bool, known: QuestionWords) -> bool:
    return bool(found) and (found[0] in known.subjects or (marked and found[0] in known.articles))


def _words(text: str) -> list[str]:
    if text.isascii():
        return _WORD.findall(text.lower())
    return [word.replace("’", "'").lower() for word in _WORD.findall(text)]

"""Decide by words whether a clause of the speaker states something; pure.

Words are certain in one case only: a clause in the first person begins with the statement, word for word except for the
ending of the person. Such a clause is no question, condition, report, denial or role play, because each of these adds a
word to the clause. Everything else is not certain. `contradicts` finds clauses that certainly do not state something.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile
from typing import Final

from ..language.text import folded, own_statement
from .clause_words import (
    ASKING,
    CONDITIONS,
    CUES,
    ENDS,
    FILLERS,
    FIRST_PERSON,
    JOINTS,
    LEADS,
    LIGHT_WORDS,
    NEGATIONS,
    OTHERS,
    PLAY,
    PLAY_ENDS,
    SPEAKERS,
    STATED_PERSON,
    UNSPACED_CUES,
)

UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""A character of a script without spaces between words."""
_TOKEN: Final = re.compile(rf"\d+(?:[.,:]\d+)*|{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})[^\W\d_])+")
_CLAUSE_END: Final = re.compile(
    r"[,;()—–\n]+|\s-+\s|[.!…。！？、，；]+|\s(?:and|but|und|aber|y|pero|et|mais)\s(?=(?:i|we|my|our|ich|wir|mein\w*|yo|mi|mis|je|j|mon|ma)\b)"
)
_QUESTION: Final = re.compile(r"[?？]")
_QUOTED: Final = re.compile(r"[\"“”„«»「」『』]")
_NOT: Final = re.compile(r"n't\b")
_PLAY: Final = re.compile(PLAY)
_PLAY_ENDS: Final = re.compile(PLAY_ENDS)
_STEM_MIN: Final = 3
_PERSON_ENDINGS: Final = frozenset("aeiot")


def states(statement: str, subject: str, sentence: str) -> bool:
    """Return whether a clause of the sentence certainly makes the statement.

    `sentence` is one or more sentences of the speaker's own words. For a subject other than `user`, the clause must
    begin with the name of the subject.
    """
    text = folded(sentence)
    if _QUESTION.search(text) or _QUOTED.search(text) or _has_cue(text) or plays(text):
        return False
    about = "" if subject == "user" else subject.replace("-", " ")
    wanted = _significant(f"{about} {own_statement(folded(statement), subject)}", of_statement=True)
    return bool(wanted) and any(_begins_with(clause, wanted, in_person=not about) for clause in _clauses(text))


def contradicts(statement: str, subject: str, sentence: str) -> bool:
    """Return whether the sentence certainly does not make the statement: it denies it, asks it, makes it a condition,
    reports it, or says it of another person."""
    text, wanted = folded(sentence), _significant(folded(statement), of_statement=True)
    if _is_supposed(text):
        return True
    denied = _listed(_tokens(statement.lower()), NEGATIONS) or _listed(wanted, ENDS)
    clauses = [part for each in _clauses(text) for part in each.split(": ") if _shares(_tokens(part), wanted)]
    return bool(clauses) and all(_rejects(each, text, wanted, subject, denied=denied) for each in clauses)


def speaks_against(statement: str, sentence: str) -> bool:
    """Return whether a sentence in another language than the statement has a sign against it: a condition, a report, a
    question, or a denial of a name in the statement."""
    text, wanted = folded(sentence), _significant(folded(statement), of_statement=True)
    tokens = _tokens(text)
    if _has_cue(text) or (_QUESTION.search(text) and not _owned(tokens, wanted)):
        return True
    denied = _listed(_tokens(statement.lower()), NEGATIONS) or _listed(wanted, ENDS)
    return not denied and _listed(tokens, NEGATIONS) and _shares(tokens, wanted)


def plays(text: str) -> bool:
    """Return whether a text opens a role play, a story or a song."""
    return _PLAY.search(_plain(folded(text))) is not None


def stops_playing(text: str) -> bool:
    """Return whether a text ends a role play, a story or a song, and opens no other."""
    rest, ends = _PLAY_ENDS.subn(" ", _plain(folded(text)).strip())
    return ends > 0 and _PLAY.search(rest) is None


# ------------------------------------------------------------------------------------------------ certain
def _begins_with(clause: str, wanted: Sequence[str], *, in_person: bool) -> bool:
    tokens = _tokens(clause)
    if in_person and not _listed(tokens, FIRST_PERSON):
        return False
    said = _significant(clause)
    if len(said) < len(wanted):
        return False
    pairs = enumerate(zip(said, wanted, strict=False))
    if not all(_same(one, other, first=place == 0) for place, (one, other) in pairs):
        return False
    return len(said) == len(wanted) or said[len(wanted)] in _set(JOINTS)


def _significant(text: str, *, of_statement: bool = False) -> list[str]:
    """Return the words that carry a statement, in their order."""
    dropped = _set(LIGHT_WORDS) | _set(FILLERS)
    if of_statement:
        dropped |= _set(STATED_PERSON)
    kept = [each for each in _tokens(text) if each not in dropped]
    return list(dropwhile(_set(LEADS).__contains__, kept))


def _same(said: str, wanted: str, *, first: bool) -> bool:
    """Return whether two words are equal except for the ending of the person, as in `work` and `works`.

    The first word of a statement is its verb in most languages, so it may have other endings: `wohne` and `wohnt`,
    `vivo` and `vive`. A later word may be a name, as in `Rosa` and `Rose`.
    """
    if said == wanted:
        return True
    if min(len(said), len(wanted)) < _STEM_MIN or not (said.isalpha() and wanted.isalpha()):
        return False
    if wanted in (f"{said}s", f"{said}es") or (said.endswith("y") and wanted == f"{said[:-1]}ies"):
        return True
    if not first or len(wanted) <= _STEM_MIN:
        return False
    return wanted == f"{said}t" or (said[:-1] == wanted[:-1] and {said[-1], wanted[-1]} <= _PERSON_ENDINGS)


def _is_supposed_or_reported(clause: str, wanted: Sequence[str]) -> bool:
    """Return whether a clause has a cue that is no part of the statement. `I said` reports the speaker's own words."""
    tokens = _tokens(clause)
    told = (place for place, token in enumerate(tokens) if token in _set(CUES) and not _shares([token], wanted))
    others = any(place == 0 or tokens[place - 1] not in _set(SPEAKERS) for place in told)
    return others or any(cue in clause for cue in UNSPACED_CUES)


def _has_cue(text: str) -> bool:
    return _listed(_tokens(text), CUES) or any(cue in text for cue in UNSPACED_CUES)


# ------------------------------------------------------------------------------------------------ certainly not
def _rejects(clause: str, sentence: str, wanted: Sequence[str], subject: str, *, denied: bool) -> bool:
    tokens = _tokens(clause)
    literal = all(any(_alike(each, token) for token in tokens) for each in wanted)
    if literal and (_is_supposed_or_reported(clause, wanted) or (_listed(tokens, NEGATIONS) and not denied)):
        return True
    content = _significant(clause)
    opening = tokens[0] if tokens else ""
    if opening in _set(CONDITIONS):
        return True
    if sentence.rstrip(" \"')").endswith(("?", "？")):
        return opening in _set(ASKING) and not _owned(tokens, wanted)
    if subject == "user" and content and content[0] in _set(OTHERS) and content[0] not in wanted:
        return not _listed(tokens, SPEAKERS)
    return False


def _owned(tokens: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a word of the statement follows a possessive of the first person: `my daughter`."""
    own = _set("my our mein meine meinen meinem meiner unser unsere mi mis nuestro nuestra mon ma mes notre nos")
    return any(
        token in own and any(_alike(each, after) for each in wanted for after in tokens[place + 1 : place + 4])
        for place, token in enumerate(tokens)
    )


def _is_supposed(text: str) -> bool:
    """Return whether the sentence begins as a supposition."""
    tokens = [each for each in _tokens(text) if each not in _set(LEADS)]
    first = tokens[0] if tokens else ""
    return first in _set(
        "suppose supposing imagine pretend hypothetically angenommen supongamos supon imagina supposons"
    )


def _shares(tokens: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(_alike(each, token) for each in wanted for token in tokens)


def _alike(one: str, other: str) -> bool:
    """Return whether two words differ in their ending at most."""
    if one == other:
        return True
    size = min(len(one), len(other))
    return size >= _STEM_MIN and one[: size - 1] == other[: size - 1] and abs(len(one) - len(other)) <= 2


# ------------------------------------------------------------------------------------------------ words
def _clauses(text: str) -> Iterator[str]:
    for clause in _CLAUSE_END.split(text):
        if clause and clause.strip():
            yield clause.strip()


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(_plain(_NOT.sub(" not", text)))


def _plain(text: str) -> str:
    """Return the text without accents on Latin letters. The marks of other scripts stay, because they are letters."""
    if text.isascii():
        return text
    return "".join(_PLAIN.get(char) or _base(char) for char in text)


_PLAIN: Final = {"ß": "ss", "’": "'"}


@cache
def _base(char: str) -> str:
    decomposed = unicodedata.normalize("NFD", char)
    return decomposed[0] if decomposed[0].isascii() else char


def _listed(tokens: Sequence[str], words: str) -> bool:
    return not _set(words).isdisjoint(tokens)


@cache
def _set(words: str) -> frozenset[str]:
    return frozenset(_plain(word) for word in words.split())

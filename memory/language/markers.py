"""Markers of a clause: negations, endings, hedges, additions, and what was true before.

The functions remove the markers, so that the remaining words only say what the statement is about
(docs/explanation/conflicts.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .locales import Locale
from .phrase_index import index_phrases, match_phrase
from .tokenizer import Segment, Token, content

_MARKERS_WITHIN = 5
"""Negations and hedges stand within so many words of a clause's beginning; later ones concern something else."""


@dataclass(slots=True)
class MarkedClause:
    """A clause from which markers are removed step by step."""

    tokens: list[Token]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    over: bool = False
    """Whether it is no longer true or never was. Whatever its tense, such a clause speaks of the present."""
    ongoing: bool = False
    """Whether a one-time event is still to come: `is moving`."""
    former: Segment = ()
    moved: bool = False
    """Whether the clause names the old value together with the new one: `from tea to coffee`."""
    changed: bool = False
    """Whether it says by a word that it was otherwise before: `now`, `again`."""
    event: bool = False
    """Whether its verb tells of a change: `passed the test`."""
    perfect: bool = False
    """Whether it tells with an auxiliary what was done, and not for how long: `has lived in Peru`."""
    another: bool = False
    """Whether its object is one more of a kind: `a second cat`."""


def take_markers(clause: MarkedClause, pack: Locale) -> None:
    """Remove markers from the clause and set its flags."""
    markers = pack.markers
    while _take(clause, markers.hedges, within=_MARKERS_WITHIN):
        clause.hedged = True
    while _take(clause, markers.endings, within=len(clause.tokens)):
        clause.denied = clause.over = True
    clause.over |= _take(clause, markers.never, within=_negatable(clause.tokens))
    negated = _take(clause, markers.negations, within=_negatable(clause.tokens))
    clause.denied |= clause.over or negated
    while _take(clause, markers.another, within=len(clause.tokens)):
        clause.another = clause.added = True
    while _take(clause, markers.additive, within=len(clause.tokens)):
        clause.added = True
    for place in range(1, len(clause.tokens)):
        phrase = next((each for each in markers.contrasts if starts(clause.tokens[place:], each)), None)
        if phrase is not None:
            clause.former = content(clause.tokens[place + len(phrase.split()) :], pack)
            del clause.tokens[place:]
            break


def take_auxiliaries(clause: MarkedClause, pack: Locale) -> None:
    """Remove auxiliary verbs: has worked → worked, and not past; is working → working; did not work → past; had to give
    up → gave up."""
    clause.changed |= any(t.text in pack.markers.changes for t in clause.tokens)
    clause.tokens = [t for t in clause.tokens if t.text not in pack.adverbs]
    clause.event |= _tells_of_a_change(clause.tokens, pack)
    if not _take_auxiliary(clause, pack):
        clause.past = bool(clause.tokens) and clause.tokens[0].tense == "past"
        _take_until(clause, pack)
    while _take_carrier(clause, pack):
        pass


def _tells_of_a_change(found: Sequence[Token], pack: Locale) -> bool:
    """Whether the main verb is one of change, in the past: `passed the test`, `has passed the test`."""
    if len(found) > 1 and found[0].base in pack.auxiliaries and found[1].tense in ("past", "participle"):
        found = found[1:]
    return bool(found) and found[0].base in pack.turns and found[0].tense in ("past", "participle")


def _take_auxiliary(clause: MarkedClause, pack: Locale) -> bool:
    found = clause.tokens
    if len(found) > 1 and found[1].tense in pack.auxiliaries.get(found[0].base, ()):
        clause.past = found[0].tense == "past" and found[1].tense == "base"
        clause.perfect = found[0].base in pack.perfect and found[1].base not in pack.copulas
        found = found[1:]
        if len(found) > 1 and found[0].base in pack.copulas and found[1].tense == "ongoing":
            found = found[1:]
        clause.tokens = found
        return True
    if len(found) > 1 and found[0].base in pack.copulas and found[1].tense == "ongoing":
        clause.past = found[0].tense == "past"
        clause.ongoing = True
        clause.tokens = found[1:]
        return True
    return False


def _take_until(clause: MarkedClause, pack: Locale) -> None:
    """Handle `was on leave until May`: it is over."""
    found = clause.tokens
    over = next((place for place, token in enumerate(found) if place > 1 and token.text in pack.markers.until), None)
    if clause.over:
        clause.past = False
    if clause.past and over is not None:
        clause.denied, clause.past, clause.tokens = True, False, found[:over]


def _take_carrier(clause: MarkedClause, pack: Locale) -> bool:
    """Remove a verb before the main verb that says that it was done or began: `started dating`, `had to give up`."""
    found, shelves = clause.tokens, index_phrases(pack)
    begins = match_phrase(found, shelves.begins, pack)
    ruled = match_phrase(found, shelves.rules, pack)
    if begins is not None and ruled is not None and ruled.end > begins.end and found[begins.end].tense == "base":
        return False  # went back to work
    if begins is not None and _goes_on(found[begins.end :], "base" if begins.end > 1 else "ongoing", "ongoing"):
        clause.past, clause.tokens = False, found[begins.end :]
        return True
    carries = match_phrase(found, shelves.carriers, pack) if found and found[0].tense == "past" else None
    if carries is not None and _goes_on(found[carries.end :], "base", "ongoing"):
        clause.tokens = found[carries.end :]
        return True
    return False


def _goes_on(found: Sequence[Token], *tenses: str) -> bool:
    return bool(found) and found[0].tense in tenses


def take_former(clause: MarkedClause, pack: Locale) -> None:
    """Remove the old value of `from X to Y` and keep it in `former`."""
    for before, after in pack.markers.former:
        if not starts(clause.tokens, before):
            continue
        rest = clause.tokens[len(before.split()) :]
        place = next((place for place, token in enumerate(rest) if token.text == after), None)
        if place is not None:
            clause.former, clause.moved = content(rest[:place], pack), True
            verb = clause.tokens[: max(1, len(before.split()) - 1)]  # went up *from* 5 *to* 6: went up to 6
            clause.tokens = verb + rest[place:]
            return


def begins_with_marker(found: Sequence[Token], pack: Locale) -> bool:
    markers = pack.markers
    return any(
        starts(found, phrase)
        for phrase in (*markers.hedges, *markers.endings, *markers.never, *markers.negations, *markers.additive)
    )


def starts(found: Sequence[Token], phrase: str) -> bool:
    if not found or phrase.partition(" ")[0] not in (found[0].base, found[0].text):
        return False  # most phrases
    words = phrase.split()
    return len(found) >= len(words) and all(
        word in (token.base, token.text) and not token.is_name for word, token in zip(words, found, strict=False)
    )


def _take(clause: MarkedClause, phrases: Sequence[str], *, within: int) -> bool:
    """Remove the longest of these phrases that begins within the first `within` words; return whether there was one."""
    said = {word for token in clause.tokens for word in (token.base, token.text)}
    said_phrases = [phrase for phrase in phrases if phrase.partition(" ")[0] in said]
    for phrase in sorted(said_phrases, key=lambda each: -len(each.split())):
        size = len(phrase.split())
        for place in range(min(within, len(clause.tokens))):
            if starts(clause.tokens[place:], phrase):
                del clause.tokens[place : place + size]
                return True
    return False


def _negatable(found: Sequence[Token]) -> int:
    """Return how far a negation may stand: before the verb or right after it. Later ones concern something else."""
    verb = next((place for place, token in enumerate(found) if token.tense is not None), 0)
    return verb + 2

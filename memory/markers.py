"""Markers of a clause: negations, endings, hedges, additions, and what it says that it was before.

They are taken out, so that what is left says only what the statement is about (memory-model §6, stage 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .locales import Locale
from .wording import Segment, Token, content

_MARKERS_WITHIN = 5
"""Negations and hedges stand this near to a clause's beginning, or they are said of something else."""


@dataclass(slots=True)
class Clause:
    """A clause while its markers are taken out."""

    tokens: list[Token]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    over: bool = False
    """It was so, or never was: whichever its tense, it speaks of now."""
    ongoing: bool = False
    """`is moving`: of what happens once, it is still to come."""
    former: Segment = ()


def take_markers(clause: Clause, pack: Locale) -> None:
    markers = pack.markers
    while _take(clause, markers.hedges, within=_MARKERS_WITHIN):
        clause.hedged = True
    while _take(clause, markers.endings, within=len(clause.tokens)):
        clause.denied = clause.over = True
    clause.over |= _take(clause, markers.never, within=_negatable(clause.tokens))
    clause.denied |= clause.over or _take(clause, markers.negations, within=_negatable(clause.tokens))
    while _take(clause, markers.additive, within=len(clause.tokens)):
        clause.added = True
    for place in range(1, len(clause.tokens)):
        phrase = next((each for each in markers.contrasts if starts(clause.tokens[place:], each)), None)
        if phrase is not None:
            clause.former = content(clause.tokens[place + len(phrase.split()) :], pack)
            del clause.tokens[place:]
            break


def take_auxiliaries(clause: Clause, pack: Locale) -> None:
    """Has worked → worked, and not past; is working → working; did not work → past."""
    clause.tokens = [t for t in clause.tokens if t.text not in pack.adverbs]
    found = clause.tokens
    if len(found) > 1 and found[1].tense in pack.auxiliaries.get(found[0].base, ()):
        clause.past = found[0].tense == "past" and found[1].tense == "base"
        found = found[1:]
        if len(found) > 1 and found[0].base in pack.copulas and found[1].tense == "ongoing":
            found = found[1:]
        clause.tokens = found
        return
    if len(found) > 1 and found[0].base in pack.copulas and found[1].tense == "ongoing":
        clause.past = found[0].tense == "past"
        clause.ongoing = True
        clause.tokens = found[1:]
        return
    clause.past = bool(found) and found[0].tense == "past"
    over = next((place for place, token in enumerate(found) if place > 1 and token.text in pack.markers.until), None)
    if clause.over:
        clause.past = False
    if clause.past and over is not None:
        clause.denied, clause.past, clause.tokens = True, False, found[:over]


def take_former(clause: Clause, pack: Locale) -> None:
    for before, after in pack.markers.former:
        if not starts(clause.tokens, before):
            continue
        rest = clause.tokens[len(before.split()) :]
        place = next((place for place, token in enumerate(rest) if token.text == after), None)
        if place is not None:
            clause.former = content(rest[:place], pack)
            verb = clause.tokens[:1]
            clause.tokens = verb + rest[place:]
            return


def begins_with_marker(found: Sequence[Token], pack: Locale) -> bool:
    markers = pack.markers
    return any(
        starts(found, phrase)
        for phrase in (*markers.hedges, *markers.endings, *markers.never, *markers.negations, *markers.additive)
    )


def starts(found: Sequence[Token], phrase: str) -> bool:
    words = phrase.split()
    return len(found) >= len(words) and all(
        word in (token.base, token.text) and not token.is_name for word, token in zip(words, found, strict=False)
    )


def _take(clause: Clause, phrases: Sequence[str], *, within: int) -> bool:
    """Takes the longest of these phrases out, wherever it begins among the first words."""
    said = {word for token in clause.tokens for word in (token.base, token.text)}
    heard = [phrase for phrase in phrases if phrase.partition(" ")[0] in said]
    for phrase in sorted(heard, key=lambda each: -len(each.split())):
        size = len(phrase.split())
        for place in range(min(within, len(clause.tokens))):
            if starts(clause.tokens[place:], phrase):
                del clause.tokens[place : place + size]
                return True
    return False


def _negatable(found: Sequence[Token]) -> int:
    """A negation stands before the verb or right after it; later ones are about something else."""
    verb = next((place for place, token in enumerate(found) if token.tense is not None), 0)
    return verb + 2

"""Markers of a clause: words that change the claim but not its topic (docs/explanation/conflicts.md).

Markers are negations (`not`), endings (`no longer`), hedges (`maybe`), additions (`also`) and former values (`instead
of tea`). The functions remove the markers from the clause and set flags. The remaining words are compared with other
claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from .locales import Locale
from .phrase_index import index_phrases, match_phrase
from .tokenizer import Segment, Token, content

_MARKERS_WITHIN = 5
"""Number of words at the beginning of a clause in which hedges are searched. A later hedge concerns another part of the
clause."""


MarkerShelf = Mapping[str, tuple[tuple[int, int, tuple[str, ...]], ...]]
"""The phrases of a pack by their first word. Each phrase is a tuple of its negative number of words, its position in
the pack and its words. The smallest tuple is thus the longest phrase, and among equally long phrases the first in the
pack."""


@dataclass(frozen=True, slots=True)
class MarkerIndex:
    """The markers of a pack by their first words. The index saves time, because most words of a text begin no
    marker."""

    hedges: MarkerShelf
    endings: MarkerShelf
    never: MarkerShelf
    negations: MarkerShelf
    another: MarkerShelf
    instead: MarkerShelf
    additive: MarkerShelf
    contrasts: MarkerShelf
    beginnings: MarkerShelf
    """All markers that may be the first words of a clause."""
    former: MarkerShelf
    """Words before a former value, for example `from`."""
    negations_and_stop_words: frozenset[str]
    """Words that may occur between the beginning of a clause and its verb."""


@lru_cache(maxsize=8)
def index_markers(pack: Locale) -> MarkerIndex:
    """Build the index of a pack, once per pack."""
    markers = pack.markers
    return MarkerIndex(
        hedges=_shelf(markers.hedges),
        endings=_shelf(markers.endings),
        never=_shelf(markers.never),
        negations=_shelf(markers.negations),
        another=_shelf(markers.another),
        instead=_shelf(markers.instead),
        additive=_shelf(markers.additive),
        contrasts=_shelf(markers.contrasts),
        beginnings=_shelf(
            (*markers.hedges, *markers.endings, *markers.never, *markers.negations, *markers.additive),
        ),
        former=_shelf(before for before, _ in markers.former),
        negations_and_stop_words=pack.stop_words | markers.words,
    )


def _shelf(phrases: Iterable[str]) -> MarkerShelf:
    found: dict[str, list[tuple[int, int, tuple[str, ...]]]] = {}
    for place, phrase in enumerate(phrases):
        if said := tuple(phrase.split()):
            found.setdefault(said[0], []).append((-len(said), place, said))
    return {first: tuple(each) for first, each in found.items()}


@dataclass(slots=True)
class MarkedClause:
    """A clause from which markers are removed step by step."""

    tokens: list[Token]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    over: bool = False
    """True when the clause says that something is no longer true or never was true. Such a clause is about the present,
    whatever its tense."""
    ongoing: bool = False
    """True when the verb has a continuous form, as in `is moving`. A one-time event in this form has not happened
    yet."""
    former: Segment = ()
    """The value that was true before or is denied."""
    moved: bool = False
    """True when the clause names the former value and the new value: `from tea to coffee`."""
    changed: bool = False
    """True when a word says that the earlier state was different: `now`, `again`."""
    event: bool = False
    """True when the verb reports a change: `passed the test`."""
    perfect: bool = False
    """True when an auxiliary reports a past action without a duration: `has lived in Peru`."""
    another: bool = False
    """True when the object is one more thing of its kind: `a second cat`."""


def take_markers(clause: MarkedClause, pack: Locale) -> None:
    """Remove the markers from the clause and set the flags of the clause."""
    markers = index_markers(pack)
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
        phrase = _contrast_at(clause.tokens, place, markers.contrasts)
        if phrase is not None:
            clause.former = content(clause.tokens[place + len(phrase) :], pack)
            del clause.tokens[place:]
            break


def take_auxiliaries(clause: MarkedClause, pack: Locale) -> None:
    """Remove auxiliary verbs and set the tense flags of the clause.

    Examples: `has worked` becomes `worked`, which does not count as past. `is working` becomes `working`. `did work`
    becomes `work`, which counts as past. `had to give up` becomes `give up`, which counts as past.
    """
    clause.changed |= any(t.text in pack.markers.changes for t in clause.tokens)
    clause.tokens = [t for t in clause.tokens if t.text not in pack.adverbs]
    clause.event |= _reports_change(clause.tokens, pack)
    if not _take_auxiliary(clause, pack):
        clause.past = bool(clause.tokens) and clause.tokens[0].tense == "past"
        _take_until(clause, pack)
    while _take_carrier(clause, pack):
        pass


def _reports_change(found: Sequence[Token], pack: Locale) -> bool:
    """Return whether the main verb is a past verb of change: `passed the test`, `has passed the test`."""
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
    """Mark a past state with an end, such as `was on leave until May`, as denied now, and remove the words of the
    end."""
    found = clause.tokens
    over = next((place for place, token in enumerate(found) if place > 1 and token.text in pack.markers.until), None)
    if clause.over:
        clause.past = False
    if clause.past and over is not None:
        clause.denied, clause.past, clause.tokens = True, False, found[:over]


def _take_carrier(clause: MarkedClause, pack: Locale) -> bool:
    """Remove a verb that only says that the action of the main verb began or happened: `started` in `started dating`,
    `had to` in `had to give up`."""
    found, shelves = clause.tokens, index_phrases(pack)
    begins = match_phrase(found, shelves.begins, pack)
    ruled = match_phrase(found, shelves.rules, pack)
    if begins is not None and ruled is not None and ruled.end > begins.end and found[begins.end].tense == "base":
        return False  # `went back to work`: the rule needs both verbs
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
    """Move the former value X of a clause such as `from X to Y` into `former`."""
    if not clause.tokens:
        return
    for _, order, words in sorted(_candidates_at(clause.tokens[0], index_markers(pack).former), key=itemgetter(1)):
        if not _starts(clause.tokens, 0, words):
            continue
        after = pack.markers.former[order][1]
        rest = clause.tokens[len(words) :]
        place = next((place for place, token in enumerate(rest) if token.text == after), None)
        if place is not None:
            clause.former, clause.moved = content(rest[:place], pack), True
            verb = clause.tokens[: max(1, len(words) - 1)]  # `went up from 5 to 6` becomes `went up to 6`
            clause.tokens = verb + rest[place:]
            return


def says_instead(found: Sequence[Token], pack: Locale) -> bool:
    """Return whether a phrase of the text says that it replaces an earlier statement: `now`, `changed my mind`."""
    phrases = index_markers(pack).instead
    return any(
        _starts(found, place, words)
        for place, token in enumerate(found)
        for _, _, words in _candidates_at(token, phrases)
    )


def begins_with_marker(found: Sequence[Token], pack: Locale) -> bool:
    return any(_starts(found, 0, words) for _, _, words in _candidates_at(found[0], index_markers(pack).beginnings))


def _contrast_at(found: Sequence[Token], place: int, contrasts: MarkerShelf) -> tuple[str, ...] | None:
    """Return the words of the contrast phrase that begins at a position; None when there is none."""
    may_begin = _candidates_at(found[place], contrasts)
    if not may_begin:
        return None
    return next((words for _, _, words in sorted(may_begin, key=itemgetter(1)) if _starts(found, place, words)), None)


def _candidates_at(token: Token, shelf: MarkerShelf) -> Collection[tuple[int, int, tuple[str, ...]]]:
    if token.base == token.text:
        return shelf.get(token.text, ())
    return {*shelf.get(token.base, ()), *shelf.get(token.text, ())}


def _starts(found: Sequence[Token], place: int, words: Sequence[str]) -> bool:
    if len(found) < place + len(words):
        return False
    for at, word in enumerate(words, start=place):
        token = found[at]
        if token.is_name or (word != token.text and word != token.base):
            return False
    return True


def _take(clause: MarkedClause, phrases: MarkerShelf, *, within: int) -> bool:
    """Remove the longest phrase that begins within the first `within` words. Return whether a phrase was removed."""
    found = clause.tokens
    matches = [
        (size, order, place)
        for place, token in enumerate(found[:within])
        if token.base in phrases or token.text in phrases
        for size, order, words in _candidates_at(token, phrases)
        if _starts(found, place, words)
    ]
    if not matches:
        return False
    size, _, place = min(matches)
    del found[place : place - size]
    return True


def _negatable(found: Sequence[Token]) -> int:
    """Return the number of words in which a negation may begin: the words up to the first word after the verb.

    A later negation concerns another part of the clause.
    """
    verb = next((place for place, token in enumerate(found) if token.tense is not None), 0)
    return verb + 2

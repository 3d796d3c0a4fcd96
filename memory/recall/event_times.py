"""Times that a cue names by an event of the speaker's life: before I moved, since I got married. Pure
(docs/design/recall.md).

The words are data of the locale packs (`EventWords`). The event is looked up among the facts of the owner. A cue
whose event no fact states names no time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ..facts.slot_predicates import PREDICATE_SLOTS
from ..language.locales import Locale
from ..language.locales.pack import EventWord, TimeRelation
from .cue_fit import stems

COVERED_LEAST: Final = 0.6
"""Minimum share of the words of an event that a fact has to state."""
_WORDS_MAX: Final = 8
"""Maximum number of significant words of an event."""
_TOKENS_MAX: Final = 16
"""Maximum number of tokens of a clause."""
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[,.;:!?()]")


@dataclass(frozen=True, slots=True)
class _Named:
    """A significant word of an event: its stems, and the states that it begins, ends or names."""

    stems: frozenset[str]
    event: EventWord | None


@dataclass(frozen=True, slots=True)
class EventClause:
    """A clause of a cue that names a time by an event: the relation to the time, and the words of the event."""

    relation: TimeRelation
    words: tuple[str, ...]
    named: tuple[_Named, ...]
    pack: Locale

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def slots(self) -> frozenset[str]:
        """The slots of the facts that may state the event in other words."""
        return frozenset[str]().union(*(each.event.slots for each in self.named if each.event is not None))

    @property
    def predicates(self) -> frozenset[str]:
        """The predicates of such facts, for facts of earlier versions, which have no slot."""
        slots = self.slots
        return frozenset(predicate for predicate, slot in PREDICATE_SLOTS.items() if slot in slots)


@dataclass(frozen=True, slots=True)
class DatedFact:
    """The fields of a fact that decide whether it states an event, and when."""

    content: str
    slot: str
    category: str
    begin: datetime
    begin_told: bool
    end: datetime | None
    follows: bool
    """True when the fact replaced another fact, so that its begin is a change."""


def read_event_clause(cue: str, packs: Sequence[Locale]) -> EventClause | None:
    """Return the first clause of the cue that names a time by an event, in the words of one of these packs."""
    tokens = [each.lower() for each in _TOKEN.findall(unicodedata.normalize("NFC", cue))]
    for pack in packs:
        events = pack.event_words
        for place in range(len(tokens) - 2):
            relation = events.relations.get(tokens[place])
            if relation is None or tokens[place + 1] not in events.own:
                continue
            words = tuple(_event_words(tokens[place + 2 : place + 2 + _TOKENS_MAX], pack))[:_WORDS_MAX]
            if words:
                named = tuple(_Named(stems(word, pack), events.words.get(word)) for word in words)
                return EventClause(relation, words, named, pack)
    return None


def _event_words(tokens: Iterable[str], pack: Locale) -> Iterator[str]:
    """Yield the significant words of an event, until the rest of the question begins."""
    events = pack.event_words
    for token in tokens:
        if not token[0].isalpha() or token in events.ends_at:
            return
        if token in events.words or not (token in events.light or token in events.own or _is_empty(token, pack)):
            yield token


def _is_empty(token: str, pack: Locale) -> bool:
    said = token
    for letter, instead in pack.letters.items():
        said = said.replace(letter, instead)
    return said in pack.stop_words or said in pack.separators


class _Stated(NamedTuple):
    """A fact that states an event. The greatest one counts."""

    covered: float
    told: bool
    moment: datetime


def moment_of_event(clause: EventClause, facts: Iterable[DatedFact], *, now: datetime) -> datetime | None:
    """Return when the event was, by the fact that states most of its words; None when no fact states enough of them.

    Of equally good facts, a fact whose begin was stated counts first, then the newest one. A word for an end (`left`)
    is stated by a fact that has ended, or by a fact with this word.
    """
    stated = (_stated(clause, fact, now) for fact in facts)
    best = max((each for each in stated if each is not None), default=None)
    return None if best is None else best.moment


def _stated(clause: EventClause, fact: DatedFact, now: datetime) -> _Stated | None:
    own = stems(fact.content, clause.pack)
    covered, ends = 0, False
    for each in clause.named:
        event = each.event
        if not each.stems.isdisjoint(own):
            covered += 1
        elif event is not None and fact.slot in event.slots and _changes(event, fact):
            covered += 1
            ends = ends or event.change == "end"
    moment = fact.end if ends else fact.begin
    share = covered / len(clause.named)
    if share < COVERED_LEAST or moment is None or moment > now:
        return None
    return _Stated(share, fact.begin_told, moment)


def _changes(event: EventWord, fact: DatedFact) -> bool:
    """Return whether the fact reports this change of its state. A begin that nobody stated is only the day on which the
    fact was first said, unless another value was replaced then."""
    match event.change:
        case None:
            return True
        case "begin":
            return fact.begin_told or fact.follows or fact.category == "event"
        case "end":
            return fact.end is not None

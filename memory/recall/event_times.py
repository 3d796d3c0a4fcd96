"""Times that a cue names by an event of the speaker's life: before I moved, since I got married. Pure
(docs/design/recall.md).

The words are data of the locale packs (`EventWords`). The event is looked up among the facts of the owner. A cue
whose event no fact states names no time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal, NamedTuple

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
_PART_MIN: Final = 3
"""Letters of the shortest part of a compound noun."""
_COMPOUND_MAX: Final = 40
"""Letters of the longest compound noun."""
_NOT_HAPPENED: Final = frozenset(("goal", "task"))
"""Categories of facts about what has not happened yet."""
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[,.;:!?()]")


@dataclass(frozen=True, slots=True)
class _Named:
    """A significant word of an event: its stems, and the states that it begins, ends or names."""

    word: str
    event: EventWord | None
    stems: frozenset[str]
    splits: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The stems of the two parts, for each place where the word may be joined."""

    @classmethod
    def of(cls, word: str, event: EventWord | None, pack: Locale) -> _Named:
        splits = tuple((stems(first, pack), stems(last, pack)) for first, last in _splits(word, pack))
        return cls(word, event, stems(word, pack), splits)

    @property
    def is_general(self) -> bool:
        """True for a word that names no state itself: the `end` of my studies."""
        return self.event is not None and not self.event.slots

    def is_in(self, stated: AbstractSet[str]) -> bool:
        """Return whether the word, or both parts of it, are among the words of a fact: `Knieoperation`, `Operation` am
        `Knie`."""
        if not self.stems.isdisjoint(stated):
            return True
        return any(not first.isdisjoint(stated) and not last.isdisjoint(stated) for first, last in self.splits)


@dataclass(frozen=True, slots=True)
class EventClause:
    """A clause of a cue that names a time by an event: the relation to the time, and the words of the event."""

    relation: TimeRelation
    named: tuple[_Named, ...]
    pack: Locale

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(each.word for each in self.named)

    @property
    def text(self) -> str:
        """The words for a search. A word that may be a compound noun has its possible parts too."""
        words = self.words
        parts = (part for each in words for split in _splits(each, self.pack) for part in split)
        return " ".join(dict.fromkeys((*words, *parts)))

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
    denied: bool = False


# ------------------------------------------------------------------------------------------------ cue
def read_event_clause(cue: str, packs: Sequence[Locale]) -> EventClause | None:
    """Return the first clause of the cue that names a time by an event, in the words of one of these packs."""
    written = _TOKEN.findall(unicodedata.normalize("NFC", cue))
    tokens = [each.lower() for each in written]
    for pack in packs:
        relations = pack.event_words.relations
        for place, token in enumerate(tokens):
            if token in relations:
                begin, end = place + 1, place + 1 + _TOKENS_MAX
                named = tuple(islice(_EventReader(tokens[begin:end], written[begin:end], pack).named(), _WORDS_MAX))
                if not all(each.is_general for each in named):
                    return EventClause(relations[token], named, pack)
    return None


@dataclass(frozen=True, slots=True)
class _EventReader:
    """Reader of the significant words of an event in the tokens after `before`, until the rest of the question."""

    tokens: Sequence[str]
    written: Sequence[str]
    """The tokens with their capital letters."""
    pack: Locale

    def named(self) -> Iterator[_Named]:
        for place in self._places():
            yield from _named(self.tokens[place], self.pack, noun=self._is_capital(place))

    def _places(self) -> Sequence[int]:
        """Return the places of the significant words."""
        events = self.pack.event_words
        first = 1 if self._token(0) in events.between else 0
        begin = self._token(first).replace("’", "'").partition("'")[0]
        if begin in events.of_nouns:
            return self._noun(first + 1, clause=begin in events.of_clauses)
        if begin in events.of_clauses:
            return self._clause(first + 1)
        if begin in events.bare:
            return self._noun(first, clause=False)
        if begin not in events.articles:
            return ()
        places = self._noun(first + 1, clause=False)
        own = any(each in events.of_nouns for each in self.tokens[first + 1 : places[-1]]) if places else False
        return places if own or (places and self._is_change(places[0])) else ()

    def _clause(self, place: int) -> list[int]:
        """Read a clause: (before I) `moved` to `Porto`."""
        places = []
        while not self._ends(place):
            places += [place] if self._is_significant(place) else []
            place += 1
        return places

    def _noun(self, place: int, *, clause: bool) -> list[int]:
        """Read a noun and what it is about: (after my) `move` to `Porto`. The words after them belong to the question.
        `clause`: the noun may begin a clause: (after my) `son` was `born`."""
        events = self.pack.event_words
        places = self._nouns(place)
        while places:
            after = places[-1] + 1
            if self._token(after) in events.about or (self._token(after) in events.of_nouns and not clause):
                more = self._nouns(after + 1)
            else:
                more = self._clause(after) if clause and self._token(after) in events.light else []
            if not more:
                break
            places += more
        return places

    def _nouns(self, place: int) -> list[int]:
        """Read adjacent significant words: the nouns, in a language that writes nouns with a capital letter. In a cue
        without such letters they end with a word of an event."""
        while not self._ends(place) and not self._is_significant(place):
            place += 1
        end = place
        while not self._ends(end) and self._is_significant(end):
            end += 1
        if self.pack.nouns is not None:
            adjectives = next((each for each in range(place, end) if self._is_capital(each)), None)
            if adjectives is not None:
                place = adjectives
                end = next((each for each in range(place, end) if not self._is_capital(each)), end)
            else:
                end = next((each + 1 for each in range(place, end) if self._is_change(each)), end)
        return [*range(place, end)]

    def _ends(self, place: int) -> bool:
        """Return whether the event ends before this place: at a mark, a question word, or `did I`."""
        token, events = self._token(place), self.pack.event_words
        if not token[:1].isalpha() or token in events.ends_at:
            return True
        after = self._token(place + 1)
        return token in events.light and after in events.of_clauses and after not in events.of_nouns

    def _is_significant(self, place: int) -> bool:
        token, events = self.tokens[place], self.pack.event_words
        if token in events.words:
            return True
        own = token in events.of_nouns or token in events.of_clauses
        return not (own or token in events.light or _is_empty(token, self.pack))

    def _is_change(self, place: int) -> bool:
        event = next(_named(self.tokens[place], self.pack, noun=self._is_capital(place))).event
        return event is not None and event.change is not None

    def _is_capital(self, place: int) -> bool:
        return self.written[place][:1].isupper()

    def _token(self, place: int) -> str:
        return self.tokens[place] if place < len(self.tokens) else ""


def _named(word: str, pack: Locale, *, noun: bool) -> Iterator[_Named]:
    """Yield a word. A compound noun has the event of its last part: `Schulabschluss` is an `Abschluss`. It is two words
    if the last part names no state: `Jobwechsel`."""
    events = pack.event_words
    parts = _splits(word, pack) if noun and word not in events.words else ()
    for first, last in parts:
        event = events.words.get(last)
        if event is not None and not event.slots:
            yield from _named(first if first in events.words else _unlinked(first, pack), pack, noun=False)
            yield _Named.of(last, event, pack)
            return
        if event is not None and event.change is not None:
            yield _Named.of(word, event, pack)
            return
    yield _Named.of(word, events.words.get(word), pack)


def _is_empty(token: str, pack: Locale) -> bool:
    said, times = token, pack.time_words
    for letter, instead in pack.letters.items():
        said = said.replace(letter, instead)
    empty = said in pack.stop_words or said in pack.separators or said in pack.times
    return empty or token in times.last or token in times.this or token in times.units


# ------------------------------------------------------------------------------------------------ compound nouns
def _splits(word: str, pack: Locale) -> list[tuple[str, str]]:
    """Return each split of a word into two parts, in a language with compound nouns."""
    if pack.nouns is None or not pack.nouns.links or len(word) > _COMPOUND_MAX:
        return []
    return [(word[:place], word[place:]) for place in range(_PART_MIN, len(word) - _PART_MIN + 1)]


def _unlinked(first: str, pack: Locale) -> str:
    """Return the first part of a compound noun without its linking letters, if it is a word of an event then."""
    links = () if pack.nouns is None else pack.nouns.links
    unlinked = (first.removesuffix(each) for each in links)
    return next((each for each in unlinked if each in pack.event_words.words), first)


# ------------------------------------------------------------------------------------------------ facts
class _Stated(NamedTuple):
    """A fact that states an event. The greatest one counts."""

    covered: float
    told: bool
    moment: datetime


def moment_of_event(clause: EventClause, facts: Iterable[DatedFact], *, now: datetime) -> datetime | None:
    """Return when the event was, by the fact that states most of its words; None when no fact states enough of them.

    Of equally good facts, a fact whose begin was stated counts first, then the newest one. A word for an end (`left`)
    is stated by a fact that has ended, or by a fact with this word or a word of the same meaning.
    """
    stated = (_stated(clause, fact, now) for fact in facts)
    best = max((each for each in stated if each is not None), default=None)
    return None if best is None else best.moment


def _stated(clause: EventClause, fact: DatedFact, now: datetime) -> _Stated | None:
    if fact.denied or fact.category in _NOT_HAPPENED:
        return None
    said = stems(fact.content, clause.pack)
    events = clause.pack.event_words.words
    changes = [events[each] for each in _TOKEN.findall(fact.content.lower()) if each in events]
    found = [(each, _cover(each, fact, said, changes)) for each in clause.named]
    counted = [(each, cover) for each, cover in found if cover != "assumed"]
    covered = [(each, cover) for each, cover in counted if cover is not None]
    if all(each.is_general for each, _ in covered) or len(covered) / len(counted) < COVERED_LEAST:
        return None
    moment = fact.end if any(cover == "end" for _, cover in covered) else fact.begin
    return None if moment is None or moment > now else _Stated(len(covered) / len(counted), fact.begin_told, moment)


_Cover = Literal["begin", "end", "assumed"]
"""The end of the fact's time at which the event was. `assumed`: a begin that nobody stated, so that the word counts
neither for the fact nor against it."""


def _cover(named: _Named, fact: DatedFact, said: AbstractSet[str], changes: Iterable[EventWord]) -> _Cover | None:
    """Return how the fact states the word, or None. `said` are the words of the fact, `changes` their events."""
    event = named.event
    if named.is_in(said) or (event is not None and any(_is_same_change(event, each) for each in changes)):
        return "begin"
    if event is None or (event.slots and fact.slot not in event.slots):
        return None
    match event.change:
        case "end":
            return None if fact.end is None else "end"
        case "begin":
            # a begin that nobody stated is only the day on which the fact was first said
            return "begin" if fact.begin_told or fact.follows or fact.category == "event" else "assumed"
        case None:
            return "begin"


def _is_same_change(one: EventWord, other: EventWord) -> bool:
    """Return whether two words mean the same change of the same states: `finished` and `graduated`."""
    if one.change is None or one.change != other.change:
        return False
    return not one.slots or not one.slots.isdisjoint(other.slots)

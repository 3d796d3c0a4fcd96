"""What a locale pack holds. Words are lower case; in phrases verbs stand in their base form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Valued = Literal["single", "multi", "unsure"]
"""How many values a predicate has at one time: one (an employer), several (languages), or who knows (`prefers`)."""


@dataclass(frozen=True, slots=True)
class PredicateRule:
    """One predicate and the phrases that mean it. In a phrase `#` stands for a number and `*` for one or two words;
    both belong to the object. Of rules whose phrases are equally long the first holds."""

    predicate: str
    valued: Valued
    phrases: tuple[str, ...]
    value: str | None = None
    """A word that the phrase itself says of the object: `is engaged to` says `engaged`."""
    denied: bool = False
    """The phrase says the contrary (dislikes), or that it is over (left)."""
    happened: bool = False
    """Its past tells what is so now: moved to, joined."""
    named: bool = False
    """Only with a proper name in the object: one moves to Rome, or to another team."""
    among: frozenset[str] = frozenset()
    """Only with one of these words in the object."""
    absent: str | None = None
    """What it says where it names nothing: who drinks, drinks alcohol."""


@dataclass(frozen=True, slots=True)
class Implied:
    """What follows one of these prepositions in the object of `predicate` is the object of another, `other`."""

    predicate: str
    prepositions: frozenset[str]
    other: str
    named: bool = False
    """Only proper names: head *of* Acme, not of a department."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Phrases that change what a statement says. Each is looked for within the clause that speaks of the subject."""

    negations: tuple[str, ...]
    never: tuple[str, ...]
    """Negations of all times."""
    endings: tuple[str, ...]
    """It was so: no longer, used to."""
    hedges: tuple[str, ...]
    """Plans and guesses: they claim nothing."""
    additive: tuple[str, ...]
    contrasts: tuple[str, ...]
    """What follows is what it is not: `Bern, not Basel`."""
    until: frozenset[str]
    """After a past: it is over."""
    former: tuple[tuple[str, str], ...]
    """(before the old value, before the new one): switched *from* tea *to* coffee."""
    others: frozenset[str]
    """Words after which a clause speaks of somebody or something else."""

    @property
    def words(self) -> frozenset[str]:
        """Those that may stand before a verb."""
        return frozenset(" ".join((*self.negations, *self.never, *self.endings)).split())


@dataclass(frozen=True, slots=True, eq=False)
class Locale:
    name: str
    rules: tuple[PredicateRule, ...]
    lasting: frozenset[str]
    """Predicates that hold though what they speak of has ended: who drops a Dutch course, still speaks Dutch."""
    ends: tuple[str, ...]
    """Phrases that end whatever their object was: quit, gave up, broke up with."""
    ends_work: tuple[str, ...]
    """Phrases that end any occupation and employment, whichever it was."""
    ended: tuple[str, ...]
    """Said of a subject that is no more: the dog died."""
    begins: tuple[str, ...]
    """Before a verb: it is so from then on. *Started* dating."""
    carriers: tuple[str, ...]
    """Before a verb: it was done. *Had to* give up, *ended up* moving."""
    switches: tuple[str, ...]
    """What follows takes the place of what there was of its kind: switched to day shifts."""
    shells: frozenset[str]
    """Words that add nothing to what was ended: the gym *membership*."""
    sets: tuple[tuple[str, str], ...]
    """(verb, what stands before the value): changed the password *to* walrus."""
    becomes: tuple[str, ...]
    """Verb and preposition between X and its new V: the deadline moved to Monday."""
    markers: Markers
    contractions: Mapping[str, str]
    copulas: frozenset[str]
    """Base forms of what joins X and V in "X is V"."""
    states: frozenset[str]
    """Of the copulas those whose past is over: was, but not became."""
    auxiliaries: Mapping[str, frozenset[str]]
    """Base form → the tenses of a verb before which it carries no meaning of its own: has worked, did not work."""
    joins: frozenset[str]
    """Before a verb they begin a clause."""
    verbs: Mapping[str, tuple[str, str]]
    """Form → (base form, one of base, present, past, participle, ongoing)."""
    subjects: frozenset[str]
    """How a statement names the one that it is about."""
    people: frozenset[str]
    """Who has a life of their own: what is said of them is not said of the subject."""
    occupation: str
    """The predicate of "is a nurse"."""
    owning: str
    """The predicate of "has a dog"."""
    implied: tuple[Implied, ...]
    """Works at X *as* Y. What ends one of these predicates without a word of its object ends all of them."""
    not_employers: frozenset[str]
    """Proper names that no employer has: head of Sales."""
    occupations: frozenset[str]
    occupation_endings: tuple[str, ...]
    not_occupations: frozenset[str]
    stop_words: frozenset[str]
    """Say nothing about whether two statements are the same."""
    adverbs: frozenset[str]
    """Of the stop words those that may stand before or between verbs."""
    manner: str
    """Ending of words that say how (fluently): they are particulars, never what a thing is."""
    not_manner: frozenset[str]
    articles: frozenset[str]
    aliases: Mapping[str, str]
    """Short names, as they are written, and the long ones."""
    name_word: str
    """`the son's name` is the son."""
    separators: frozenset[str]
    """Prepositions and the like: between two of them stands one thing."""
    both_ways: frozenset[str]
    """Of the separators those around which order means nothing: tea *and* coffee."""
    name_makers: frozenset[str]
    """Before a name they make another name: York, New York."""
    times: frozenset[str]
    """Words that say when: of a denial they are no object."""
    reasons: frozenset[str]
    """They begin what says why or when, not what: resigned *after* ten years."""
    numbers: Mapping[str, str]
    multiples: Mapping[str, int]
    """Right after a number: 50 k."""
    same_words: Mapping[str, str]
    """Spellings, units and synonyms, each under one word."""
    suffixes: tuple[tuple[str, str], ...]
    """(ending, what stands in its place) in the order in which they are tried on a word."""
    agents: tuple[str, ...]
    """Endings of who does something: a teacher teaches."""
    kinds: Mapping[str, tuple[str, ...]]
    """What a thing is a kind of, as one writes both: wine → alcohol."""
    altering: frozenset[str]
    """Before a noun they make something else of it: a *deputy* head is no head."""

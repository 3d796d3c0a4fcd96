"""The parts of a locale pack. Words are in lower case; verbs in phrases are in their base form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Valued = Literal["single", "multi", "unsure"]
"""How many values a predicate has at one time: one (an employer), several (languages), or unknown (`prefers`)."""
Tense = Literal["base", "present", "past", "participle", "ongoing"]


@dataclass(frozen=True, slots=True)
class PredicateRule:
    """One predicate and the phrases that mean it.

    In a phrase `#` matches a number and `*` one or two words; both belong to the object. Of rules with equally long
    phrases the first one wins.
    """

    predicate: str
    valued: Valued
    phrases: tuple[str, ...]
    value: str | None = None
    """A word that the phrase adds to the object: `is engaged to` adds `engaged`."""
    denied: bool = False
    """Whether the phrase denies the predicate (dislikes), or says that it is over (left)."""
    happened: bool = False
    """Whether its past tense says what is true now: moved to, joined."""
    named: bool = False
    """Whether the object needs a proper name: one moves to Rome, or to another team."""
    among: frozenset[str] = frozenset()
    """The object needs one of these words."""
    absent: str | None = None
    """The object when the clause names none: who drinks, drinks alcohol."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A second claim: what follows one of these prepositions in the object of `predicate` is the object of `other`."""

    predicate: str
    prepositions: frozenset[str]
    other: str
    named: bool = False
    """Whether only proper names count: head *of* Acme, not of a department."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Phrases that change what a statement says. They are searched in the clause about the subject."""

    negations: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    """Negations for all times."""
    endings: tuple[str, ...] = ()
    """It was true and is over: no longer, used to."""
    hedges: tuple[str, ...] = ()
    """Plans and guesses, which claim nothing."""
    additive: tuple[str, ...] = ()
    another: tuple[str, ...] = ()
    """Additions that stand before a thing, which is then not the known one: *a second* cat."""
    contrasts: tuple[str, ...] = ()
    """The words after them are denied: `Bern, not Basel`."""
    until: frozenset[str] = frozenset()
    """After a past tense they say that it is over."""
    former: tuple[tuple[str, str], ...] = ()
    """(before the old value, before the new one): switched *from* tea *to* coffee."""
    others: frozenset[str] = frozenset()
    """Words after which a clause speaks of somebody or something else."""
    changes: frozenset[str] = frozenset()
    """Words by which a clause says that it was otherwise before: *now*, *again*, the *new* boss."""

    @property
    def words(self) -> frozenset[str]:
        """Marker words that may stand before a verb."""
        return frozenset(" ".join((*self.negations, *self.never, *self.endings)).split())


@dataclass(frozen=True, slots=True)
class WordOrder:
    """Where verbs stand in a language that does not always have them right behind the subject.

    With it, a clause is arranged before it is read: the verb first, its parts together, then a negation, then the rest
    (`memory/language/word_order.py`). So phrases are written verb first: `umziehen nach`.
    """

    particles: frozenset[str] = frozenset()
    """Words that belong to a verb before them: *hört* … *auf* is `aufhören`."""
    infinitive_mark: str = ""
    """The word before an infinitive: *zu* rauchen."""
    perfect: frozenset[str] = frozenset()
    """Base forms of the verbs that form a past tense with a participle: *hat* geraucht."""
    perfect_of_change: frozenset[str] = frozenset()
    """Those of them that do so for the verbs in `changing` only, and else tell a state: *ist* verheiratet."""
    changing: frozenset[str] = frozenset()
    """Base forms of verbs of movement and change."""
    passive: frozenset[str] = frozenset()
    """Base forms of the verbs that form a passive with a participle, and a future with an infinitive."""
    modals: frozenset[str] = frozenset()
    """Base forms of verbs whose main verb, an infinitive, stands last: *kann* gut *kochen*."""
    participles: Mapping[str, str] = field(default_factory=dict)
    """Participle → base form, also where `verbs` has the same form in another tense."""
    fillers: frozenset[str] = frozenset()
    """Words that are left out: definite articles, reflexive pronouns."""
    time_prepositions: frozenset[str] = frozenset()
    """Before a word of `times` or a number they say when: *seit* 2020."""
    after_negation: frozenset[str] = frozenset()
    """Words that belong to a negation before them, wherever they stand: *keinen* Kaffee *mehr*."""
    relative: frozenset[str] = frozenset()
    """Words that after a comma begin a clause about what stands before it: Emil, *der* singt."""
    present_announces: bool = False
    """Whether the present tense of a one-time event speaks of the future: `zieht nach Köln`."""


@dataclass(frozen=True, slots=True)
class Nouns:
    """How common nouns are told from names in a language that writes both with a capital letter."""

    known: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    """Endings that only common nouns have."""
    determiners: frozenset[str] = frozenset()
    """After them, and after an adjective behind them, stands a common noun: *einen* Hund."""
    articles: frozenset[str] = frozenset()
    """The same, but not after a preposition: in *der* Schweiz."""
    before_places: frozenset[str] = frozenset()
    """Directly after them, without an article, an infinitive or a plural is a place: in *Essen*, nach *Bergen*."""
    heads: frozenset[str] = frozenset()
    """Nouns that a compound is split before: Mandel|allergie."""
    links: tuple[str, ...] = ()
    """Letters between the parts of a compound: Hund|e|trainer."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """How questions begin, and what may stand beside a question without saying anything."""

    openers: frozenset[str] = frozenset()
    """Question words: who, where."""
    relatives: frozenset[str] = frozenset()
    """Question words that also continue a statement: *which is* why."""
    auxiliaries: frozenset[str] = frozenset()
    """Verbs that change places with the subject: *do* I, *is* she."""
    subjects: frozenset[str] = frozenset()
    """Pronouns and the like that follow such a verb in a question."""
    articles: frozenset[str] = frozenset()
    """Words that follow such a verb in a question with its mark, but also elsewhere: *have a* nice day."""
    speakers: frozenset[str] = frozenset()
    """Words that begin a clause in which the speaker tells of himself: I, my."""
    requests: tuple[tuple[str, ...], ...] = ()
    """What asks in the form of a statement, before a question word: *tell me* where."""
    indirect: frozenset[str] = frozenset()
    """What may follow such a request beside a question word: tell me *if*."""
    fillers: frozenset[str] = frozenset()
    """Greetings, thanks and the like."""


@dataclass(frozen=True, slots=True, eq=False)
class Locale:
    """A locale pack."""

    name: str
    rules: tuple[PredicateRule, ...] = ()
    lasting: frozenset[str] = frozenset()
    """Predicates that stay true after an end: who drops a Dutch course still speaks Dutch."""
    ends: tuple[str, ...] = ()
    """Phrases that end whatever their object was: quit, gave up, broke up with."""
    ends_work: tuple[str, ...] = ()
    """Phrases that end any occupation and employment."""
    ended: tuple[str, ...] = ()
    """Phrases about a subject that no longer exists: the dog died."""
    gone: tuple[str, ...] = ()
    """Those of `ended` after which nothing else is true of the subject: died, but not: moved out."""
    turns: frozenset[str] = frozenset()
    """Base forms of verbs whose past tense tells of a change: *passed* the test, *transferred* to another team."""
    over: frozenset[str] = frozenset()
    """Values that say that something is over: divorced. They say nothing of the same with somebody else."""
    fulfils: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Predicate → predicates whose beginning may have ended it: who started a job looks for none."""
    like: tuple[frozenset[str], ...] = ()
    """Predicates that mean the same of the same thing: *drives* a Volvo, *owns* a Volvo."""
    roles: frozenset[str] = frozenset()
    """The words after them say what a thing serves as, and one thing does at a time: Firefox *as* browser."""
    begins: tuple[str, ...] = ()
    """Before a verb they say that it begins: *started* dating."""
    carriers: tuple[str, ...] = ()
    """Before a verb they say that it was done: *had to* give up, *ended up* moving."""
    switches: tuple[str, ...] = ()
    """The words after them replace an earlier thing of the same kind: switched to day shifts."""
    shells: frozenset[str] = frozenset()
    """Words that add nothing to what ended: the gym *membership*."""
    sets: tuple[tuple[str, str], ...] = ()
    """(verb, word before the value): changed the password *to* walrus."""
    becomes: tuple[str, ...] = ()
    """Verb and preposition between X and its new V: the deadline moved to Monday."""
    markers: Markers = Markers()
    contractions: Mapping[str, str] = field(default_factory=dict)
    copulas: frozenset[str] = frozenset()
    """Base forms of the verbs that join X and V in "X is V"."""
    states: frozenset[str] = frozenset()
    """Copulas whose past tense says that it is over: was, but not became."""
    auxiliaries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Base form → the tenses of a main verb before which it has no meaning of its own: has worked, did not work."""
    perfect: frozenset[str] = frozenset()
    """Auxiliaries that tell what was done once, unless one says for how long: *has* lived in Peru."""
    durations: frozenset[str] = frozenset()
    """Words that say for how long: has lived there *since* May."""
    joins: frozenset[str] = frozenset()
    """Before a verb they begin a clause."""
    verbs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Form → (base form, one of base, present, past, participle, ongoing)."""
    subjects: frozenset[str] = frozenset()
    """Words by which a statement names its subject."""
    people: frozenset[str] = frozenset()
    """Persons: what is said about them is not said about the subject."""
    occupation: str = ""
    """The predicate of "is a nurse"."""
    owning: str = ""
    """The predicate of "has a dog"."""
    implied: tuple[Implied, ...] = ()
    """Works at X *as* Y. When one of these predicates ends without an object, all of them end."""
    not_employers: frozenset[str] = frozenset()
    """Proper names that are not employers: head of Sales."""
    occupations: frozenset[str] = frozenset()
    occupation_endings: tuple[str, ...] = ()
    not_occupations: frozenset[str] = frozenset()
    stop_words: frozenset[str] = frozenset()
    """Words that do not decide whether two statements are the same."""
    adverbs: frozenset[str] = frozenset()
    """Stop words that may stand before or between verbs."""
    manner: str = ""
    """Ending of words that say how (fluently): they add detail and never name a thing."""
    not_manner: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Short names as they are written → long names."""
    name_word: str = ""
    """`the son's name` means the son."""
    separators: frozenset[str] = frozenset()
    """Prepositions and the like: the words between two of them name one thing."""
    both_ways: frozenset[str] = frozenset()
    """Separators around which order does not matter: tea *and* coffee."""
    name_makers: frozenset[str] = frozenset()
    """Before a name they make another name: York, New York."""
    times: frozenset[str] = frozenset()
    """Words that say when: they are not the object of a denial."""
    reasons: frozenset[str] = frozenset()
    """They begin the part that says why or when: resigned *after* ten years."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    """Directly after a number: 50 k."""
    same_words: Mapping[str, str] = field(default_factory=dict)
    """Spellings, units and synonyms → one common word."""
    suffixes: tuple[tuple[str, str], ...] = ()
    """(ending, replacement) in the order in which they are tried on a word."""
    agents: tuple[str, ...] = ()
    """Endings of words for a person who does something: a teacher teaches."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Thing → the kinds that it belongs to, as one writes them: wine → alcohol."""
    altering: frozenset[str] = frozenset()
    """Before a noun they make it another thing: a *deputy* head is not a head."""
    script: str = "LATIN"
    """The script of the language, as the names of Unicode's letters begin: LATIN, CYRILLIC, GREEK."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letters with two spellings → the one that all words of the pack have: ü → ue."""
    decimal_mark: str = "."
    """The mark before the decimals of a number; the other of comma and full stop groups thousands."""
    stem_letters: Mapping[str, str] = field(default_factory=dict)
    """Letters of a stem that change between its forms → one of them: Haeuser, Haus."""
    word_order: WordOrder | None = None
    nouns: Nouns | None = None
    """Set where common nouns are written with a capital letter."""
    bare_occupations: bool = False
    """Whether an occupation has no article: `ist Imkerin`."""
    ending_verbs: frozenset[str] = frozenset()
    """Base forms of verbs that end something in the present tense, too: `hört auf`."""
    topics: tuple[frozenset[str], ...] = ()
    """Groups of words with which people ask for the same thing: job, work, employer."""
    questions: QuestionWords = QuestionWords()

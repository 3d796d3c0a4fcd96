"""The parts of a locale pack. Words are in lower case; verbs in phrases are in their base form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Valued = Literal["single", "multi", "unsure"]
"""Number of values that a predicate has at one time: one (an employer), several (languages), or unknown (`prefers`)."""
Tense = Literal["base", "present", "past", "participle", "ongoing"]


@dataclass(frozen=True, slots=True)
class PredicateRule:
    """A predicate and the phrases that mean it.

    In a phrase, `#` matches a number and `*` one or two words; both belong to the object. When the phrases of several
    rules are equally long, the first rule wins.
    """

    predicate: str
    valued: Valued
    phrases: tuple[str, ...]
    value: str | None = None
    """A word that the phrase adds to the object: `is engaged to` adds `engaged`."""
    denied: bool = False
    """True when the phrase denies the predicate (dislikes) or says that it is over (left)."""
    happened: bool = False
    """True when the past tense says what is true now: moved to, joined."""
    named: bool = False
    """True when the object must contain a proper name: a person moves to Rome, but also to another team."""
    among: frozenset[str] = frozenset()
    """The object must contain at least one of these words."""
    absent: str | None = None
    """The object when the clause names none: `drinks` means alcohol."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A second claim: the words after one of the prepositions in the object of `predicate` are the object of
    `other`."""

    predicate: str
    prepositions: frozenset[str]
    other: str
    named: bool = False
    """True when only proper names count: head *of* Acme, not of a department."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Phrases that change the meaning of a statement. They are searched in the clause about the subject."""

    negations: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    """Negations that include the past: never."""
    endings: tuple[str, ...] = ()
    """Phrases for a state that was true and is over: no longer, used to."""
    hedges: tuple[str, ...] = ()
    """Phrases for plans and guesses, which assert nothing."""
    additive: tuple[str, ...] = ()
    another: tuple[str, ...] = ()
    """Phrases before an additional thing, which is not the known thing: *a second* cat."""
    contrasts: tuple[str, ...] = ()
    """Phrases before denied words: `Bern, not Basel`."""
    until: frozenset[str] = frozenset()
    """Words that say, after a past tense, that the state is over."""
    former: tuple[tuple[str, str], ...] = ()
    """Pairs of (word before the old value, word before the new value): switched *from* tea *to* coffee."""
    others: frozenset[str] = frozenset()
    """Words after which a clause is about another person or thing."""
    changes: frozenset[str] = frozenset()
    """Words that imply a different earlier state: *now*, *again*, the *new* boss."""

    @property
    def words(self) -> frozenset[str]:
        """Marker words that may occur before a verb."""
        return frozenset(" ".join((*self.negations, *self.never, *self.endings)).split())


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The verb positions of a language in which verbs do not always follow the subject.

    With a word order, a clause is arranged before it is parsed: the verb first, with all its parts, then a negation,
    then the other words (`memory/language/word_order.py`). So phrases begin with the verb: `umziehen nach`.
    """

    particles: frozenset[str] = frozenset()
    """Words that belong to an earlier verb: *hört* … *auf* is `aufhören`."""
    infinitive_mark: str = ""
    """The word before an infinitive: *zu* rauchen."""
    perfect: frozenset[str] = frozenset()
    """Base forms of verbs that form a past tense with a participle: *hat* geraucht."""
    perfect_of_change: frozenset[str] = frozenset()
    """The verbs in `perfect` that form it only with verbs in `changing`, and otherwise name a state: *ist*
    verheiratet."""
    changing: frozenset[str] = frozenset()
    """Base forms of verbs of movement and change."""
    passive: frozenset[str] = frozenset()
    """Base forms of verbs that form a passive with a participle, and a future with an infinitive."""
    modals: frozenset[str] = frozenset()
    """Base forms of verbs with an infinitive as main verb in last place: *kann* gut *kochen*."""
    participles: Mapping[str, str] = field(default_factory=dict)
    """Participle → base form, even where `verbs` has the same form in another tense."""
    fillers: frozenset[str] = frozenset()
    """Words that are dropped: definite articles, reflexive pronouns."""
    time_prepositions: frozenset[str] = frozenset()
    """Prepositions that form a time expression with a number or a word of `times`: *seit* 2020."""
    after_negation: frozenset[str] = frozenset()
    """Words that belong to an earlier negation, also at a distance: *keinen* Kaffee *mehr*."""
    relative: frozenset[str] = frozenset()
    """Words that begin, after a comma, a clause about the words before the comma: Emil, *der* singt."""
    present_announces: bool = False
    """True when the present tense of a one-time event is about the future: `zieht nach Köln`."""


@dataclass(frozen=True, slots=True)
class Nouns:
    """Rules to distinguish common nouns from names in a language that capitalises both."""

    known: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    """Endings of common nouns that no name has."""
    determiners: frozenset[str] = frozenset()
    """Words before a common noun, with or without an adjective in between: *einen* Hund."""
    articles: frozenset[str] = frozenset()
    """Like `determiners`, but not after a preposition: in *der* Schweiz."""
    before_places: frozenset[str] = frozenset()
    """Prepositions directly before a place that looks like an infinitive or a plural: in *Essen*, nach *Bergen*."""
    heads: frozenset[str] = frozenset()
    """Nouns before which a compound is split: Mandel|allergie."""
    links: tuple[str, ...] = ()
    """Letters between the parts of a compound: Hund|e|trainer."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Words that begin a question, and words next to a question that state nothing."""

    openers: frozenset[str] = frozenset()
    """Question words: who, where."""
    relatives: frozenset[str] = frozenset()
    """Question words that also continue a statement: *which is* why."""
    auxiliaries: frozenset[str] = frozenset()
    """Verbs that change places with the subject: *do* I, *is* she."""
    subjects: frozenset[str] = frozenset()
    """Pronouns and similar words that follow such a verb in a question."""
    articles: frozenset[str] = frozenset()
    """Words that follow such a verb in a question with a question mark, but also elsewhere: *have a* nice day."""
    speakers: frozenset[str] = frozenset()
    """First words of a clause in which the speaker speaks about himself: I, my."""
    requests: tuple[tuple[str, ...], ...] = ()
    """Requests in the form of a statement, before a question word: `tell me` where."""
    indirect: frozenset[str] = frozenset()
    """Words other than question words that may follow such a request: `tell me if`."""
    fillers: frozenset[str] = frozenset()
    """Greetings, thanks and similar words."""


@dataclass(frozen=True, slots=True, eq=False)
class Locale:
    """A locale pack: the words and rules of one language."""

    name: str
    rules: tuple[PredicateRule, ...] = ()
    lasting: frozenset[str] = frozenset()
    """Predicates that stay true after an end: a person who drops a Dutch course still speaks Dutch."""
    ends: tuple[str, ...] = ()
    """Phrases that end a state with their object, in any predicate: quit, gave up, broke up with."""
    ends_work: tuple[str, ...] = ()
    """Phrases that end any occupation and employment."""
    ended: tuple[str, ...] = ()
    """Phrases about a subject that no longer exists: the dog died."""
    gone: tuple[str, ...] = ()
    """Phrases of `ended` after which nothing else is true of the subject: died, but not: moved out."""
    turns: frozenset[str] = frozenset()
    """Base forms of verbs whose past tense reports a change: *passed* the test, *transferred* to another team."""
    over: frozenset[str] = frozenset()
    """Values that end a state, such as divorced. A state with another person stays: a person may be divorced from one
    person and married to another."""
    fulfils: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Predicate → predicates that may end it when they begin: a person who starts a job no longer looks for one."""
    like: tuple[frozenset[str], ...] = ()
    """Sets of predicates that mean the same for the same thing: *drives* a Volvo, *owns* a Volvo."""
    roles: frozenset[str] = frozenset()
    """Words before the role of a thing. Only one thing at a time has a role: Firefox *as* browser."""
    begins: tuple[str, ...] = ()
    """Phrases before a verb whose action begins: *started* dating."""
    carriers: tuple[str, ...] = ()
    """Phrases before a verb whose action was done: *had to* give up, *ended up* moving."""
    switches: tuple[str, ...] = ()
    """Phrases before a thing that replaces an earlier thing of the same kind: switched to day shifts."""
    shells: frozenset[str] = frozenset()
    """Words that add nothing to the ended thing: the gym *membership*."""
    sets: tuple[tuple[str, str], ...] = ()
    """Pairs of (verb, word before the value): changed the password *to* walrus."""
    becomes: tuple[str, ...] = ()
    """Verb and preposition between an attribute X and its new value V: the deadline *moved to* Monday."""
    markers: Markers = Markers()
    contractions: Mapping[str, str] = field(default_factory=dict)
    copulas: frozenset[str] = frozenset()
    """Base forms of verbs between an attribute X and its value V: X *is* V."""
    states: frozenset[str] = frozenset()
    """Copulas whose past tense says that the state is over: was, but not became."""
    auxiliaries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Base form → tenses of a main verb before which the auxiliary has no meaning of its own: has worked, did not
    work."""
    perfect: frozenset[str] = frozenset()
    """Auxiliaries that report a completed action, unless the clause has a duration: *has* lived in Peru."""
    durations: frozenset[str] = frozenset()
    """Words that begin a duration: has lived there *since* May."""
    joins: frozenset[str] = frozenset()
    """Words that begin a clause when a verb follows."""
    verbs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Form → (base form, tense): base, present, past, participle or ongoing."""
    subjects: frozenset[str] = frozenset()
    """Words for the subject of a statement."""
    people: frozenset[str] = frozenset()
    """Words for persons and pets. A statement about them is not about the subject."""
    occupation: str = ""
    """The predicate of "is a nurse"."""
    owning: str = ""
    """The predicate of "has a dog"."""
    implied: tuple[Implied, ...] = ()
    """Second claims in an object: works at X *as* Y. A phrase of `ends_work` ends the predicates of all of them."""
    not_employers: frozenset[str] = frozenset()
    """Words that may be capitalised and are not employers: head of Sales."""
    occupations: frozenset[str] = frozenset()
    occupation_endings: tuple[str, ...] = ()
    not_occupations: frozenset[str] = frozenset()
    stop_words: frozenset[str] = frozenset()
    """Words that make no difference between two statements."""
    adverbs: frozenset[str] = frozenset()
    """Stop words that may occur before or between verbs."""
    manner: str = ""
    """Ending of adverbs of manner (fluently). They add detail and never name a thing."""
    not_manner: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Short names, with capital letters → long names."""
    name_word: str = ""
    """The word for a name: `the son's name` means the son."""
    separators: frozenset[str] = frozenset()
    """Prepositions and similar words. The words between two of them name one thing."""
    both_ways: frozenset[str] = frozenset()
    """Separators around which the order does not matter: tea *and* coffee."""
    name_makers: frozenset[str] = frozenset()
    """Words that change the name after them into another name: York, New York."""
    times: frozenset[str] = frozenset()
    """Words of time. They are not the object of a denial."""
    reasons: frozenset[str] = frozenset()
    """Words that begin a reason or a time: resigned *after* ten years."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    """Factors directly after a number: 50 k."""
    same_words: Mapping[str, str] = field(default_factory=dict)
    """Spellings, units and synonyms → one common word."""
    suffixes: tuple[tuple[str, str], ...] = ()
    """Pairs of (ending, replacement), in the order in which they are tried on a word."""
    agents: tuple[str, ...] = ()
    """Endings of words for the person who does an action: a teacher teaches."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Thing → its kinds, in normal spelling: wine → alcohol."""
    altering: frozenset[str] = frozenset()
    """Words that change the noun after them into another thing: a *deputy* head is not a head."""
    script: str = "LATIN"
    """The script of the language, the first word of its letters' Unicode names: LATIN, CYRILLIC, GREEK."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letters with two spellings → the spelling in all words of the pack: ü → ue."""
    decimal_mark: str = "."
    """The decimal mark: comma or full stop. The other character separates thousands."""
    stem_letters: Mapping[str, str] = field(default_factory=dict)
    """Letters that change between the forms of a stem → one common letter: Haeuser, Haus."""
    word_order: WordOrder | None = None
    nouns: Nouns | None = None
    """Set when the language capitalises common nouns."""
    bare_occupations: bool = False
    """True when an occupation needs no article: `ist Imkerin`."""
    ending_verbs: frozenset[str] = frozenset()
    """Base forms of verbs that end something even in the present tense: `hört auf`."""
    topics: tuple[frozenset[str], ...] = ()
    """Groups of words that ask for the same thing: job, work, employer."""
    questions: QuestionWords = QuestionWords()

"""The fields of a locale pack. All words are in lower case. Verbs in phrases are in their base form.

In the examples, asterisks mark the word that the field contains. `X → Y` describes a mapping with the key X and the
value Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Valued = Literal["single", "multi", "unsure"]
"""Number of values that a predicate has at one time: one (an employer), several (languages), or unknown (`prefers`)."""
Tense = Literal["base", "present", "past", "participle", "ongoing"]
TimeUnit = Literal["day", "week", "weekend", "month", "year"]
TimeRelation = Literal["since", "until", "before", "after"]


@dataclass(frozen=True, slots=True)
class PredicateRule:
    """A predicate and the phrases that mean it.

    In a phrase, `#` matches a number, and `*` matches one or two words. The matched words belong to the object. The
    longest matching phrase of all rules wins; among equally long phrases, the phrase of the first rule wins.
    """

    predicate: str
    valued: Valued
    phrases: tuple[str, ...]
    value: str | None = None
    """A word that the phrase adds to the object: `is engaged to` adds `engaged`."""
    denied: bool = False
    """True when the phrase denies the predicate (`dislikes`) or says that it is no longer true (`left`)."""
    happened: bool = False
    """True when the verb is a one-time event whose result lasts. In the past tense (`moved to Rome`) the predicate is
    then true now."""
    named: bool = False
    """True when the rule applies only if the object contains a proper name: `moved to Rome` gives a residence, `moved
    to another team` does not."""
    among: frozenset[str] = frozenset()
    """The rule applies only if the object contains at least one of these words. Empty: no condition."""
    absent: str | None = None
    """The object of a clause that names no object: `drinks` means alcohol."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A second claim in the object of a claim: `works at Google as a nurse` also says `works as a nurse`.

    When the object of `predicate` contains one of the prepositions, the words after it are the object of a claim with
    the predicate `other`.
    """

    predicate: str
    prepositions: frozenset[str]
    other: str
    named: bool = False
    """True when the words after the preposition must be a proper name: `head of Acme`, but not `head of sales`."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Phrases that change the meaning of a clause but not its topic."""

    negations: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    """Negations that also deny the past: `never`."""
    endings: tuple[str, ...] = ()
    """Phrases for a state that was true before and is not true now: `no longer`, `used to`."""
    hedges: tuple[str, ...] = ()
    """Phrases for plans and guesses: `maybe`, `plans to`."""
    additive: tuple[str, ...] = ()
    """Phrases for an addition: `also`."""
    another: tuple[str, ...] = ()
    """Phrases before one more thing of a kind: *a second* cat."""
    contrasts: tuple[str, ...] = ()
    """Phrases before denied words: Bern, *not* Basel."""
    until: frozenset[str] = frozenset()
    """Words before the end of a past state: was on leave *until* May."""
    former: tuple[tuple[str, str], ...] = ()
    """Pairs of the phrase before the former value and the word before the new value: *switched from* tea *to*
    coffee."""
    others: frozenset[str] = frozenset()
    """Words after which a clause is about another person or thing: lives with Ana, *who* sings."""
    instead: tuple[str, ...] = ()
    """Phrases that say that a statement takes the place of an earlier one: prefers tea *now*, *changed my mind*."""
    changes: frozenset[str] = frozenset()
    """Words that imply a different earlier state: *now*, *again*, the *new* boss."""

    @property
    def words(self) -> frozenset[str]:
        """The words of all negations and endings. They may occur before a verb."""
        return frozenset(" ".join((*self.negations, *self.never, *self.endings)).split())


@dataclass(frozen=True, slots=True)
class WordOrder:
    """The words and verbs that decide the word order, in a language in which the verb does not always follow the
    subject.

    A clause of this language is arranged before it is parsed: first the verb with all its parts, then a negation,
    then the other words (`memory/language/word_order.py`). The phrases of the pack therefore begin with the verb:
    `umziehen nach`.
    """

    particles: frozenset[str] = frozenset()
    """Separable first parts of verbs: `hört … *auf*` is a form of `aufhören`."""
    infinitive_mark: str = ""
    """The word before an infinitive: *zu* rauchen."""
    perfect: frozenset[str] = frozenset()
    """Base forms of auxiliaries that form the perfect tense with a participle: *hat* geraucht."""
    perfect_of_change: frozenset[str] = frozenset()
    """The auxiliaries in `perfect` that form the perfect tense only with the verbs in `changing`: *ist* gezogen. With
    other participles they name a state: *ist* verheiratet."""
    changing: frozenset[str] = frozenset()
    """Base forms of verbs of movement and change."""
    passive: frozenset[str] = frozenset()
    """Base forms of auxiliaries that form the passive with a participle, and the future with an infinitive."""
    modals: frozenset[str] = frozenset()
    """Base forms of verbs that are used with an infinitive at the end of the clause: *kann* gut kochen."""
    participles: Mapping[str, str] = field(default_factory=dict)
    """Participle → base form. It also contains participles that `verbs` lists in another tense, because their form is
    the same."""
    fillers: frozenset[str] = frozenset()
    """Words that are dropped: definite articles, reflexive pronouns."""
    time_prepositions: frozenset[str] = frozenset()
    """Prepositions that form a time expression with a number or a word of `times`: *seit* 2020."""
    after_negation: frozenset[str] = frozenset()
    """Words that belong to an earlier negation, even when other words are in between: keinen Kaffee *mehr*."""
    relative: frozenset[str] = frozenset()
    """First words of a relative clause after a comma: Emil, *der* singt."""
    present_announces: bool = False
    """True when the present tense of a one-time event may be about the future: `zieht nach Köln`."""


@dataclass(frozen=True, slots=True)
class Nouns:
    """Rules to distinguish common nouns from names in a language that capitalises both."""

    known: frozenset[str] = frozenset()
    """Common nouns."""
    endings: tuple[str, ...] = ()
    """Endings that only common nouns have."""
    determiners: frozenset[str] = frozenset()
    """Words that show that the next noun is a common noun. Adjectives may be in between: *einen* Hund."""
    articles: frozenset[str] = frozenset()
    """Words with the effect of `determiners`, except after a preposition: `in der Schweiz` contains a name."""
    before_places: frozenset[str] = frozenset()
    """Prepositions directly before the name of a place. Without them some names would count as a verb or a plural: *in*
    Essen, *nach* Bergen."""
    heads: frozenset[str] = frozenset()
    """Last parts of compound nouns that are split: `Mandelallergie` becomes `Mandel` and *Allergie*."""
    links: tuple[str, ...] = ()
    """Linking letters between the parts of a compound noun: Hund*e*trainer."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Words that show that a sentence is a question."""

    openers: frozenset[str] = frozenset()
    """Question words: `who`, `where`."""
    relatives: frozenset[str] = frozenset()
    """Question words that may also continue a statement: *which* is why."""
    auxiliaries: frozenset[str] = frozenset()
    """Verbs that come before the subject in a question: *do* I, *is* she."""
    subjects: frozenset[str] = frozenset()
    """Subjects that follow a verb of `auxiliaries` in a question: do *I*, is *she*."""
    articles: frozenset[str] = frozenset()
    """Words that follow a verb of `auxiliaries` in a question, but also in other sentences: have *a* nice day. They
    count only in a sentence with a question mark."""
    speakers: frozenset[str] = frozenset()
    """First words of a clause in which the speaker states something about himself or herself: `I`, `my`."""
    requests: tuple[tuple[str, ...], ...] = ()
    """Requests before an indirect question: `tell me` where."""
    indirect: frozenset[str] = frozenset()
    """Words other than question words that may follow a request: `if` in `tell me if`."""
    fillers: frozenset[str] = frozenset()
    """Greetings, thanks and similar words, which state nothing."""


@dataclass(frozen=True, slots=True)
class EventWord:
    """A word for the begin or the end of a state, which facts of these slots have: `moved` begins a residence."""

    slots: frozenset[str]
    """Empty: another word names the state: the `end` of my studies."""
    change: Literal["begin", "end"] | None = "begin"
    """None: the word names the state, but no change of it: my `job`."""


@dataclass(frozen=True, slots=True)
class EventWords:
    """Words by which a question names a time by an event of the speaker's life: `before I moved`.

    All are in lower case and as people write them, with accents.
    """

    relations: Mapping[str, TimeRelation] = field(default_factory=dict)
    """Words before the event: `before`."""
    between: frozenset[str] = frozenset()
    """Words that may be between a relation and the words of the next three fields: German bis *zu* meinem Umzug."""
    of_clauses: frozenset[str] = frozenset()
    """Words with which a clause about an event of the speaker begins: before `I` moved."""
    of_nouns: frozenset[str] = frozenset()
    """Words before a noun for an event of the speaker: before `my` move. A word that is also in `of_clauses` may begin
    either: before `my` son was born."""
    articles: frozenset[str] = frozenset()
    """Words before a noun in `words` that is a change: before `the` move."""
    bare: frozenset[str] = frozenset()
    """Words for an event that need no word before them: before `moving` to Porto."""
    about: frozenset[str] = frozenset()
    """Words between such a noun and another noun that says which event it was: my move `to` Porto."""
    words: Mapping[str, EventWord] = field(default_factory=dict)
    """Form of a verb or noun → its states: `moved`. Other words are compared with the words of facts. Two words for one
    change of one state mean the same: `finished`, `graduated`."""
    light: frozenset[str] = frozenset()
    """Words that alone name no event: `got` the dog, `was` in hospital, my `first` job."""
    ends_at: frozenset[str] = frozenset()
    """Words with which the rest of the question begins, without a comma: since I moved `what` did I cook."""


@dataclass(frozen=True, slots=True)
class TimeWords:
    """Words by which a question names a time that has begun.

    All are in lower case and as people write them, with accents. The words of a phrase are separated by spaces.
    """

    days: Mapping[str, int] = field(default_factory=dict)
    """Phrase → days from today: `yesterday` → -1."""
    recent: frozenset[str] = frozenset()
    """Phrases for the last two weeks: `recently`."""
    units: Mapping[str, TimeUnit] = field(default_factory=dict)
    this: frozenset[str] = frozenset()
    """Words before a unit, month or weekday for the present one: `this`."""
    last: frozenset[str] = frozenset()
    """Words before a unit, month or weekday for the one before: `last`. Before a number they begin a time until now:
    `last` three weeks."""
    ago_before: frozenset[str] = frozenset()
    """Words before a number and a unit: German `vor` drei Tagen."""
    ago_after: frozenset[str] = frozenset()
    """Words after a number and a unit: three days `ago`."""
    one: frozenset[str] = frozenset()
    """Words for the number one before a unit: `a` week ago."""
    months: Mapping[str, int] = field(default_factory=dict)
    weekdays: Mapping[str, int] = field(default_factory=dict)
    """Name → number, Monday is 0."""
    at: frozenset[str] = frozenset()
    """Words before a month, a weekday or a year: `in` March. Without such a word, a month needs a year."""
    skipped: frozenset[str] = frozenset()
    """Words between these words that change nothing: in `the` `year` 2024, until the `end` `of` 2024."""
    relations: Mapping[str, TimeRelation] = field(default_factory=dict)
    """Words before a time: `since` 2024."""
    before_year: frozenset[str] = frozenset()
    """Words directly before a year that has no other word of time before it: German was *war* 2024."""


@dataclass(frozen=True, slots=True, eq=False)
class Locale:
    """A locale pack: the words and rules of one language."""

    name: str
    rules: tuple[PredicateRule, ...] = ()
    lasting: frozenset[str] = frozenset()
    """Predicates that stay true after an end: a person who drops a Dutch course still speaks Dutch."""
    ends: tuple[str, ...] = ()
    """Phrases that deny every known claim about their object, whatever the predicate is: `quit`, `gave up`, `broke up
    with`."""
    ends_work: tuple[str, ...] = ()
    """Phrases that end every occupation and employment: `retired`."""
    ended: tuple[str, ...] = ()
    """Phrases that say that the subject of a clause is gone or over: the dog *died*."""
    gone: tuple[str, ...] = ()
    """The phrases of `ended` after which no known claim about the subject is true: `died`, but not `moved out`."""
    turns: frozenset[str] = frozenset()
    """Base forms of verbs whose past tense reports a change: *passed* the test, *transferred* to another team."""
    over: frozenset[str] = frozenset()
    """Values that end a state, for example `divorced`. A state with another person does not end: a person may be
    divorced from one person and married to another."""
    fulfils: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Predicate → predicates that may end it. `seeks_work` → `works_at`: a person who starts a job no longer looks for
    a job."""
    like: tuple[frozenset[str], ...] = ()
    """Sets of predicates with a similar meaning: *drives* a Volvo, *has* a Volvo. Claims with two of them are one
    statement when the objects are equal."""
    roles: frozenset[str] = frozenset()
    """Words before the role of a thing: Firefox *as* browser. Only one thing at a time has a role."""
    begins: tuple[str, ...] = ()
    """Phrases before a verb whose action begins: *started* dating."""
    carriers: tuple[str, ...] = ()
    """Phrases before a verb whose action was done: *had to* give up, *ended up* moving."""
    switches: tuple[str, ...] = ()
    """Phrases before a thing that replaces an earlier thing of the same kind: *switched to* day shifts."""
    shells: frozenset[str] = frozenset()
    """Words that may be left out when a thing ends: `cancelled the gym *membership*` also ends `goes to the gym`."""
    sets: tuple[tuple[str, str], ...] = ()
    """Pairs of a verb and the word before the new value: *changed* the password *to* walrus."""
    becomes: tuple[str, ...] = ()
    """Verb and preposition between an attribute and its new value: the deadline *moved to* Monday."""
    markers: Markers = Markers()
    contractions: Mapping[str, str] = field(default_factory=dict)
    """Short form → long form: `n't` → ` not`."""
    copulas: frozenset[str] = frozenset()
    """Base forms of verbs between an attribute and its value: the rent *is* 900."""
    states: frozenset[str] = frozenset()
    """The copulas whose past tense says that the state is over: `was`, but not `became`."""
    auxiliaries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Base form of an auxiliary → tenses of the main verb after it: *has* worked, *did* work. Before these tenses the
    auxiliary only sets the tense of the clause."""
    perfect: frozenset[str] = frozenset()
    """Auxiliaries that report a completed action, unless the clause has a duration: *has* lived in Peru."""
    durations: frozenset[str] = frozenset()
    """Words that begin a duration: has lived there *since* May."""
    joins: frozenset[str] = frozenset()
    """Words that begin a new clause when a verb follows: `and`, `but`."""
    verbs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Form of a verb → base form and tense. A tense is base, present, past, participle or ongoing."""
    subjects: frozenset[str] = frozenset()
    """Words that mean the subject of the statement: `user`, `she`."""
    people: frozenset[str] = frozenset()
    """Words for persons and pets. If one of these words is the subject of a clause, the clause is about that person or
    pet, not about the subject of the statement."""
    occupation: str = ""
    """The predicate of `is a nurse`."""
    owning: str = ""
    """The predicate of `has a dog`."""
    implied: tuple[Implied, ...] = ()
    """Second claims in an object: works at Google *as* a nurse. A phrase of `ends_work` ends the predicates of all
    entries."""
    not_employers: frozenset[str] = frozenset()
    """Words that may be capitalised but are not employers: head of *Sales*."""
    occupations: frozenset[str] = frozenset()
    occupation_endings: tuple[str, ...] = ()
    not_occupations: frozenset[str] = frozenset()
    """Words that have an ending of `occupation_endings` but are not occupations."""
    stop_words: frozenset[str] = frozenset()
    """Words that make no difference between two statements."""
    adverbs: frozenset[str] = frozenset()
    """Stop words that may occur before or between verbs."""
    manner: str = ""
    """Ending of adverbs of manner: `ly` in `fluently`. Such adverbs add detail and never name a thing."""
    not_manner: frozenset[str] = frozenset()
    """Words that have the ending `manner` but are not adverbs."""
    articles: frozenset[str] = frozenset()
    """Indefinite articles."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Short name → long name, both with their capital letters: `UK` → `United Kingdom`."""
    name_word: str = ""
    """The word for `name`. In `the son's name is Tom` it is left out: the attribute is `son`."""
    separators: frozenset[str] = frozenset()
    """Prepositions and similar words. The words between two separators name one thing."""
    both_ways: frozenset[str] = frozenset()
    """The separators around which the order has no meaning: tea *and* coffee."""
    name_makers: frozenset[str] = frozenset()
    """Words that are part of the name after them: *New* York is not York."""
    times: frozenset[str] = frozenset()
    """Words of time. They are ignored when a denial is compared with a claim."""
    recurring: frozenset[str] = frozenset()
    """Words of times that come again: *weekends*. A denial with one of them is about these times alone."""
    dayparts: frozenset[str] = frozenset()
    """Words of times that come again, or of one time: at *night*, last *night*."""
    weak_nouns: frozenset[str] = frozenset()
    """Stop words that name a thing when no other word does: likes their *job*."""
    reasons: frozenset[str] = frozenset()
    """Words that begin a reason or a time: resigned *after* ten years."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Word → number in digits."""
    multiples: Mapping[str, int] = field(default_factory=dict)
    """Word directly after a number → factor: 50 *k* is 50000."""
    same_words: Mapping[str, str] = field(default_factory=dict)
    """Spelling, unit or synonym → one common word."""
    suffixes: tuple[tuple[str, str], ...] = ()
    """Pairs of an ending and its replacement. A stem is made by trying them on a word in this order."""
    agents: tuple[str, ...] = ()
    """Endings of words for the person who does an action: `er` in `teacher`."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Thing → the kinds to which it belongs: `wine` → `alcohol`. The words are not stems."""
    altering: frozenset[str] = frozenset()
    """Words that change the meaning of the noun after them: a *deputy* head is not a head."""
    script: str = "LATIN"
    """The script of the language: the first word in the Unicode names of its letters, for example LATIN, CYRILLIC or
    GREEK."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letter with two spellings → the spelling in all words of the pack: `ü` → `ue`."""
    decimal_mark: str = "."
    """The decimal mark: comma or full stop. The other character separates thousands."""
    stem_letters: Mapping[str, str] = field(default_factory=dict)
    """Letters that change between the forms of a word → one common letter: `ae` → `a` makes the stems of `Haeuser` and
    `Haus` equal."""
    word_order: WordOrder | None = None
    """Set when the verb does not always follow the subject."""
    nouns: Nouns | None = None
    """Set when the language capitalises common nouns."""
    bare_occupations: bool = False
    """True when an occupation needs no article: `ist Imkerin`."""
    ending_verbs: frozenset[str] = frozenset()
    """Base forms of verbs that end something even in the present tense: `hört auf`."""
    topics: tuple[frozenset[str], ...] = ()
    """Groups of words that ask for the same thing: `job`, `work`, `employer`."""
    questions: QuestionWords = QuestionWords()
    time_words: TimeWords = TimeWords()
    """Words by which a question names a time: `yesterday`."""
    event_words: EventWords = EventWords()
    """Words by which a question names a time by an event: `before I moved`."""

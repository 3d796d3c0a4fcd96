"""The German locale pack.

Each area of life has a module with its predicates and phrases. Words that belong to no area are in `lexicon.py`,
`markers.py` and `verbs.py`. The modules may write `ü` or `ue`, and `ß` or `ss`, because `spelling.py` converts all
words to one spelling.
"""

from __future__ import annotations

from ..definition import define_locale_pack
from . import attributes, employment, habits, kinds, lexicon, markers, relationships, residence
from .event_words import EVENT_WORDS
from .spelling import LETTERS, spelled
from .time_words import TIME_WORDS
from .verbs import VERBS

GERMAN = define_locale_pack(
    name="de",
    rules=(*residence.RULES, *relationships.RULES, *employment.RULES, *attributes.RULES, *habits.RULES),
    lasting=attributes.LASTING,
    ends=tuple(dict.fromkeys((*employment.ENDS, *residence.ENDS, *relationships.ENDS, *habits.ENDS))),
    ends_work=employment.ENDS_WORK,
    ended=relationships.ENDED,
    begins=habits.BEGINS,
    carriers=habits.CARRIERS,
    switches=habits.SWITCHES,
    shells=habits.SHELLS,
    sets=lexicon.SETS,
    becomes=lexicon.BECOMES,
    markers=markers.MARKERS,
    contractions=markers.CONTRACTIONS,
    copulas=frozenset(("sein", "werden", "heissen", "betragen")),
    states=frozenset(("sein", "heissen", "betragen")),
    auxiliaries={each: frozenset(("base",)) for each in ("koennen", "muessen", "duerfen", "moegen")},
    joins=frozenset(("und", "aber", "sondern", "doch")),
    verbs=VERBS,
    subjects=frozenset(("nutzer", "nutzerin", "er", "sie", "ich", "wir", "es", "man", "person", "user")),
    people=relationships.PEOPLE,
    occupation=employment.OCCUPATION,
    owning="has",
    implied=employment.IMPLIED,
    not_employers=employment.DEPARTMENTS,
    occupations=employment.OCCUPATIONS,
    occupation_endings=employment.OCCUPATION_ENDINGS,
    not_occupations=employment.NOT_OCCUPATIONS,
    bare_occupations=True,
    stop_words=lexicon.STOP_WORDS,
    adverbs=lexicon.ADVERBS,
    articles=lexicon.INDEFINITE,
    aliases=lexicon.ALIASES,
    name_word="name",
    separators=lexicon.SEPARATORS,
    both_ways=frozenset(("und", "oder")),
    name_makers=lexicon.NAME_MAKERS,
    times=lexicon.TIMES,
    recurring=lexicon.RECURRING,
    dayparts=lexicon.DAYPARTS,
    weak_nouns=lexicon.WEAK_NOUNS,
    reasons=lexicon.REASONS,
    numbers={spelled(word): digits for word, digits in lexicon.NUMBERS.items()},
    multiples=lexicon.MULTIPLES,
    same_words={spelled(word): common for word, common in lexicon.SAME_WORDS.items()},
    suffixes=lexicon.SUFFIXES,
    stem_letters=lexicon.STEM_LETTERS,
    agents=lexicon.AGENTS,
    kinds=kinds.KINDS,
    altering=kinds.ALTERING,
    letters=LETTERS,
    decimal_mark=",",
    word_order=lexicon.WORD_ORDER,
    nouns=lexicon.NOUNS,
    ending_verbs=habits.ENDING_VERBS,
    time_words=TIME_WORDS,
    event_words=EVENT_WORDS,
)

"""The English pack: verbs and their predicates, markers, and words that make no difference.

One module per field of life; words of no field stand in `lexicon.py` and `markers.py`.
"""

from __future__ import annotations

from ..definition import define_locale_pack
from . import attributes, employment, habits, kinds, lexicon, markers, relationships, residence, topics
from .verbs import VERBS

ENGLISH = define_locale_pack(
    name="en",
    rules=(*residence.RULES, *relationships.RULES, *employment.RULES, *attributes.RULES, *habits.RULES),
    lasting=attributes.LASTING,
    ends=tuple(dict.fromkeys((*employment.ENDS, *residence.ENDS, *relationships.ENDS, *habits.ENDS))),
    ends_work=employment.ENDS_WORK,
    ended=relationships.ENDED,
    gone=relationships.GONE,
    turns=lexicon.TURNS,
    over=relationships.OVER,
    fulfils={"seeks_work": frozenset(("works_at", "works_as", "works_in"))},
    like=(frozenset(("drives", "has")), frozenset(("uses", "has")), frozenset(("plays", "does"))),
    roles=frozenset(("as",)),
    begins=habits.BEGINS,
    carriers=habits.CARRIERS,
    switches=habits.SWITCHES,
    shells=habits.SHELLS,
    sets=(("change", "to"), ("update", "to"), ("reset", "to"), ("rename", "to"), ("reschedule", "to"), ("set", "to")),
    becomes=lexicon.BECOMES,
    markers=markers.MARKERS,
    contractions=markers.CONTRACTIONS,
    copulas=frozenset(("be", "become")),
    states=frozenset(("be",)),
    auxiliaries={
        "have": frozenset(("past", "participle")),
        "do": frozenset(("base",)),
        "can": frozenset(("base",)),
        "go": frozenset(("ongoing",)),
    },
    joins=frozenset(("and", "but", "then")),
    verbs=VERBS,
    subjects=frozenset(("user", "he", "she", "they", "i", "we", "it", "person", "speaker")),
    people=relationships.PEOPLE,
    occupation=employment.OCCUPATION,
    owning="has",
    implied=employment.IMPLIED,
    not_employers=employment.DEPARTMENTS,
    occupations=employment.OCCUPATIONS,
    occupation_endings=employment.OCCUPATION_ENDINGS,
    not_occupations=employment.NOT_OCCUPATIONS,
    stop_words=lexicon.STOP_WORDS,
    adverbs=lexicon.ADVERBS,
    manner=lexicon.MANNER,
    not_manner=lexicon.NOT_MANNER,
    articles=lexicon.ARTICLES,
    aliases=lexicon.ALIASES,
    name_word=lexicon.NAME_WORD,
    separators=lexicon.SEPARATORS,
    both_ways=lexicon.BOTH_WAYS,
    name_makers=lexicon.NAME_MAKERS,
    times=lexicon.TIMES,
    reasons=lexicon.REASONS,
    numbers=lexicon.NUMBERS,
    multiples=lexicon.MULTIPLES,
    same_words=lexicon.SAME_WORDS,
    suffixes=lexicon.SUFFIXES,
    agents=lexicon.AGENTS,
    kinds=kinds.KINDS,
    altering=kinds.ALTERING,
    topics=topics.TOPICS,
    questions=topics.QUESTIONS,
)

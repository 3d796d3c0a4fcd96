"""The English pack, put together: verbs and the predicates that they name, markers, and the words that make no
difference. A module a field of life; what belongs to none stands in `words.py` and `markers.py`.
"""

from __future__ import annotations

from ..pack import Locale
from . import attributes, habits, homes, kinds, markers, ties, words, work
from .verbs import VERBS

ENGLISH = Locale(
    name="en",
    rules=(*homes.RULES, *ties.RULES, *work.RULES, *attributes.RULES, *habits.RULES),
    lasting=attributes.LASTING,
    ends=tuple(dict.fromkeys((*work.ENDS, *homes.ENDS, *ties.ENDS, *habits.ENDS))),
    ends_work=work.ENDS_WORK,
    ended=ties.ENDED,
    begins=habits.BEGINS,
    carriers=habits.CARRIERS,
    switches=habits.SWITCHES,
    shells=habits.SHELLS,
    sets=(("change", "to"), ("update", "to"), ("reset", "to"), ("rename", "to"), ("reschedule", "to"), ("set", "to")),
    becomes=words.BECOMES,
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
    people=ties.PEOPLE,
    occupation=work.OCCUPATION,
    owning="has",
    implied=work.IMPLIED,
    not_employers=work.DEPARTMENTS,
    occupations=work.OCCUPATIONS,
    occupation_endings=work.OCCUPATION_ENDINGS,
    not_occupations=work.NOT_OCCUPATIONS,
    stop_words=words.STOP_WORDS,
    adverbs=words.ADVERBS,
    manner=words.MANNER,
    not_manner=words.NOT_MANNER,
    articles=words.ARTICLES,
    aliases=words.ALIASES,
    name_word=words.NAME_WORD,
    separators=words.SEPARATORS,
    both_ways=words.BOTH_WAYS,
    name_makers=words.NAME_MAKERS,
    times=words.TIMES,
    reasons=words.REASONS,
    numbers=words.NUMBERS,
    multiples=words.MULTIPLES,
    same_words=words.SAME_WORDS,
    suffixes=words.SUFFIXES,
    agents=words.AGENTS,
    kinds=kinds.KINDS,
    altering=kinds.ALTERING,
)

"""Conditions of tasks, compared with a cue; pure.

A condition is a text: "when the sink is mentioned". A cue meets it when the cue has at least half of its significant
words, in any form. Frequent words of the language are not significant.
"""

from __future__ import annotations

from functools import lru_cache

from ..language.identification import pack_of
from ..language.locales import Locale
from ..language.locales.undetermined import FREQUENT_WORDS
from ..trust.evidence_words import FUNCTION_WORDS
from .cue_fit import stems


def meets_condition(cue: str, condition: str, *, locale: str) -> bool:
    """Return whether the cue meets the condition. `locale`: the language packs of the policy."""
    pack = pack_of(condition, locale)
    significant = stems(condition, pack) - _frequent(pack)
    met = significant & stems(cue, pack)
    return bool(significant) and 2 * len(met) >= len(significant)


@lru_cache(maxsize=16)
def _frequent(pack: Locale) -> frozenset[str]:
    language = pack.name.partition("-")[0]
    words = {*pack.stop_words, *FREQUENT_WORDS.get(language, ()), *FUNCTION_WORDS.get(language, "").split()}
    return frozenset[str]().union(*(stems(word, pack) for word in words))

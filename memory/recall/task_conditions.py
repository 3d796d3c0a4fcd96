"""Conditions of tasks, compared with a cue; pure.

A condition is a text, for example "when the sink is mentioned". A cue meets a condition when the cue contains at least
half of the condition's significant words, in any form. Frequent words of the language are not significant.
"""

from __future__ import annotations

from functools import lru_cache

from ..language.common_words import FREQUENT_WORDS, FUNCTION_WORDS
from ..language.identification import pack_of
from ..language.locales import Locale
from .cue_fit import stems


def meets_condition(cue: str, condition: str, *, locale: str) -> bool:
    """Return whether the cue meets the condition. `locale` is the policy's setting for language packs."""
    pack = pack_of(condition, locale)
    significant = stems(condition, pack) - _frequent(pack)
    met = significant & stems(cue, pack)
    return bool(significant) and 2 * len(met) >= len(significant)


@lru_cache(maxsize=16)
def _frequent(pack: Locale) -> frozenset[str]:
    language = pack.name.partition("-")[0]
    words = {*pack.stop_words, *FREQUENT_WORDS.get(language, ()), *FUNCTION_WORDS.get(language, "").split()}
    return frozenset[str]().union(*(stems(word, pack) for word in words))

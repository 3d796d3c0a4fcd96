"""Whether a cue meets the condition of a task; pure.

A condition is told in words: "when the sink is mentioned". A cue meets it when it has at least half of its telling
words, in any form. Words that are frequent in the language tell nothing.
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
    telling = stems(condition, pack) - _frequent(pack)
    met = telling & stems(cue, pack)
    return bool(telling) and 2 * len(met) >= len(telling)


@lru_cache(maxsize=16)
def _frequent(pack: Locale) -> frozenset[str]:
    language = pack.name.partition("-")[0]
    words = {*pack.stop_words, *FREQUENT_WORDS.get(language, ()), *FUNCTION_WORDS.get(language, "").split()}
    return frozenset[str]().union(*(stems(word, pack) for word in words))

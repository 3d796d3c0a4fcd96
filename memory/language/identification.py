"""Choice of the locale pack for a text; pure.

The result is the pack that knows most words of the text. It is the empty pack (`und`) in two cases, so that no word is
misread: more words belong to a language outside the configured packs, or no configured pack has the script of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Final

from .common_words import FREQUENT_WORDS
from .locales import Locale, locales
from .locales.undetermined import UNDETERMINED

IDENTIFIED_KEPT: Final = 2_048
"""Number of texts in the cache."""
_LATIN: Final = "LATIN"
_WORD: Final = re.compile(r"[^\W\d_]+'?")


@lru_cache(maxsize=IDENTIFIED_KEPT)
def pack_of(text: str, names: str) -> Locale:
    """Return the pack for a text. `names` are the configured packs: the setting `memory.conflict.locale`.

    When several packs know the same number of words, the number of frequent words of the pack's language decides, then
    the order of the packs. A text without any known word, for example a single rare verb, gets the first pack, unless
    no pack has the script of the text.
    """
    packs = locales(names)
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    if not _writes(plain, packs):
        return UNDETERMINED
    said = [_spelled(word) for word in _WORD.findall(plain)]
    score, best = max(((_known(said, pack), pack) for pack in packs), key=lambda each: each[0])
    own = {_language(pack) for pack in packs}
    foreign = max(sum(word in known for word in said) for tag, known in FREQUENT_WORDS.items() if tag not in own)
    return UNDETERMINED if (foreign, foreign) > score else best


def _spelled(word: str) -> str:
    lower = word.lower()
    return lower if lower.endswith("'") and len(lower) < 3 else lower.rstrip("'")


def _known(said: Sequence[str], pack: Locale) -> tuple[int, int]:
    """Return the number of words that the pack knows, and the number that are frequent in its language."""
    frequent = FREQUENT_WORDS.get(_language(pack), frozenset())
    known = sum(_respelled(word, pack) in _vocabulary(pack) for word in said)
    return known, sum(word in frequent for word in said)


def _language(pack: Locale) -> str:
    return pack.name.partition("-")[0]


def _respelled(word: str, pack: Locale) -> str:
    for letter, instead in pack.letters.items():
        word = word.replace(letter, instead)
    return word


def _writes(text: str, packs: Sequence[Locale]) -> bool:
    """Return whether at least half of the letters belong to the script of one of the packs."""
    letters = [each for each in text if each.isalpha() and not each.isascii()]
    scripts = {pack.script for pack in packs}
    latin = sum(each.isalpha() for each in text) - len(letters)
    own = sum(unicodedata.name(each, "").partition(" ")[0] in scripts for each in letters)
    own += latin if _LATIN in scripts else 0
    return 2 * own >= latin + len(letters)


@lru_cache(maxsize=16)
def _vocabulary(pack: Locale) -> frozenset[str]:
    """Return the words of the pack in lower case. Names of things are left out, because they are often equal in several
    languages."""
    found: set[str] = set(pack.verbs) | set(pack.numbers)
    for owner in (pack, pack.markers):
        for field in fields(owner):
            value = getattr(owner, field.name)
            if isinstance(value, frozenset):
                found |= value
    spoken = (*pack.ends, *pack.ends_work, *pack.ended, *pack.begins, *pack.carriers, *pack.switches, *pack.becomes)
    marked = pack.markers
    said = (*marked.negations, *marked.never, *marked.endings, *marked.hedges, *marked.additive, *marked.contrasts)
    ruled = (phrase for rule in pack.rules for phrase in rule.phrases)
    found |= {word for phrase in (*spoken, *said, *ruled) for word in phrase.split()}
    return frozenset(found)

"""Terms: the words of a text in the form in which a search compares them, in every script; pure.

The sparse vectors of words and the vectors of the embedder `hashing` contain these terms, so this module is a contract:
a change of a term is a change of stored vectors (docs/design/words.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Final

WORDS_KEPT: Final = 16_384
"""Maximum number of cached words."""
_MARKED: Final = ((0x0300, 0x1DFF), (0x20D0, 0x20FF), (0x3099, 0x309A), (0xA66F, 0xABFF), (0x11000, 0x11FFF))
"""Ranges of code points that contain the combining marks of letters."""
MARKS: Final = "".join(
    chr(code)
    for first, last in _MARKED
    for code in range(first, last + 1)
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
"""The combining marks. In Thai, Hindi and similar scripts they are vowels and tones, so a word contains them."""
WORD: Final = rf"(?:[^\W_]|[{MARKS}])+"
"""Pattern of a word: letters and digits, each with its marks."""
SPACELESS: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U00020000-\U000323af"
)
"""Thai, Lao, Burmese, Khmer, kana, Bopomofo and Han: scripts that write no space between words."""
_IDEOGRAPH: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_WORD: Final = re.compile(WORD)
_RUNS: Final = re.compile(rf"[{SPACELESS}{MARKS}]*[{SPACELESS}][{SPACELESS}{MARKS}]*|[^{SPACELESS}]+")
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")
_CLUSTER: Final = re.compile(rf".[{MARKS}]*", re.DOTALL)
_MARK: Final = re.compile(rf"[{MARKS}]")
_ACCENTS: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0640\u00ad\u200c\u200d]"
)
"""Marks that a writer may leave out: accents of Latin, Greek and Cyrillic, the points of Hebrew and the vowel signs of
Arabic. Also the joiners, the soft hyphen and the Arabic tatweel."""
_ALIKE: Final = str.maketrans(
    {"ł": "l", "đ": "d", "ð": "d", "ø": "o", "ı": "i", "ħ": "h", "ŧ": "t", "ŋ": "n", "æ": "ae", "œ": "oe", "þ": "th"}
    | {"ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك", "ٱ": "ا"}
)
"""Letters that Unicode does not split into a letter and an accent, with the letters that a writer types instead."""
_ARTICLE: Final = re.compile(r"[وفبك]?ال(?=\w{3})|لل(?=\w{3})")
"""The Arabic article, which is written together with its noun and a preposition before it."""


@lru_cache(maxsize=WORDS_KEPT)
def fold(word: str) -> str:
    """Return a word without case, accents and compatibility forms: `Łódź` becomes `lodz`, `Straße` becomes `strasse`.

    The letter й keeps its breve, because it is a letter of its own. Vowels and tones of scripts in which a word needs
    them stay.
    """
    if word.isascii():
        return word.lower()
    split = unicodedata.normalize("NFKD", word.casefold()).casefold().replace("и\u0306", "й")
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", split).translate(_ALIKE))
    begin = _ARTICLE.match(plain)
    return plain[begin.end() :] if begin else plain


def is_spaceless_word(word: str) -> bool:
    """Return whether the word contains a letter of a script without spaces between words."""
    return not word.isascii() and _SPACELESS.search(word) is not None


def pieces(word: str) -> Iterator[str]:
    """Yield the terms of a folded word that `is_spaceless`: each pair of adjacent letters, and each ideograph.

    A letter is taken with its marks. A run of one letter is a term itself.
    """
    for run in _RUNS.findall(word):
        if _SPACELESS.search(run) is None:
            yield run
            continue
        letters = _CLUSTER.findall(run)
        if len(letters) == 1:
            yield run
            continue
        for one, other in pairwise(letters):
            yield one + other
        yield from (each for each in letters if _IDEOGRAPH.match(each))


@lru_cache(maxsize=WORDS_KEPT)
def _added(word: str) -> tuple[str, ...]:
    plain = fold(word)
    if is_spaceless_word(plain):
        return tuple(pieces(plain))
    return (plain,) if plain != word.lower() or _MARK.search(plain) else ()


def added_terms(text: str) -> list[str]:
    """Return the terms of a text that a split at spaces and punctuation does not find.

    These are the folded form of each word with an accent, the pairs of adjacent letters in a script without spaces, and
    whole words of the scripts that write vowels as marks. An ASCII text has none. A caller adds these terms to the
    words that it had before, so that it also finds records stored without them.
    """
    if text.isascii():
        return []
    return [term for word in _WORD.findall(unicodedata.normalize("NFC", text)) for term in _added(word)]


def as_word(term: str) -> str:
    """Return the term as one word for a tokenizer that splits at marks."""
    if _MARK.search(term) is None:
        return term
    return f"{blake2b(term.encode(), digest_size=8).hexdigest()}q"

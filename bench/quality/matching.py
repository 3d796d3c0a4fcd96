"""A match between a stored statement and a gold item: lenient on wording, strict on content.

They match if the subject is the same, every keyword of the item is in the text, no forbidden word is in it, and it has
no negation unless the item is one. A denial at the end of a text (", not Lea") and the origin of a change ("from
Halifax to Moncton") are removed first.
"""

from __future__ import annotations

import re
from typing import Final

from memstream.schemas import ids

from .dialogues import Wording

DENYING: Final = (
    "not", "n't", "no longer", "never", "used to", "any more", "anymore", "left", "quit", "gave up", "stopped",
    "former", "formerly", "no",
)  # fmt: skip
_TOKEN: Final = re.compile(r"n't|\w+")
_CONTRACTED: Final = re.compile(r"n['’]t\b")
_ASIDE: Final = re.compile(r"[,;(]\s*(?:and |but )?(?:not|never|rather than|instead of)\b.*$")
_BEFORE: Final = re.compile(r"\bfrom [\w' -]+? to\b")


def matches(wording: Wording, *, subject: str, content: str) -> bool:
    if wording.subject is not None and wording.subject != subject:
        return False
    words = _words(content)
    forbidden = wording.forbidden if wording.negative else (*wording.forbidden, *DENYING)
    return all(_has(words, each) for each in wording.keywords) and not any(_has(words, each) for each in forbidden)


def _words(text: str) -> list[str]:
    return _tokens(_BEFORE.sub("to", _ASIDE.sub("", ids.canonical(text))))


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(_CONTRACTED.sub(" n't", text))


def _has(words: list[str], keyword: str) -> bool:
    """Return whether one of the alternatives is in the text, word by word."""
    return any(_has_phrase(words, alternative.split()) for alternative in keyword.casefold().split("/"))


def _has_phrase(words: list[str], phrase: list[str]) -> bool:
    return any(
        all(_is(word, wanted) for word, wanted in zip(words[at : at + len(phrase)], phrase, strict=True))
        for at in range(len(words) - len(phrase) + 1)
    )


def _is(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted

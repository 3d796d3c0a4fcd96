"""Requests to memory in the user's sentences: "remember that …", "forget that …"."""

from __future__ import annotations

import re
from typing import Final

_POLITE: Final = (
    r"(?:(?:please|pls|ok|okay|hey|hi|so|and|also|now|no|oh|wait|actually|can you|could you|would you|you can"
    r"|i (?:want|would like) you to)[ ,:]+)*"
)
_REMEMBER: Final = re.compile(
    rf"{_POLITE}(?:(?:always |also )?(?:remember|note|(?:keep|bear) in mind|(?:do not|never) forget|memori[sz]e|save"
    r"|make a note|take note))(?: (?:this|it|the fact|for me|for later))*"
    r"(?:\s*:\s*| that | (?=(?:i|we|my|our)\b))(?P<what>.+)",
    re.IGNORECASE,
)
_FORGET: Final = re.compile(
    rf"{_POLITE}(?:forget(?! (?:to|it|me)\b)|(?:do not|never|no longer|stop) (?:remember(?:ing)?|keep(?:ing)? in mind)"
    r"|(?:delete|erase|remove|drop|wipe)(?= .*\b(?:memory|notes|i (?:said|told)))(?: from (?:your )?(?:memory|notes))?)"
    r"(?: (?:about|the fact|everything|all|what i (?:have )?(?:said|told you)))*(?: (?:that|about|on))* (?P<what>.+)",
    re.IGNORECASE,
)
_FROM_MEMORY: Final = re.compile(r",? (?:from|in|out of) (?:your|the) (?:memory|notes)\b.*$", re.IGNORECASE)
_WORDS_MIN: Final = 3


def to_remember(plain: str) -> str | None:
    """Return the text that a sentence asks memory to keep; None when it does not ask for this. `plain` is a sentence
    without contractions."""
    match = _REMEMBER.fullmatch(plain)
    what = match["what"].strip(" .!") if match else ""
    return what if len(what.split()) >= _WORDS_MIN else None


def to_forget(plain: str) -> str | None:
    """Return the text that a sentence asks memory to forget; None when it does not ask for this. `plain` is a sentence
    without contractions."""
    match = _FORGET.fullmatch(plain)
    what = _FROM_MEMORY.sub("", match["what"]).strip(" .!") if match else ""
    return what or None

"""Requests to forget, such as "forget that I work at St. Mary's", in English, German, French and Spanish; pure.

A request is an order at the beginning of a sentence, in the speaker's own words. "I will never forget" and "don't
forget" are not requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ...schemas.turns import Role
from ..language.text import folded
from .said_text import SaidText

_LEAD: Final = re.compile(
    r"(?:(?:please|pls|plz|ok|okay|hey|hi|hello|so|and|but|also|well|now|then|actually|no|oh|wait|sorry|memory|assistant"
    r"|(?:can|could|would|will) you|you (?:can|may|should)|i (?:want|need) you to|i would like you to|i'd like you to"
    r"|bitte|und|aber|also|kannst du|könntest du|könnten sie|du kannst|du sollst|s'il te plaît"
    r"|s'il vous plaît|stp|svp|et|peux-tu|tu peux|pouvez-vous|por favor|y|pero|puedes|podrías|puede)\b[\s,:!–-]*)*"
)
_OF_MEMORY: Final = (
    r"(?=.*\b(?:memory|memories|notes|records|remember|gedächtnis|speicher|erinnerungen|notizen|mémoire|notes|souvenirs"
    r"|memoria|notas|recuerdos|i (?:said|told)|habe ich|j'ai dit|que dije)\b)"
)
_ORDERS: Final = re.compile(
    r"(?:"
    r"forget(?! (?:to|it|me)\b)|(?:don't|do not|never|no longer) (?:remember|keep in mind|memori[sz]e)"
    r"|stop remembering|unlearn"
    rf"|(?:delete|erase|remove|drop|wipe|scrub){_OF_MEMORY}"
    r"|(?:vergiss|vergesst|vergessen sie)(?! (?:\w+ )?nicht)|merk(?:e)? dir nicht|erinnere dich nicht"
    rf"|(?:lösche?|entferne?|streiche?|löschen sie|entfernen sie){_OF_MEMORY}"
    r"|oublie(?:z)?|ne (?:te souviens|vous souvenez|retiens|retenez) (?:pas|plus)"
    rf"|(?:efface|effacez|supprime|supprimez|enlève){_OF_MEMORY}"
    r"|olv[ií]da(?:te)?|olvide(?:n)?|no (?:recuerdes|recuerde|guardes)|deja de recordar"
    rf"|(?:borra|borre|elimina|elimine|quita){_OF_MEMORY}"
    r")\b(?P<what>.*)"
)
_WHAT_MIN: Final = 3
"""Minimum number of letters in the words that name the thing to forget. "forget it" and "forget that" name nothing."""
_EMPTY: Final = frozenset(
    (
        "it",
        "that",
        "this",
        "about",
        "everything",
        "all",
        "das",
        "es",
        "alles",
        "ça",
        "cela",
        "tout",
        "eso",
        "esto",
        "todo",
    )
) | {"please", "bitte", "now"}
_ENDING: Final = r"[.!?;…。！？\n]+(?=\s|$)"
_END_HERE: Final = re.compile(_ENDING)
_END: Final = re.compile(rf"(?<![.!?;…。！？\n]){_ENDING}")
"""The end of a sentence: a run of punctuation or line ends. A match begins only at the first character of the run;
otherwise a search would read a long run many times."""


def asks_to_forget(sentence: str) -> bool:
    """Return whether a folded sentence is an order to forget, and names the thing to forget."""
    lead = _LEAD.match(sentence)
    order = _ORDERS.match(sentence, lead.end() if lead else 0)
    if order is None:
        return False
    named = [word for word in re.findall(r"\w+", order["what"]) if word not in _EMPTY]
    return sum(map(len, named)) >= _WHAT_MIN


def is_forget_request(quote: str, messages: Iterable[SaidText], *, role: Role = "user") -> bool:
    """Return whether a quote is part of a request to forget. Only messages of this role count, and only their own
    words."""
    wanted = folded(quote)
    return bool(wanted) and any(
        asks_to_forget(sentence)
        for text in messages
        if text.role == role
        for sentence in _sentences_with(wanted, text.own)
    )


def _sentences_with(quote: str, text: str) -> Sequence[str]:
    """Return the first occurrence of the quote with its whole sentences, as one text. Return no text when the quote
    does not occur."""
    start = text.find(quote)
    if start < 0:
        return ()
    before = max((match.end() for match in _END.finditer(text, 0, start)), default=0)
    place = start + len(quote)
    after = _END_HERE.match(text, place) or _END.search(text, place)
    return (text[before : after.start() if after else len(text)].strip(),)

"""Find the speaker whom a question names among the speakers of stored messages; pure.

Speakers write about themselves in the first person. For the question "What are Ann's plans?" the search therefore
prefers Ann's messages, and compares meanings with the question in the first person ("What are my plans?"). Only the
speaker name of a message counts, never its role. In a conversation of an assistant with one user, messages usually have
no speaker names. Then no speaker is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


NAMES_MAX: Final = 16
"""Maximum number of possible names that are looked up for a cue."""
ROLES: Final = frozenset({"user", "assistant", "system", "tool"})
_WORD: Final = re.compile(r"[^\W_][\w.\-]*[^\W_]|[^\W_]")
_POSSESSIVE: Final = r"['\u2019]s\b|(?<=s)['\u2019](?!\w)"
_BEFORE_ME: Final = _words(
    "about after at before behind beside by for from in into like near of on onto over than through to toward towards",
    "under upon with without",
)
_NO_NAMES: Final = _words(
    "a an and any are as at be been by can could did do does for from had has have how i if in is it its may might my",
    "of on or our should than that the their them then there these they this those to was were what when where which",
    "who whom whose why will with would you your",
)
"""Words that do not count as names when they are the first word of a cue, because the first word is always capitalised.
Some of them are also names (Will); inside a cue they count as names."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The speaker whom a cue names. `names` has the spellings of the name in stored messages."""

    names: frozenset[str]
    first_person: str
    """The cue as the speaker would write it. It is used to compare meanings."""
    without_name: str
    """The cue without the name. It is used to compare words, because people seldom write their own name."""


def possible_names(cue: str) -> tuple[str, ...]:
    """Return the possible names in a cue: capitalised words, and pairs of adjacent capitalised words.

    Each name is also returned in lower case, because services may store names in lower case. A cue without capital
    letters has no possible names.
    """
    plain = re.sub(_POSSESSIVE, lambda ending: " " * len(ending.group()), cue)
    found: list[str] = []
    last: tuple[str, int] | None = None  # the previous capitalised word, and where it ends
    for place, word in enumerate(_WORD.finditer(plain)):
        name = word.group()
        if not name[0].isupper() or name == "I" or (place == 0 and name.lower() in _NO_NAMES):
            last = None
            continue
        found.append(name)
        if last is not None and plain[last[1] : word.start()] == " ":
            found.append(f"{last[0]} {name}")
        last = (name, word.end())
    spelled = (spelling for name in found if name.lower() not in ROLES for spelling in (name, name.lower()))
    return tuple(dict.fromkeys(spelled))[: 2 * NAMES_MAX]


def same_name(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def find_speaker(cue: str, known: Iterable[str]) -> Speaker | None:
    """Return the speaker whom a cue names; None when the cue names no speaker or several speakers. `known` are the
    names of the speakers of stored messages."""
    possible = {name.casefold() for name in possible_names(cue)}
    named = frozenset(name for name in known if name.casefold() in possible)
    if len({name.casefold() for name in named}) != 1:
        return None
    name = min(named)
    return Speaker(named, to_first_person(cue, name), remove_name(cue, name))


def to_first_person(cue: str, name: str) -> str:
    """Replace the name in the cue by the first person: "Ann's" → "my", "with Ann" → "with me", otherwise "Ann" →
    "I"."""

    def pronoun(found: re.Match[str]) -> str:
        if found.group("of"):
            return "my"
        before = _WORD.findall(cue[: found.start()])
        return "me" if before and before[-1].lower() in _BEFORE_ME else "I"

    return _naming(name).sub(pronoun, cue)


def remove_name(cue: str, name: str) -> str:
    """Remove a name from the cue. Return the cue unchanged when only words of `_NO_NAMES` would be left."""
    rest = " ".join(_naming(name).sub(" ", cue).split())
    return rest if any(word.lower() not in _NO_NAMES for word in _WORD.findall(rest)) else cue


def _naming(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?P<of>{_POSSESSIVE})?(?!\w)", re.IGNORECASE)

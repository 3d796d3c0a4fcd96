"""Speakers of a turn's messages, in prompts and as subjects of statements (docs/design/observer.md). Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from ...memory.language.text import folded, one_line, visible
from ...memory.trust.rendered_text import safe_name
from ...memory.trust.said_text import SaidText
from ...schemas.base import SUBJECT_MAX
from ...schemas.turns import Role

USER: Final = "user"
"""Subject of the person whom the assistant serves."""
_OWN_NAMES: Final = frozenset((USER, "human", "me"))
"""Names that services use for their user's messages."""
_STRUCTURE: Final = re.compile(r"[\[\](){}<>#*_`|,;:\"]+")
"""Characters with a meaning in a prompt. An underscore joins the words of a name."""
_WRITTEN: Final = re.compile(
    r"\s{0,8}(?P<name>[^\W\d_][\w.'’-]{0,24}(?: [^\W\d_][\w.'’-]{0,24}){0,2})\s?:\s{1,8}(?=\S)"
)
"""A name before the text, as chat relays write it."""
_NO_NAMES: Final = frozenset(
    (
        *(
            "note",
            "notes",
            "ps",
            "p.s.",
            "nb",
            "n.b.",
            "fyi",
            "update",
            "edit",
            "correction",
            "reminder",
            "todo",
            "tldr",
        ),
        *("question", "q", "answer", "a", "re", "fw", "fwd", "subject", "from", "to", "date", "time", "hint", "tip"),
        *("example", "quote", "source", "info", "warning", "error", "important", "background", "context", "summary"),
        *("job", "work", "home", "name", "age", "location", "city", "country", "address", "allergies", "diet", "hobby"),
        *("hobbies", "family", "pets", "likes", "dislikes", "goal", "goals", "plan", "plans", "birthday", "language"),
        *("user", "human", "assistant", "ai", "bot", "system", "developer", "tool", "function", "me", "you", "i"),
    )
)
"""Words before a colon that are not names."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as shown in a prompt. Each remaining part of a cut message is a separate message."""

    role: Role
    text: str
    name: str | None = None
    """The speaker's name as shown. None for a message without a name, or with the user's name."""
    at: datetime | None = None
    """The message's own time by the speaker's clock, or None for the turn's time."""

    @property
    def speaker(self) -> str:
        """The subject of statements that the speaker makes about themselves."""
        return subject_of_name(self.name)

    @property
    def said(self) -> SaidText:
        """The message text in the form for comparing quotes."""
        return SaidText(self.role, self.text)


def subject_of_name(name: str | None) -> str:
    """Return the subject for a shown name: `Ana Lopez` → `ana-lopez`."""
    return USER if name is None else "-".join(name.lower().split())[:SUBJECT_MAX]


def shown_name(name: str | None, user_id: str) -> str | None:
    """Return a speaker's name as shown in prompts, or None for no name and for the user's name."""
    seen = one_line(_STRUCTURE.sub(" ", visible(name or ""))).strip(" .-")
    if not seen or subject_of_name(seen) in _OWN_NAMES or _same_name(name or "", user_id):
        return None
    return safe_name(seen)


def _same_name(name: str, other: str) -> bool:
    return folded(name) == folded(other)


def with_written_names(messages: Sequence[ShownMessage], earlier: Sequence[ShownMessage]) -> tuple[ShownMessage, ...]:
    """Return the messages with the names that a relay wrote into their texts (`alice: I live in Porto.`).

    Such names count only if every user message begins with a name, and if at least two different names occur, including
    names in `earlier`.
    """
    names = {_written_name(each) if each.name is None else None for each in messages if each.role == USER}
    before = {_written_name(each) for each in earlier if each.role == USER} - {None}
    if None in names or not names or len(names | before) < 2:
        return tuple(messages)
    return tuple(replace(each, name=_written_name(each)) if each.role == USER else each for each in messages)


def _written_name(message: ShownMessage) -> str | None:
    match = _WRITTEN.match(message.text)
    return None if match is None or match["name"].lower() in _NO_NAMES else safe_name(match["name"])


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message that contains a quote."""

    speaker: str
    """The subject of the speaker. A message of another role has the subject of the user message before it."""
    at: datetime | None = None
    """The message's own time, or None for the turn's time."""
    place: int = 0
    """Index, from 0, among the user messages: the index of this message, or of the user message before it."""


def spoken_in(
    quote: str, role: Role, messages: Sequence[ShownMessage], texts: Sequence[SaidText]
) -> tuple[Spoken, ...]:
    """Return, for each speaker, the first message that contains the quote.

    If messages of `role` contain the quote, messages of other roles are ignored. An empty quote matches every message.
    `texts`: the texts of the messages.
    """
    wanted, speaker, place = folded(quote), USER, -1
    own: dict[str, Spoken] = {}
    other: dict[str, Spoken] = {}
    for message, text in zip(messages, texts, strict=True):
        if message.role == USER:
            speaker, place = message.speaker, place + 1
        if not wanted or wanted in text.folded:
            found = Spoken(speaker, message.at, max(place, 0))
            (own if message.role == role else other).setdefault(speaker, found)
    return tuple((own or other).values())


def subject_said(subject: str, speaker: str) -> str:
    """Return the subject of a statement by this speaker. `user` and the speaker's first name mean the speaker."""
    named = "-".join(subject.split())
    is_speaker = subject == USER or named in (speaker, speaker.partition("-")[0])
    return speaker if speaker != USER and is_speaker else subject

"""Context windows: the text of a message with its neighbours, by which the message is found; pure.

An answer seldom repeats the question's words: the question before it leads to "Becoming Nicole, twice!". So a message
has a second vector, of the window previous + this + next, and is also found by the window's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.turns import Sensitivity, up_to

NEIGHBOURS: Final = 2
"""Messages before a turn that its windows need. The last of them gets its own next neighbour from the turn."""
NEIGHBOUR_MAX: Final = 1_000
"""Code points of a neighbour in a window, those nearest to the message. A longer text would hide the message's own
words."""
TALKING: Final = frozenset({"user", "assistant"})
"""Roles whose messages belong to a thread."""


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message as input of a window."""

    text: str
    owner_key: str
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class MessageWindows:
    """The window texts of a turn, and the new window text of the message before it."""

    turn: tuple[str, ...]
    before: str | None


def is_talk(role: str, text: str) -> bool:
    """Whether a message belongs to the session's thread. Messages of tools and systems, and messages without words, do
    not."""
    return role in TALKING and bool(text.strip())


def build_windows(before: Sequence[WindowMessage], turn: Sequence[WindowMessage]) -> MessageWindows:
    """Build the windows of a turn that follows `before`, the last messages of the thread (at most `NEIGHBOURS`), oldest
    first."""
    thread = [*before, *turn]
    texts = [_window(thread, place) for place in range(len(thread))]
    completed = len(before) - 1
    return MessageWindows(tuple(texts[len(before) :]), texts[completed] if before and turn else None)


def _window(thread: Sequence[WindowMessage], place: int) -> str:
    this = thread[place]
    around = []
    if place > 0 and _may_stand_beside(this, thread[place - 1]):
        around.append(thread[place - 1].text[-NEIGHBOUR_MAX:])
    around.append(this.text)
    if place + 1 < len(thread) and _may_stand_beside(this, thread[place + 1]):
        around.append(thread[place + 1].text[:NEIGHBOUR_MAX])
    return "\n".join(around)


def _may_stand_beside(this: WindowMessage, neighbour: WindowMessage) -> bool:
    """Whether everybody who may read `this` may read the neighbour. Otherwise a search could reveal the neighbour's
    words."""
    return neighbour.owner_key == this.owner_key and neighbour.sensitivity in up_to(this.sensitivity)

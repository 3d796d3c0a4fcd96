"""Context windows: the text of a message with its neighbours, used to find the message; pure.

An answer seldom repeats the words of its question: "Becoming Nicole, twice!" is found by the question before it. So a
message has a second vector, for its window: the previous message, the message itself and the next message. The words of
the window are also searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.turns import Sensitivity, up_to

NEIGHBOURS: Final = 2
"""Number of messages before a turn that its windows need. The window of the last of them still needs its next
neighbour, which is in the turn."""
NEIGHBOUR_MAX: Final = 1_000
"""Maximum code points of a neighbour in a window: the ones nearest to the message. A longer text would hide the words
of the message itself."""
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
    """Return whether a message belongs to the thread of the session. Messages of tools and systems, and messages
    without words, do not belong to it."""
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
    if place > 0 and _may_share_window(this, thread[place - 1]):
        around.append(thread[place - 1].text[-NEIGHBOUR_MAX:])
    around.append(this.text)
    if place + 1 < len(thread) and _may_share_window(this, thread[place + 1]):
        around.append(thread[place + 1].text[:NEIGHBOUR_MAX])
    return "\n".join(around)


def _may_share_window(this: WindowMessage, neighbour: WindowMessage) -> bool:
    """Return whether every reader of `this` may read the neighbour. Otherwise a search could reveal the words of the
    neighbour."""
    return neighbour.owner_key == this.owner_key and neighbour.sensitivity in up_to(this.sensitivity)

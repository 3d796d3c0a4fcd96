"""Context windows: the text of a message with its neighbours, used to find the message; pure.

An answer seldom repeats the words of its question. For example, a search for books does not find "Becoming Nicole,
twice!"; only the question before that message contains the word. Therefore a message has a second vector, for its
window: the previous message, the message itself and the next message. The words of the window are also searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.turns import Sensitivity, up_to

NEIGHBOURS: Final = 2
"""Number of messages before a turn that are needed to build its windows. The last of these messages is the neighbour of
the turn's first message. Its own window is also built again, and needs the message before it."""
NEIGHBOUR_MAX: Final = 1_000
"""Maximum number of code points of a neighbour in a window. The code points nearest to the message are kept. A longer
neighbour would outweigh the words of the message itself."""
TALKING: Final = frozenset({"user", "assistant"})
"""Roles of messages that belong to the thread, which is the conversation of a session."""


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """The fields of a message that are needed to build windows."""

    text: str
    owner_key: str
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class MessageWindows:
    """The windows that a turn adds or changes."""

    turn: tuple[str, ...]
    """The window text of each message in the turn."""
    before: str | None
    """The new window text of the last message before the turn, which now has a next message; None without one."""


def is_talk(role: str, text: str) -> bool:
    """Return whether a message belongs to the thread of the session: it has text and its role is in `TALKING`."""
    return role in TALKING and bool(text.strip())


def build_windows(before: Sequence[WindowMessage], turn: Sequence[WindowMessage]) -> MessageWindows:
    """Build the windows of a turn. `before` are the messages of the thread before the turn, at most the last
    `NEIGHBOURS`, oldest first."""
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
    """Return whether every reader of `this` may also read the neighbour. Otherwise a search that finds `this` could
    reveal words of the neighbour."""
    return neighbour.owner_key == this.owner_key and neighbour.sensitivity in up_to(this.sensitivity)

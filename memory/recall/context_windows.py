"""Context windows: the text of a message and of its neighbours, used to find the message; pure.

An answer seldom repeats the words of its question. For example, a search for books does not find "Becoming Nicole,
twice!"; only the question before that message contains the word. Therefore a message has a second vector, for its
window: the end of the previous message, the message itself and the beginning of the next message. The words of the
neighbours are also searched. A long message states its subject itself, so its window is the message alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.turns import Sensitivity, up_to

NEIGHBOURS: Final = 2
"""Number of messages before a turn that are needed to build its windows. The last of these messages is the neighbour of
the turn's first message. Its own window is also built again, and needs the message before it."""
NEIGHBOUR_MAX: Final = 300
"""Maximum number of code points of a neighbour in a window. The code points nearest to the message are kept. A longer
neighbour would outweigh the words of the message itself."""
LONG: Final = 600
"""Number of code points beyond which the window of a message is the message alone. Many embedders read only the first
thousand code points of a text."""
TALKING: Final = frozenset({"user", "assistant"})
"""Roles of messages that belong to the thread, which is the conversation of a session."""


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """The fields of a message that are needed to build windows."""

    text: str
    owner_key: str
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The texts by which a message is found, in addition to its own words."""

    text: str
    """The text to embed: the message, between its neighbours."""
    nearby: str
    """The neighbours alone, at most `NEIGHBOUR_MAX` code points of each."""


@dataclass(frozen=True, slots=True)
class MessageWindows:
    """The windows that a turn adds or changes."""

    turn: tuple[ContextWindow, ...]
    """The window of each message in the turn."""
    before: ContextWindow | None
    """The new window of the last message before the turn, which now has a next message; None without one."""


def is_talk(role: str, text: str) -> bool:
    """Return whether a message belongs to the thread of the session: it has text and its role is in `TALKING`."""
    return role in TALKING and bool(text.strip())


def build_windows(before: Sequence[WindowMessage], turn: Sequence[WindowMessage]) -> MessageWindows:
    """Build the windows of a turn. `before` are the messages of the thread before the turn, at most the last
    `NEIGHBOURS`, oldest first."""
    thread = [*before, *turn]
    windows = [_window(thread, place) for place in range(len(thread))]
    completed = len(before) - 1
    return MessageWindows(tuple(windows[len(before) :]), windows[completed] if before and turn else None)


def _window(thread: Sequence[WindowMessage], place: int) -> ContextWindow:
    this, previous, following = thread[place], list[str](), list[str]()
    if len(this.text) > LONG:
        return ContextWindow(this.text, nearby="")
    if place > 0 and _may_share_window(this, thread[place - 1]):
        previous.append(thread[place - 1].text[-NEIGHBOUR_MAX:])
    if place + 1 < len(thread) and _may_share_window(this, thread[place + 1]):
        following.append(thread[place + 1].text[:NEIGHBOUR_MAX])
    return ContextWindow("\n".join([*previous, this.text, *following]), "\n".join([*previous, *following]))


def _may_share_window(this: WindowMessage, neighbour: WindowMessage) -> bool:
    """Return whether every reader of `this` may also read the neighbour. Otherwise a search that finds `this` could
    reveal words of the neighbour."""
    return neighbour.owner_key == this.owner_key and neighbour.sensitivity in up_to(this.sensitivity)

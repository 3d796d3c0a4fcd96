"""What a message is found by: its own words and those of its neighbours (recall-and-tools §1); pure.

An answer seldom repeats the question's words: "Becoming Nicole, twice!" is found by the question that came before it.
So a message has, besides its own vector, one of the window previous + this + next, and is found by the window's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.turns import Sensitivity, up_to

NEIGHBOURS: Final = 2
"""Messages before a turn that its windows and the one that it completes are made of."""
NEIGHBOUR_MAX: Final = 1_000
"""Code points of a neighbour that stand in a window, those that are nearest to the message: beside a long paste it
would not be found by its own words any more."""
TALKING: Final = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message as windows see it."""

    text: str
    owner_key: str
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class MessageWindows:
    """The texts of a turn's windows, and that of the message before it, which now has its next one."""

    turn: tuple[str, ...]
    before: str | None


def is_talk(role: str, text: str) -> bool:
    """Whether a message belongs to the thread of a session: what tools answer and systems order has no neighbours and
    is none, nor is a message without words."""
    return role in TALKING and bool(text.strip())


def build_windows(before: Sequence[WindowMessage], turn: Sequence[WindowMessage]) -> MessageWindows:
    """Of a turn that follows on `before`, the thread's last lines (at most `NEIGHBOURS`), oldest first."""
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
    """Whoever may read this may read the neighbour: else it could be felt out by searching for its words."""
    return neighbour.owner_key == this.owner_key and neighbour.sensitivity in up_to(this.sensitivity)

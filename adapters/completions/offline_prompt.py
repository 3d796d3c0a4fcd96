"""Reader of prompts in the format of docs/reference/models.md: short ids, headings, turns in the last message.

The offline model gets the same text as any model, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..ports import Message

MAX_TURN: Final = 65_536
"""Code points of a turn that are read. A longer turn is a pasted document, not a person's statement about
themselves."""

MAX_HEADING: Final = 256
"""Code points of a heading that are read. The longest name has 128."""

_ITEM: Final = re.compile(r"\[([wcefp][0-9]+)\][ ]?(.*)")
_TURN: Final = re.compile(r"\[(t[0-9]+)\]\s*")
_ESCAPED: Final = re.compile(r"^(\s*)\\(?=\[[twcefp][0-9]+\])")
_ROLE: Final = re.compile(r"(user|assistant|tool|system): ?(.*)")
_PARENTHESES: Final = re.compile(r"\([^)]*\)")
_INTRODUCED: Final = re.compile(r"(?:about|subject|known|working|episodes|facts)\b")
_NO_WORD: Final = re.compile(r"[^\w\s'’.-]+")


@dataclass(frozen=True, slots=True)
class ShownItem:
    """A line that the answer may refer to."""

    id: str
    subject: str
    content: str


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of the user, and what the assistant said right before it."""

    text: str
    asked: str = ""


@dataclass(frozen=True, slots=True)
class ShownTurnText:
    """What the user said in a turn, message by message. Other roles are left out."""

    id: str
    messages: tuple[SaidMessage, ...]

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(message.text for message in self.messages)


@dataclass(frozen=True, slots=True)
class Prompt:
    turns: tuple[ShownTurnText, ...]
    working: tuple[ShownItem, ...]
    episodes: tuple[ShownItem, ...]
    facts: tuple[ShownItem, ...]
    context: tuple[ShownItem, ...] = ()
    """Earlier messages, oldest first; the subject is the role. Nothing is extracted from them."""


def read_prompt(messages: Sequence[Message]) -> Prompt:
    """Read the prompt. Instructions (system messages) are skipped, because their examples look like real data."""
    users = [message.content for message in messages if message.role == "user"]
    known: dict[str, ShownItem] = {}
    turns: dict[str, list[str]] = {}
    for place, content in enumerate(users):
        heading, turn = "user", None
        for line in content.splitlines():
            if place == len(users) - 1 and (match := _TURN.fullmatch(line)):
                turn = match[1]
                turns[turn] = []
            elif turn is not None:
                turns[turn].append(_ESCAPED.sub(r"\1", line))
            elif match := _ITEM.fullmatch(line):
                known[match[1]] = ShownItem(id=match[1], subject=heading, content=match[2].strip())
            elif line.strip():
                heading = _subject_of(line)
    context = _of_kind(known, "c")
    return Prompt(
        turns=_turns(
            turns, asked=next((each.content for each in reversed(context) if each.subject == "assistant"), "")
        ),
        working=_of_kind(known, "w"),
        episodes=_of_kind(known, "e"),
        facts=_of_kind(known, "f"),
        context=context,
    )


def _turns(turns: Mapping[str, Sequence[str]], *, asked: str) -> tuple[ShownTurnText, ...]:
    shown: list[ShownTurnText] = []
    for turn, lines in turns.items():
        messages: list[SaidMessage] = []
        for role, text in _messages(lines):
            if role == "user" and text.strip():
                messages.append(SaidMessage(text, asked))
            asked = text if role == "assistant" else "" if text.strip() else asked
        shown.append(ShownTurnText(turn, tuple(messages)))
    return tuple(shown)


def _of_kind(known: dict[str, ShownItem], letter: str) -> tuple[ShownItem, ...]:
    return tuple(item for item in known.values() if item.id[0] == letter)


def _subject_of(heading: str) -> str:
    """Return the subject of a heading, which may be marked up: all of `## mary ann`, the last word of `About anna:`."""
    heading = heading[:MAX_HEADING]
    text = " ".join(_NO_WORD.sub(" ", _PARENTHESES.sub(" ", heading)).split()).strip(" .-").lower()
    if heading.lstrip().startswith("#") and not _INTRODUCED.match(text):
        return text or "user"
    return text.rpartition(" ")[2] or "user"


def _messages(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return (role, text) of each message. A text without any speaker is the user's."""
    messages: list[tuple[str, list[str]]] = [("user", [])]
    left = MAX_TURN
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        if match := _ROLE.fullmatch(line):
            messages.append((match[1], [match[2]]))
        else:
            messages[-1][1].append(line)
    return [(role, "\n".join(text)) for role, text in messages]

"""Reader of prompts in the format of docs/reference/models.md: short ids, headings, turns in the last message.

The offline model gets the same text as any other model, and no other input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...ports import Message

USER: Final = "user"

MAX_TURN: Final = 65_536
"""Maximum code points of a turn that are read. A longer turn is a pasted document, not a statement about the
speaker."""

MAX_HEADING: Final = 256
"""Maximum code points of a heading that are read. The longest name has 128."""

_ITEM: Final = re.compile(r"\[([wcefp][0-9]+)\][ ]?(.*)")
_TURN: Final = re.compile(r"\[(t[0-9]+)\]\s*")
_ESCAPED: Final = re.compile(r"^(\s*)\\(?=\[[twcefp][0-9]+\])")
_ROLE: Final = re.compile(r"(user|assistant|tool|system)(?: \(([^()]{0,256})\))?: ?(.*)")
_OF_SPEAKER: Final = re.compile(r"## user \(([^()]*)\)")
_TIME: Final = re.compile(r"(?:^|, )\d{4}-\d\d-\d\dT\S+$")
_PARENTHESES: Final = re.compile(r"\([^)]*\)")
_INTRODUCED: Final = re.compile(r"(?:about|subject|known|working|episodes|facts)\b")
_NO_WORD: Final = re.compile(r"[^\w\s'’.-]+")


@dataclass(frozen=True, slots=True)
class ShownItem:
    """A line of the prompt that the answer may refer to."""

    id: str
    subject: str
    content: str
    speaker: str = USER
    """For an earlier message of a user: the subject name of its speaker."""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of the user, and the assistant's message directly before it."""

    text: str
    asked: str = ""
    speaker: str = USER
    """The subject for the speaker's statements about themselves."""


@dataclass(frozen=True, slots=True)
class ShownTurnText:
    """The user's messages in a turn. Messages of other roles are left out."""

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
    """Earlier messages, oldest first. Their `subject` is the role of the message. No observation comes from them."""


def read_prompt(messages: Sequence[Message]) -> Prompt:
    """Parse the prompt. Skip instructions (system messages), because their examples look like real data."""
    users = [message.content for message in messages if message.role == "user"]
    known: dict[str, ShownItem] = {}
    turns: dict[str, list[str]] = {}
    for place, content in enumerate(users):
        heading, speaker, turn = USER, USER, None
        for line in content.splitlines():
            if place == len(users) - 1 and (match := _TURN.fullmatch(line)):
                turn = match[1]
                turns[turn] = []
            elif turn is not None:
                turns[turn].append(_ESCAPED.sub(r"\1", line))
            elif match := _ITEM.fullmatch(line):
                known[match[1]] = ShownItem(match[1], heading, match[2].strip(), speaker)
            elif line.strip():
                heading, speaker = _subject_of(line), _speaker_of(line)
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
        for role, name, text in _messages(lines):
            if role == USER and text.strip():
                messages.append(SaidMessage(_without_name(text, name), asked, _subject_of_name(name)))
            asked = text if role == "assistant" else "" if text.strip() else asked
        shown.append(ShownTurnText(turn, tuple(messages)))
    return tuple(shown)


def _of_kind(known: dict[str, ShownItem], letter: str) -> tuple[ShownItem, ...]:
    return tuple(item for item in known.values() if item.id[0] == letter)


def _subject_of(heading: str) -> str:
    """Return the subject of a heading, with or without markup: all of `## mary ann`, the last word of `About anna:`."""
    heading = heading[:MAX_HEADING]
    text = " ".join(_NO_WORD.sub(" ", _PARENTHESES.sub(" ", heading)).split()).strip(" .-").lower()
    if heading.lstrip().startswith("#") and not _INTRODUCED.match(text):
        return text or USER
    return text.rpartition(" ")[2] or USER


def _subject_of_name(name: str) -> str:
    return "-".join(name.lower().split()) or USER


def _speaker_of(heading: str) -> str:
    """Return the speaker from the heading over earlier messages: `## user (Ana)`."""
    match = _OF_SPEAKER.fullmatch(heading[:MAX_HEADING])
    return USER if match is None else _subject_of_name(match[1])


def _without_name(text: str, name: str) -> str:
    """Remove the speaker's name from the beginning of a text. Some chat bridges put the name there."""
    begins = re.match(rf"\s*{re.escape(name)}\s?:\s+", text, re.IGNORECASE) if name else None
    return text if begins is None else text[begins.end() :]


def _messages(lines: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (role, name, text) of each message. A text without a role belongs to the user."""
    messages: list[tuple[str, str, list[str]]] = [(USER, "", [])]
    left = MAX_TURN
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        if match := _ROLE.fullmatch(line):
            messages.append((match[1], _TIME.sub("", match[2] or ""), [match[3]]))
        else:
            messages[-1][2].append(line)
    return [(role, name, "\n".join(text)) for role, name, text in messages]

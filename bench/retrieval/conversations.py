"""Conversations with questions and their evidence, independent of the file format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a speaker. `id` is unique within its conversation."""

    id: str
    speaker: str
    text: str
    role: Role = "user"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    begins: datetime
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `evidence` has the ids of the lines that answer it, at least one."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    sessions: Sequence[Session]
    questions: Sequence[Question]

    @property
    def lines(self) -> int:
        return sum(len(session.lines) for session in self.sessions)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The contents of a file. `skipped` counts the unusable items by reason."""

    conversations: Sequence[Conversation]
    skipped: Counter[str] = field(default_factory=Counter)


class NotReadable(Exception):
    """The file does not have the named format; the message says where."""

"""Conversations with questions and their evidence, whatever the file they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that somebody said. `id` is unique within its conversation."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    begins: datetime
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Question:
    """`evidence`: the ids of the lines that answer it, at least one."""

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
    """What a file holds. `skipped`: what of it could not be used, by reason."""

    conversations: Sequence[Conversation]
    skipped: Counter[str] = field(default_factory=Counter)


class NotReadable(Exception):
    """The file is not of the form that was named; the message says where."""

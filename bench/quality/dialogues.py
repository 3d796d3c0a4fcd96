"""Scripted dialogues of several sessions, and the gold: the statements that memory should have at their end.

Half of tests/corpora/dialogues is for tuning; the other half was written before the rules and is never used for tuning.
A file is one person's dialogue: `sessions` in arrival order (a late session has an earlier date than the previous one),
`facts` (the gold) and `never` (statements that must not be remembered).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "corpora" / "dialogues"
Half = Literal["tune", "test"]
State = Literal["active", "superseded", "invalidated"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The subject and the words of a statement (see matching.py)."""

    keywords: tuple[str, ...]
    """Words that must all be in the text. `a/b` is a or b, `work*` any word with that prefix; several words are a
    phrase.
    """
    subject: str | None = None
    """None means any subject."""
    forbidden: tuple[str, ...] = ()
    negative: bool = False
    """The statement is a negation. Otherwise a text with a negation is another statement."""


@dataclass(frozen=True, slots=True)
class Said:
    turn_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class Gold:
    """A statement that is true at the end, or was true until a point in the dialogue."""

    id: str
    subject: str
    content: str
    """The text as a good observer would write it."""
    category: str
    state: State
    wordings: tuple[Wording, ...]
    evidence: tuple[Said, ...]
    optional: bool = False
    """True when the statement may be remembered or missing."""
    replaces: str | None = None
    """Id of the gold item that it replaces."""
    is_correction: bool = False


@dataclass(frozen=True, slots=True)
class Never:
    wording: Wording
    why: str


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    session_id: str
    turn_id: str
    occurred_at: str
    messages: tuple[Message, ...]

    @property
    def said(self) -> str:
        """The user's text."""
        return "\n".join(each.content for each in self.messages if each.role == "user")

    @property
    def text(self) -> str:
        """The text of all roles."""
        return "\n".join(each.content for each in self.messages)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialogue. Its `id` is also the person's."""

    id: str
    about: str
    sessions: tuple[tuple[Turn, ...], ...]
    facts: tuple[Gold, ...]
    never: tuple[Never, ...]

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(turn for session in self.sessions for turn in session)


@cache
def dialogues(half: Half) -> tuple[Dialogue, ...]:
    return tuple(
        _dialogue(json.loads(path.read_text(encoding="utf-8"))) for path in sorted((FOLDER / half).glob("*.json"))
    )


def _dialogue(row: dict[str, Any]) -> Dialogue:
    return Dialogue(
        id=row["id"],
        about=row["about"],
        sessions=tuple(tuple(_turn(turn, each["session_id"]) for turn in each["turns"]) for each in row["sessions"]),
        facts=tuple(_gold(each) for each in row["facts"]),
        never=tuple(Never(_wording(each, each.get("subject")), each["why"]) for each in row["never"]),
    )


def _turn(row: dict[str, Any], session_id: str) -> Turn:
    messages = tuple(Message(each["role"], each["content"]) for each in row["messages"])
    return Turn(session_id, row["turn_id"], row["occurred_at"], messages)


def _gold(row: dict[str, Any]) -> Gold:
    others = (_wording(row | each, each["subject"]) for each in row.get("or", []))
    return Gold(
        id=row["id"],
        subject=row["subject"],
        content=row["content"],
        category=row["category"],
        state=row["state"],
        wordings=(_wording(row, row["subject"]), *others),
        evidence=tuple(Said(each["turn_id"], each["quote"]) for each in row["evidence"]),
        optional=row.get("optional", False),
        replaces=row.get("replaces"),
        is_correction=row.get("is_correction", False),
    )


def _wording(row: dict[str, Any], subject: str | None) -> Wording:
    return Wording(
        keywords=tuple(row["keywords"]),
        subject=subject,
        forbidden=tuple(row.get("forbidden", ())),
        negative=row.get("negative", False),
    )

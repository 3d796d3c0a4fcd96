"""The rows of the table working_set: one a session, and one for each turn that waits to be observed.

The observer is their only writer. A waiting turn's row is `<session key>/<n>`, written before the session's row that
counts it, deleted after the outcome that observed it is durable.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...schemas import ids
from ...schemas.outcomes import Outcome
from ...schemas.turns import Role
from ...schemas.working import WorkingSet
from ...streams.ports import Position, Record

SEEN_KEPT = 1_000
REFUSED_KEPT = 100
_HASH_BYTES = 8


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64")


class Remembered(_Row):
    """The last ids, oldest first, 8 bytes of SHA-256 each, in one string: thousands of sessions stay small."""

    packed: str = ""

    def _hashes(self) -> bytes:
        return base64.b64decode(self.packed)

    def __contains__(self, given: str) -> bool:
        wanted, hashes = bytes.fromhex(ids.short_hash(given)), self._hashes()
        return any(hashes[i : i + _HASH_BYTES] == wanted for i in range(0, len(hashes), _HASH_BYTES))

    def add(self, given: str) -> Remembered:
        hashes = self._hashes() + bytes.fromhex(ids.short_hash(given))
        return Remembered(packed=base64.b64encode(hashes[-SEEN_KEPT * _HASH_BYTES :]).decode())

    def remove(self, given: str) -> Remembered:
        unwanted, hashes = bytes.fromhex(ids.short_hash(given)), self._hashes()
        kept = [hashes[i : i + _HASH_BYTES] for i in range(0, len(hashes), _HASH_BYTES)]
        return Remembered(packed=base64.b64encode(b"".join(h for h in kept if h != unwanted)).decode())


class RecentMessage(_Row):
    """An earlier message, shown to the model as context."""

    role: Role
    text: str


class SessionRow(_Row):
    """All that the observer knows of a session."""

    turns: Annotated[int, Field(ge=0)] = 0
    """Turns observed: the last turn number."""
    working: WorkingSet = WorkingSet()
    recent: tuple[RecentMessage, ...] = ()
    seen: Remembered = Remembered()
    """The last 1 000 turn ids, waiting ones too; without those that became dead letters."""
    commands: Remembered = Remembered()
    refused: tuple[str, ...] = ()
    """Which records became dead letters, `<hash of the id>@<offset>`: put back they have another offset."""
    waiting_from: Annotated[int, Field(ge=0)] = 0
    waiting_next: Annotated[int, Field(ge=0)] = 0
    """Waiting turns are the rows waiting_from … waiting_next - 1."""
    waiting_ends: bool = False
    """One of them ends the session."""
    last: Outcome | None = None

    @property
    def waiting(self) -> int:
        return self.waiting_next - self.waiting_from

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()


def refused_mark(turn_id: str, offset: int) -> str:
    return f"{ids.short_hash(turn_id)}@{offset}"


class WaitingTurn(_Row):
    """The raw record of a turn that waits, with its coordinates."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    deferred_at: datetime

    @classmethod
    def of(cls, record: Record, *, deferred_at: datetime) -> WaitingTurn:
        position = record.position
        return cls(
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value or b"",
            headers=record.headers,
            deferred_at=deferred_at,
        )

    def record(self) -> Record:
        return Record(
            position=Position(self.topic, self.partition, self.offset),
            key=self.key,
            value=self.value,
            headers=self.headers,
            timestamp=self.timestamp,
        )

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()


def waiting_key(session_key: str, n: int) -> str:
    return f"{session_key}/{n}"


def session_of_waiting_key(key: str) -> str | None:
    """The session key of a waiting turn's row; None for any other row (a session key has three parts)."""
    parts = key.split("/")
    return "/".join(parts[:3]) if len(parts) == 4 else None

"""The rows of the table working_set: one a session, and one for each turn that waits to be observed.

The observer is their only writer. A waiting turn's row is `<session key>/<n>`, written before the session's row that
counts it, deleted after the outcome that observed it is durable.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from ...schemas import ids
from ...schemas.base import Instant
from ...schemas.observations import Emotion, Observation
from ...schemas.outcomes import Outcome
from ...schemas.turns import Owner, Role
from ...schemas.working_set import WorkingSet
from ...streams.engine.handler import Rows
from ...streams.log.port import Position, Record
from ..common.seen_ids import SeenIds
from ..common.stored_row import RowPart, StoredRow

REFUSED_KEPT = 1_000
PARSED_BYTES = 2 * 1024 * 1024
"""Of rows, as they are stored, that are remembered parsed. As objects they take four times as much, so a number of
sessions would not do: a thousand long ones are 40 MB, and take twenty minutes to come together."""


class RecentMessage(RowPart):
    """An earlier message, shown to the model as context."""

    role: Role
    text: str


class EntryOrigin(RowPart):
    """What a working entry does not tell of the observation that it stands for, and an episode of it has to."""

    observation_id: str
    turn_id: str
    occurred_at: Instant
    owner: Owner | None = None
    """None: the session's user."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    emotion: Emotion | None = None
    source_role: Role
    evidence: str

    @classmethod
    def of(
        cls, observation: Observation, *, turn_id: str, occurred_at: datetime, owner: Owner, user_id: str
    ) -> EntryOrigin:
        return cls(
            observation_id=observation.observation_id,
            turn_id=turn_id,
            occurred_at=occurred_at,
            owner=None if owner == Owner(scope="user", id=user_id) else owner,
            valid_from=observation.valid_from,
            valid_to=observation.valid_to,
            emotion=observation.emotion,
            source_role=observation.source_role,
            evidence=observation.evidence,
        )

    @model_serializer(mode="wrap")
    def _without_none(self, whole: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """There are seven of them in every session's row."""
        return {name: value for name, value in whole(self).items() if value is not None}


class SessionRow(StoredRow):
    """All that the observer knows of a session."""

    turns: Annotated[int, Field(ge=0)] = 0
    """Turns observed: the last turn number."""
    working: WorkingSet = WorkingSet()
    origins: tuple[EntryOrigin, ...] = ()
    """Of the working entries. None of those that an earlier version put there, or a working set that was alone."""
    recent: tuple[RecentMessage, ...] = ()
    seen: SeenIds = SeenIds()
    """The last 1 000 turn ids, waiting ones too; without those that became dead letters."""
    commands: SeenIds = SeenIds()
    refused: tuple[str, ...] = ()
    """Which records became dead letters, `<hash of the id>@<offset>`: put back they have another offset."""
    waiting_from: Annotated[int, Field(ge=0)] = 0
    waiting_next: Annotated[int, Field(ge=0)] = 0
    """Waiting turns are the rows waiting_from … waiting_next - 1."""
    waiting_tokens: Annotated[int, Field(ge=0)] = 0
    """What a prompt would show of them."""
    waiting_ends: bool = False
    """One of them ends the session."""
    waiting_last: str = ""
    """The turn id of the last one."""
    last: Outcome | None = None

    @property
    def waiting(self) -> int:
        return self.waiting_next - self.waiting_from

    def without_waiting(self, turns: int, *, tokens: int) -> SessionRow:
        """When so many waiting turns, the oldest, no longer wait."""
        waiting_from = self.waiting_from + turns
        some_wait = waiting_from < self.waiting_next
        return self.model_copy(
            update={
                "waiting_from": waiting_from,
                # never below 0: under another policy than then, another part of a turn is shown
                "waiting_tokens": max(0, self.waiting_tokens - tokens) if some_wait else 0,
                "waiting_ends": self.waiting_ends and some_wait,
            }
        )


def refused_mark(turn_id: str, offset: int) -> str:
    return f"{ids.short_hash(turn_id)}@{offset}"


class WaitingTurn(StoredRow):
    """The raw record of a turn that waits, with its coordinates."""

    turn_id: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    deferred_at: datetime

    @classmethod
    def of(cls, record: Record, *, turn_id: str, deferred_at: datetime) -> WaitingTurn:
        position = record.position
        return cls(
            turn_id=turn_id,
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


def waiting_key(session_key: str, n: int) -> str:
    return f"{session_key}/{n}"


def session_of_waiting_key(key: str) -> str | None:
    """The session key of a waiting turn's row; None for any other row (a session key has three parts)."""
    return key.rpartition("/")[0] if key.count("/") == 3 else None


class Sessions:
    """The sessions' rows, parsed once: an event looks at its session several times, and a row has tens of kilobytes.

    What is remembered is only used while the table holds the very bytes that it was parsed from.
    """

    def __init__(self, *, kept_bytes: int = PARSED_BYTES) -> None:
        self._room = kept_bytes
        self._parsed: OrderedDict[str, tuple[bytes, SessionRow]] = OrderedDict()

    def of(self, rows: Rows, key: str) -> SessionRow:
        """As the table has it; a session that is not there yet is an empty one."""
        return self.parsed(key, rows.row(key))

    def parsed(self, key: str, raw: bytes | None) -> SessionRow:
        """The same of a row that was read already."""
        if raw is None:
            return SessionRow()
        known = self._parsed.get(key)
        if known is not None and known[0] == raw:
            return known[1]
        session = SessionRow.read(raw)
        self.keep(key, raw, session)
        return session

    def keep(self, key: str, raw: bytes, session: SessionRow) -> None:
        """The row that is on its way into the table."""
        before, _ = self._parsed.pop(key, (b"", session))
        self._parsed[key] = (raw, session)
        self._room += len(before) - len(raw)
        while self._room < 0:
            _, (oldest, _) = self._parsed.popitem(last=False)
            self._room += len(oldest)

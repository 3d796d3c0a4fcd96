"""Rows of the table working_set: one per session, and one per waiting turn.

Only the observer writes this table. A waiting turn's row has the key `<session key>/<n>`. The row is written before the
session's row, which counts the waiting turns. It is deleted after the outcome with the turn's observations is durable.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from ...schemas import ids
from ...schemas.base import Instant
from ...schemas.blocks import MemoryBlock, NamedRecord
from ...schemas.observations import Emotion, Observation
from ...schemas.row_keys import INDEX, index_key
from ...schemas.turn_number import RowEpoch
from ...schemas.turns import TURN_MAX_BYTES, Owner, Role
from ...schemas.working_set import WorkingSet
from ...streams.engine.decision import Rows
from ...streams.log.port import Position, Record
from ..common.commanded_row import CommandedRow
from ..common.handled_until import HandledUntil
from ..common.seen_ids import SeenIds
from ..common.session_ends import ENDS, TRIMS, timed_kind
from ..common.stored_row import EPOCH_VERSION, RowPart, StoredRow
from ..common.turn_routing import TurnReading

WAITS: Final = "waits"
"""Index of sessions with waiting turns."""
REFUSED_KEPT = 1_000
WAITING_MAX_BYTES = 4 * TURN_MAX_BYTES
"""Maximum size in bytes of a waiting turn's value. A placeholder may be longer than the secret that it replaces."""
PARSED_BYTES = 2 * 1024 * 1024
"""Maximum total size of the cached rows, in stored bytes. Parsed objects take four times as much memory. The limit is
not a number of rows, because a thousand long sessions have 40 MB."""


class RecentMessage(RowPart):
    """An earlier message that the model sees as context."""

    role: Role
    text: str
    name: Annotated[str | None, Field(exclude_if=lambda name: name is None)] = None
    """The speaker's name as shown in prompts."""


class EntryOrigin(RowPart):
    """Fields of a working entry's observation that an episode needs and that the entry lacks."""

    observation_id: str
    turn_id: str
    occurred_at: Instant
    owner: Owner | None = None
    """The owner, or None for the session's user."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    emotion: Emotion | None = None
    source_role: Role
    evidence: str
    speaker: str | None = None
    """The observation's subject, if it is a speaker other than the user."""

    @classmethod
    def of(
        cls,
        observation: Observation,
        *,
        turn_id: str,
        occurred_at: datetime,
        owner: Owner,
        user_id: str,
        speaker: str | None = None,
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
            speaker=speaker,
        )

    @model_serializer(mode="wrap")
    def _without_none(self, whole: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Leave out None values, because every session's row has up to seven origins."""
        return {name: value for name, value in whole(self).items() if value is not None}


class SessionRow(CommandedRow):
    """The state of one session."""

    turns: Annotated[int, Field(ge=0)] = 0
    """Number of observed turns in the epoch, equal to the last turn number."""
    epoch: RowEpoch = 0
    """The epoch of the turn numbers (schemas/session_epochs.py)."""
    last_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """Time of the last write in seconds since 1970; 0 in a row of an earlier version."""
    indexed_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """The row's time in the index of expiring sessions."""
    trims_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """The row's time in the index of rows with an outcome; 0 for a trimmed row or a row of an earlier version."""
    working: WorkingSet = WorkingSet()
    origins: tuple[EntryOrigin, ...] = ()
    """Origins of the working entries. Entries of an earlier version or a working-only deployment have no origin."""
    recent: tuple[RecentMessage, ...] = ()
    owner: Owner | None = None
    """The owner of the last observed turn, or None for the session's user."""
    said_until: Annotated[Instant | None, Field(exclude_if=operator.not_)] = None
    """The latest time of an observed turn. A turn without its own time gets no earlier time."""
    blocks: tuple[MemoryBlock, ...] = ()
    attached: tuple[NamedRecord, ...] = ()
    """Blocks of owners that are in the session's context."""
    procedures: tuple[NamedRecord, ...] = ()
    """Active procedures of the session."""
    seen: SeenIds = SeenIds()
    """The last 1 000 turn ids, including waiting turns and excluding dead letters."""
    retracted: Annotated[SeenIds, Field(exclude_if=operator.not_)] = SeenIds()
    """The last 1 000 turns that were taken back. They have no effect, also if they arrive later."""
    erased: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True when the session was erased. Its turns and edits have no effect, also if they arrive later."""
    turns_until: Annotated[HandledUntil, Field(exclude_if=operator.not_)] = HandledUntil()
    """Marks that recognise redelivered turns, including refused and waiting turns, after `seen` dropped their ids."""
    refused: tuple[str, ...] = ()
    """Records that became dead letters, as `<hash of the id>@<offset>`. A redriven record has a new offset."""
    waiting_from: Annotated[int, Field(ge=0)] = 0
    waiting_next: Annotated[int, Field(ge=0)] = 0
    """The waiting turns are the rows `waiting_from` to `waiting_next - 1`."""
    waiting_tokens: Annotated[int, Field(ge=0)] = 0
    """Estimated number of prompt tokens of the waiting turns."""
    waiting_ends: bool = False
    """True when a waiting turn ends the session."""
    waiting_last: str = ""
    """The turn id of the last waiting turn."""
    timeouts: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """Number of calls about the oldest unobserved turn that ended without an answer in time (timeouts.py)."""

    @property
    def waiting(self) -> int:
        return self.waiting_next - self.waiting_from

    def index_kinds(self) -> tuple[str, ...]:
        waits = (WAITS,) if self.waiting else ()
        times = {ENDS: self.indexed_at, TRIMS: self.trims_at}
        return (*waits, *(timed_kind(name, at) for name, at in times.items() if at))

    def written_at(self, at: int, *, indexed: bool) -> SessionRow:
        """Return the row with the write time `at` in seconds. `indexed`: the expiry index also gets this time."""
        indexed_at = at if indexed else self.indexed_at
        return self.model_copy(update={"last_at": at, "indexed_at": indexed_at, "trims_at": self.trims_at or at})

    @property
    def has_ended(self) -> bool:
        """True when the session has ended and the row only has what stays for ever."""
        return self.stays and not self.last_at

    @property
    def stays(self) -> bool:
        """True when the row must not be deleted, because turns of the session were taken back."""
        return self.erased or bool(self.retracted)

    def remembering_retractions(self, epoch: int) -> SessionRow:
        """Return the row of an ended session: what was taken back, and the epoch of its next turns."""
        version = EPOCH_VERSION if epoch else self.row_version
        return SessionRow(
            row_version=version, epoch=epoch, retracted=self.retracted, erased=self.erased, indexed=self.indexed
        )

    def without_content(self) -> SessionRow:
        """Return the row of an erased session: the marker, and what recognises handled events and commands."""
        kept = ("row_version", "turns", "epoch", "last_at", "indexed_at", "trims_at", "indexed")
        handled = ("commands", "commands_until", "turns_until")
        return SessionRow(erased=True, **{name: getattr(self, name) for name in (*kept, *handled)})

    def trimmed(self) -> SessionRow:
        """Return the row without its outcome, whose effects are all applied.

        The next scan deletes the index row for trimming.
        """
        row = self.model_copy(update={"last": None, "trims_at": 0})
        return row.model_copy(update={"indexed": row.index_kinds()})

    def without_waiting(self, turns: int, *, tokens: int) -> SessionRow:
        """Return the row without its oldest waiting turns. `turns`: number of removed turns.

        `tokens`: sum of their tokens.
        """
        waiting_from = self.waiting_from + turns
        some_wait = waiting_from < self.waiting_next
        return self.model_copy(
            update={
                "waiting_from": waiting_from,
                # never below 0: after a policy change the token count of a turn differs
                "waiting_tokens": max(0, self.waiting_tokens - tokens) if some_wait else 0,
                "waiting_ends": self.waiting_ends and some_wait,
            }
        )


def refused_mark(turn_id: str, offset: int) -> str:
    return f"{ids.short_hash(turn_id)}@{offset}"


class WaitingTurn(StoredRow):
    """The record of a waiting turn with its coordinates. The record is unchanged except that secrets are masked."""

    turn_id: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    deferred_at: datetime
    reading: Annotated[TurnReading | None, Field(exclude_if=operator.not_)] = None
    """The reading of the turn, or None in a row of an earlier version."""

    @classmethod
    def of(cls, record: Record, *, turn_id: str, deferred_at: datetime, reading: TurnReading) -> WaitingTurn:
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
            reading=reading,
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


def waiting_keys(session: SessionRow, session_key: str) -> tuple[str, ...]:
    """Return the keys of the rows of the session's waiting turns."""
    return tuple(waiting_key(session_key, n) for n in range(session.waiting_from, session.waiting_next))


def session_of_waiting_key(key: str) -> str | None:
    """Return the session key of a waiting turn's row key, or None for other keys. A session key has three parts."""
    return key.rpartition("/")[0] if key.count("/") == 3 and not key.startswith(INDEX) else None


def waiting_index(key: str, raw: bytes) -> tuple[str, ...]:
    """Return the index row that a row of an earlier version needs. For a waiting turn, it names the turn's session."""
    session = session_of_waiting_key(key)
    return () if session is None else (index_key(WAITS, session),)


def waiting_turns(sessions: Mapping[bytes, bytes]) -> int:
    """Return the number of waiting turns of these session rows."""
    return sum(SessionRow.read(raw).waiting for raw in sessions.values())


class Sessions:
    """Cache of parsed session rows. An event reads its row several times, and a row has tens of kilobytes.

    A cached row is used only while the bytes in the table are unchanged.
    """

    def __init__(self, *, kept_bytes: int = PARSED_BYTES) -> None:
        self._room = kept_bytes
        self._parsed: OrderedDict[str, tuple[bytes, SessionRow]] = OrderedDict()

    def of(self, rows: Rows, key: str) -> SessionRow:
        """Return the session as stored in the table, or an empty session when it is unknown."""
        return self.parsed(key, rows.row(key))

    def parsed(self, key: str, raw: bytes | None) -> SessionRow:
        """Return the session of a row that was already read."""
        if raw is None:
            return SessionRow()
        known = self._parsed.get(key)
        if known is not None and known[0] == raw:
            return known[1]
        session = SessionRow.read(raw)
        self.keep(key, raw, session)
        return session

    def keep(self, key: str, raw: bytes, session: SessionRow) -> None:
        """Cache a row that is about to be written."""
        before, _ = self._parsed.pop(key, (b"", session))
        self._parsed[key] = (raw, session)
        self._room += len(before) - len(raw)
        while self._room < 0:
            _, (oldest, _) = self._parsed.popitem(last=False)
            self._room += len(oldest)

"""The rows of the table working_set: one per session, and one per turn that waits to be observed.

The observer is their only writer. A waiting turn's row has the key `<session key>/<n>`. It is written before the
session's row that counts it, and deleted after the outcome that observed it is durable.
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
from ...streams.engine.handler import Rows
from ...streams.log.port import Position, Record
from ..common.commanded_row import CommandedRow
from ..common.handled_until import HandledUntil
from ..common.seen_ids import SeenIds
from ..common.session_ends import ENDS, TRIMS, timed_kind
from ..common.stored_row import RowPart, StoredRow
from ..common.turn_routing import TurnReading

WAITS: Final = "waits"
"""The index of sessions with waiting turns."""
REFUSED_KEPT = 1_000
WAITING_MAX_BYTES = 4 * TURN_MAX_BYTES
"""Bytes of a waiting turn's value. The names of masked spans may be longer than the spans."""
PARSED_BYTES = 2 * 1024 * 1024
"""Stored bytes of the rows that are kept parsed. Objects take four times as much. The limit counts bytes because a
thousand long sessions are 40 MB."""


class RecentMessage(RowPart):
    """An earlier message, shown to the model as context."""

    role: Role
    text: str
    name: Annotated[str | None, Field(exclude_if=lambda name: name is None)] = None
    """The speaker's name as prompts show it."""


class EntryOrigin(RowPart):
    """Fields of a working entry's observation that an episode needs and the entry does not have."""

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
    speaker: str | None = None
    """The subject, where it is one who speaks and not the user."""

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
        """Leave out None: every session's row has up to seven origins."""
        return {name: value for name, value in whole(self).items() if value is not None}


class SessionRow(CommandedRow):
    """Everything that the observer knows of a session."""

    turns: Annotated[int, Field(ge=0)] = 0
    """Number of observed turns of the epoch, which is the last turn number."""
    epoch: RowEpoch = 0
    """Of the turn numbers (schemas/session_epochs.py)."""
    last_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """When the row was last written, in seconds. 0: an earlier version wrote it."""
    indexed_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """The time in the index of sessions that may end."""
    trims_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """The time in the index of rows with an outcome. 0: it was trimmed, or an earlier version wrote it."""
    working: WorkingSet = WorkingSet()
    origins: tuple[EntryOrigin, ...] = ()
    """Origins of the working entries. Entries of an earlier version or of a working-only deployment have none."""
    recent: tuple[RecentMessage, ...] = ()
    owner: Owner | None = None
    """The owner of the last observed turn. None: the session's user."""
    said_until: Annotated[Instant | None, Field(exclude_if=operator.not_)] = None
    """The latest time of an observed turn. A turn without a time of its own counts as said no earlier."""
    blocks: tuple[MemoryBlock, ...] = ()
    attached: tuple[NamedRecord, ...] = ()
    """Blocks of owners that stand in the session's context."""
    procedures: tuple[NamedRecord, ...] = ()
    """Procedures that are active in the session."""
    seen: SeenIds = SeenIds()
    """The last 1 000 turn ids, waiting turns included, dead letters excluded."""
    turns_until: Annotated[HandledUntil, Field(exclude_if=operator.not_)] = HandledUntil()
    """Below it redelivered turns are recognised whose ids are forgotten. Refused and waiting turns count."""
    refused: tuple[str, ...] = ()
    """Records that became dead letters, as `<hash of the id>@<offset>`. A letter that is put back has another
    offset."""
    waiting_from: Annotated[int, Field(ge=0)] = 0
    waiting_next: Annotated[int, Field(ge=0)] = 0
    """The waiting turns are the rows waiting_from to waiting_next - 1."""
    waiting_tokens: Annotated[int, Field(ge=0)] = 0
    """Estimate of the tokens that a prompt shows of them."""
    waiting_ends: bool = False
    """One of them ends the session."""
    waiting_last: str = ""
    """The turn id of the last waiting turn."""

    @property
    def waiting(self) -> int:
        return self.waiting_next - self.waiting_from

    def index_kinds(self) -> tuple[str, ...]:
        waits = (WAITS,) if self.waiting else ()
        times = {ENDS: self.indexed_at, TRIMS: self.trims_at}
        return (*waits, *(timed_kind(name, at) for name, at in times.items() if at))

    def written_at(self, at: int, *, indexed: bool) -> SessionRow:
        """Return the row as it is written at `at` (seconds). `indexed`: the index of ends gets this time, too."""
        indexed_at = at if indexed else self.indexed_at
        return self.model_copy(update={"last_at": at, "indexed_at": indexed_at, "trims_at": self.trims_at or at})

    def trimmed(self) -> SessionRow:
        """Return the row without its outcome, which has all of its effects. Its index row goes by the next look."""
        row = self.model_copy(update={"last": None, "trims_at": 0})
        return row.model_copy(update={"indexed": row.index_kinds()})

    def without_waiting(self, turns: int, *, tokens: int) -> SessionRow:
        """Return the row without its oldest waiting turns. `turns`: how many; `tokens`: theirs."""
        waiting_from = self.waiting_from + turns
        some_wait = waiting_from < self.waiting_next
        return self.model_copy(
            update={
                "waiting_from": waiting_from,
                # never below 0: a changed policy shows another part of a turn
                "waiting_tokens": max(0, self.waiting_tokens - tokens) if some_wait else 0,
                "waiting_ends": self.waiting_ends and some_wait,
            }
        )


def refused_mark(turn_id: str, offset: int) -> str:
    return f"{ids.short_hash(turn_id)}@{offset}"


class WaitingTurn(StoredRow):
    """The record of a waiting turn with its coordinates: as it came, but for what is masked."""

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
    """None: an earlier version wrote it."""

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


def session_of_waiting_key(key: str) -> str | None:
    """Return the session key of a waiting turn's row key; None for other row keys (a session key has three parts)."""
    return key.rpartition("/")[0] if key.count("/") == 3 and not key.startswith(INDEX) else None


def waiting_index(key: str, raw: bytes) -> tuple[str, ...]:
    """Return the index row that a row of an earlier version needs: one for the session of each waiting turn."""
    session = session_of_waiting_key(key)
    return () if session is None else (index_key(WAITS, session),)


def waiting_turns(sessions: Mapping[bytes, bytes]) -> int:
    """Count the turns that wait in these sessions' rows."""
    return sum(SessionRow.read(raw).waiting for raw in sessions.values())


class Sessions:
    """A cache of parsed session rows: an event reads its row several times, and a row has tens of kilobytes.

    A cached row is used only while the table holds the same bytes that it was parsed from.
    """

    def __init__(self, *, kept_bytes: int = PARSED_BYTES) -> None:
        self._room = kept_bytes
        self._parsed: OrderedDict[str, tuple[bytes, SessionRow]] = OrderedDict()

    def of(self, rows: Rows, key: str) -> SessionRow:
        """Return the session as the table has it; an unknown session is empty."""
        return self.parsed(key, rows.row(key))

    def parsed(self, key: str, raw: bytes | None) -> SessionRow:
        """Parse a row that was read already."""
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

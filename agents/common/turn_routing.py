"""Routing of a turn: its owner, its time, and whether it is on the partition of its session key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from ...memory.policies import RoutingPolicy
from ...memory.secrets.turns import ProtectedTurn
from ...memory.turn_retention import AHEAD, EARLIEST
from ...schemas.cloudevents import REKEYED_HEADER
from ...schemas.errors import Poison
from ...schemas.turns import TURN_MAX_BYTES, Owner, Turn, TurnMessage
from ...streams.engine.codec import decode_turn_value, is_keyed_by
from ...streams.engine.redrive import redriven_letter
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Record
from .stored_row import RowPart


class TurnReading(RowPart):
    """How a turn was read from its record. A waiting turn keeps it."""

    follows_log: bool = False
    """The turn has no time of its own, so its time is not before that of the turn before it in its session."""
    clock_ahead: bool = False
    """The turn's own time lay too far after its record's. It has the record's time instead."""
    undated: bool = False
    """The record's timestamp is no time at which it can have been written. The turn has the time of reading."""
    repaired_characters: int = 0


@dataclass(frozen=True, slots=True)
class RoutedTurn:
    """A decoded turn, and the owner of the facts that it gives."""

    turn: Turn
    owner: Owner
    reading: TurnReading


def decode_turn(
    record: Record, routing: RoutingPolicy, *, now: datetime, max_bytes: int = TURN_MAX_BYTES
) -> RoutedTurn:
    """Decode a turn. One that is dated too far ahead counts as said when its record was written, and one without a
    usable time when it was read, which is `now`. Raises Poison."""
    read = decode_turn_value(record, max_bytes=max_bytes)
    try:
        owner = read.turn.owner(default_scope=routing.scope)
    except ValueError as error:
        raise Poison("invalid", str(error)) from None
    turn, written = read.turn, written_at(record, now=now)
    own = turn.occurred_at or _latest(turn)
    ahead = own is not None and written is not None and _is_ahead(own, written, routing)
    undated = own is None and written is None
    reading = TurnReading(
        # a letter that is put back was said before the turns that came since
        follows_log=(own is None or ahead) and redriven_letter(record) is None,
        clock_ahead=ahead,
        undated=undated,
        repaired_characters=read.repaired_characters,
    )
    if ahead or undated:
        turn = turn.model_copy(update={"occurred_at": now if undated else written})
    if written is not None:
        turn = _without_times_ahead(turn, written, routing)
    return RoutedTurn(turn, owner, reading)


def written_at(record: Record, *, now: datetime) -> datetime | None:
    """Return when a record was written. None: its timestamp is missing (-1 or 0), in seconds, or of a clock that is
    years behind or a day ahead."""
    written = record.written_at
    return written if written is not None and EARLIEST <= written <= now + AHEAD else None


def is_misplaced(record: Record, key: str, *, partitions: int) -> bool:
    """Tell whether the record has another key, or is on another partition than murmur2(key) mod n."""
    return not is_keyed_by(record, key) or is_on_other_partition(record, key, partitions=partitions)


def is_on_other_partition(record: Record, key: str, *, partitions: int) -> bool:
    """Tell whether the record is on another partition than murmur2(key) mod n."""
    return partition_for(key.encode(), partitions) != record.position.partition


def check_key(record: Record, key: str) -> None:
    """Check that a record has the key that its value implies. Raises Poison.

    Otherwise whoever may write under one key could change the memory that another key names. A turn is exempt: its
    key only places it, and the observer puts it right.
    """
    if record.key != key.encode():
        raise Poison("invalid", "its key names another owner or session than its value: send it under the key of both")


def was_rekeyed(record: Record) -> bool:
    """Tell whether the observer has sent the turn again to the partition of its session key."""
    return any(name == REKEYED_HEADER for name, _ in record.headers)


def _is_ahead(at: datetime, written: datetime, routing: RoutingPolicy) -> bool:
    return (at - written).total_seconds() > routing.clock_ahead


def _without_times_ahead(turn: Turn, written: datetime, routing: RoutingPolicy) -> Turn:
    """Return the turn without times of messages that lie too far ahead: these messages have the turn's time."""

    def is_ahead(message: TurnMessage) -> bool:
        return message.created_at is not None and _is_ahead(message.created_at, written, routing)

    if not any(map(is_ahead, turn.messages)):
        return turn
    kept = (each.model_copy(update={"created_at": None}) if is_ahead(each) else each for each in turn.messages)
    return turn.model_copy(update={"messages": tuple(kept)})


def message_time(message: TurnMessage, turn_at: datetime) -> datetime:
    """Return the message's own time, else its turn's."""
    return message.created_at or turn_at


def _latest(turn: Turn) -> datetime | None:
    """Return the latest time of a message of the turn."""
    return max((each.created_at for each in turn.messages if each.created_at is not None), default=None)


def occurred_at(turn: Turn, record: Record) -> datetime:
    """Return the time of a turn that `decode_turn` gave: its own, else the latest of its messages, else the record's
    timestamp."""
    at = turn.occurred_at or _latest(turn) or record.written_at
    assert at is not None  # a turn without a usable time has that of reading
    return at


def value_hash(record: Record) -> str:
    """Return the SHA-256 of a record's value."""
    return hashlib.sha256(record.value or b"").hexdigest()


def turn_hash(turn: ProtectedTurn, record: Record) -> str:
    """Return the SHA-256 by which a turn is known again: of its value, or of the turn without its secrets.

    From the hash of the value and the rest of the turn a masked PIN could be found by trying.
    """
    return hashlib.sha256(turn.turn.in_utc().to_bytes()).hexdigest() if turn.changed else value_hash(record)

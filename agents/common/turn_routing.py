"""Routing of a turn: its owner, its time, and the check that it is on the partition of its session key."""

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
from .erased_events import Happening
from .stored_row import RowPart


class TurnReading(RowPart):
    """Results of reading a turn from its record: the source of its time, and the repairs of its text.

    A stored waiting turn keeps its reading.
    """

    follows_log: bool = False
    """True when the turn has no time of its own. Its time is then never earlier than the time of the session's previous
    turn."""
    clock_ahead: bool = False
    """True when the turn's own time was too far after the record's time. The record's time replaces it."""
    undated: bool = False
    """True when neither the turn nor the record has a usable time. The turn then has the time of reading."""
    repaired_characters: int = 0


@dataclass(frozen=True, slots=True)
class RoutedTurn:
    """A decoded turn, and the owner of the facts derived from it."""

    turn: Turn
    owner: Owner
    reading: TurnReading


def decode_turn(
    record: Record, routing: RoutingPolicy, *, now: datetime, max_bytes: int = TURN_MAX_BYTES
) -> RoutedTurn:
    """Decode a turn. Raises Poison.

    A turn dated too far ahead takes the time of its record. A turn without any usable time takes `now`.
    """
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
        # a redriven dead letter is older than the turns stored before it
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
    """Return the time at which a record was written, or None when its timestamp is unusable.

    A timestamp is unusable when it is missing (-1 or 0), in seconds, years behind, or a day ahead of `now`.
    """
    written = record.written_at
    return written if written is not None and EARLIEST <= written <= now + AHEAD else None


def is_misplaced(record: Record, key: str, *, partitions: int) -> bool:
    """Return whether the record has another key, or is on another partition than murmur2(key) mod n."""
    return not is_keyed_by(record, key) or is_on_other_partition(record, key, partitions=partitions)


def is_on_other_partition(record: Record, key: str, *, partitions: int) -> bool:
    """Return whether the record is on another partition than murmur2(key) mod n."""
    return partition_for(key.encode(), partitions) != record.position.partition


def check_key(record: Record, key: str) -> None:
    """Check that a record has the key that follows from its value. Raises Poison.

    Otherwise a producer that may write under one key could change the memory of another key. Turns are not checked
    here: their key only selects the partition, and the observer sends a turn with a wrong key again with the right key.
    """
    if record.key != key.encode():
        raise Poison("invalid", "its key names another owner or session than its value: use the key of the value")


def was_rekeyed(record: Record) -> bool:
    """Return whether the observer has sent the turn again to the partition of its session key."""
    return any(name == REKEYED_HEADER for name, _ in record.headers)


def _is_ahead(at: datetime, written: datetime, routing: RoutingPolicy) -> bool:
    return (at - written).total_seconds() > routing.clock_ahead


def _without_times_ahead(turn: Turn, written: datetime, routing: RoutingPolicy) -> Turn:
    """Return the turn without message times that are too far ahead. These messages take the turn's time."""

    def is_ahead(message: TurnMessage) -> bool:
        return message.created_at is not None and _is_ahead(message.created_at, written, routing)

    if not any(map(is_ahead, turn.messages)):
        return turn
    kept = (each.model_copy(update={"created_at": None}) if is_ahead(each) else each for each in turn.messages)
    return turn.model_copy(update={"messages": tuple(kept)})


def message_time(message: TurnMessage, turn_at: datetime) -> datetime:
    """Return the message's own time, or else the turn's time."""
    return message.created_at or turn_at


def _latest(turn: Turn) -> datetime | None:
    """Return the latest message time of the turn, if any."""
    return max((each.created_at for each in turn.messages if each.created_at is not None), default=None)


def occurred_at(turn: Turn, record: Record) -> datetime:
    """Return the time of a decoded turn: its own time, else the latest message time, else the record's time."""
    at = turn.occurred_at or _latest(turn) or record.written_at
    assert at is not None  # `decode_turn` gives a turn without a usable time the time of reading
    return at


def happening_of_turn(turn: Turn) -> Happening:
    """Return the user and the time of a turn, for the check of erased users."""
    return Happening(turn.tenant_id, (turn.user_id,), turn.occurred_at or _latest(turn))


def value_hash(record: Record) -> str:
    """Return the SHA-256 of a record's value."""
    return hashlib.sha256(record.value or b"").hexdigest()


def turn_hash(turn: ProtectedTurn, record: Record) -> str:
    """Return the SHA-256 that identifies a turn's content.

    It is the hash of the record's value, or of the masked turn when the turn contained secrets.

    The hash of the original value would let an attacker who has the masked turn find a masked PIN by brute force.
    """
    return hashlib.sha256(turn.turn.in_utc().to_bytes()).hexdigest() if turn.changed else value_hash(record)

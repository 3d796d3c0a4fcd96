"""Routing of a turn: its owner, its time, and whether it is on the partition of its session key."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from ...memory.secrets.turns import ProtectedTurn
from ...schemas.cloudevents import REKEYED_HEADER
from ...schemas.errors import Poison
from ...schemas.turns import TURN_MAX_BYTES, Owner, Scope, Turn
from ...streams.engine.codec import decode
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Record


def decode_turn(record: Record, *, default_scope: Scope, max_bytes: int = TURN_MAX_BYTES) -> tuple[Turn, Owner]:
    """Decode a turn; return it with the owner of the facts that it gives. Raises Poison."""
    turn = decode(record, Turn, max_bytes=max_bytes)
    try:
        occurred_at(turn, record)
        return turn, turn.owner(default_scope=default_scope)
    except ValueError as error:
        raise Poison("invalid", str(error)) from None


def is_misplaced(record: Record, key: str, *, partitions: int) -> bool:
    """Tell whether the record is on another partition than murmur2(key) mod n."""
    return partition_for(key.encode(), partitions) != record.position.partition


def was_rekeyed(record: Record) -> bool:
    """Tell whether the observer has sent the turn again to the partition of its session key."""
    return any(name == REKEYED_HEADER for name, _ in record.headers)


def occurred_at(turn: Turn, record: Record) -> datetime:
    """Return the turn's own time, else the record's timestamp.

    Raises ValueError when the timestamp is no time: a producer can set any number.
    """
    if turn.occurred_at is not None:
        return turn.occurred_at
    try:
        return datetime.fromtimestamp(record.timestamp / 1000, tz=UTC)
    except (OverflowError, OSError, ValueError):
        raise ValueError("occurred_at: absent, and the record's timestamp is no time either") from None


def value_hash(record: Record) -> str:
    """Return the SHA-256 of a record's value."""
    return hashlib.sha256(record.value or b"").hexdigest()


def turn_hash(turn: ProtectedTurn, record: Record) -> str:
    """Return the SHA-256 by which a turn is known again: of its value, or of the turn without its secrets.

    From the hash of the value and the rest of the turn a masked PIN could be found by trying.
    """
    return hashlib.sha256(turn.turn.to_bytes()).hexdigest() if turn.changed else value_hash(record)

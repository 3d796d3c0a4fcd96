"""Turns of an export on memory.turns: which records have them, and the decoded turn."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.cloudevents import RESTORED_HEADER
from ...schemas.errors import Poison
from ...schemas.restore import TurnToRestore
from ...streams.engine.codec import decode
from ...streams.log.port import Record
from .erased_events import Happening
from .turn_routing import is_on_other_partition


@dataclass(frozen=True, slots=True)
class RestoredTurn:
    """A turn of an export."""

    turn: TurnToRestore

    @property
    def session_key(self) -> str:
        return self.turn.session_key

    @property
    def event_id(self) -> str:
        return self.turn.turn_id

    @property
    def happening(self) -> Happening:
        return Happening(self.turn.tenant_id, (self.turn.user_id,), self.turn.exported_at)


def is_restored_turn(record: Record) -> bool:
    return any(name == RESTORED_HEADER for name, _ in record.headers)


def decode_restored_turn(record: Record, *, partitions: int) -> RestoredTurn:
    """Decode a turn of an export. Raises Poison, also for a turn under another key than its session key or on another
    partition: the sender of an import knows both."""
    turn = decode(record, TurnToRestore)
    if record.key != turn.session_key.encode() or is_on_other_partition(
        record, turn.session_key, partitions=partitions
    ):
        raise Poison("invalid", "a restored turn is under another key or on another partition than its session's")
    return RestoredTurn(turn)

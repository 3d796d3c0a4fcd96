"""Events of the observer: a turn, or a command on a session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...memory.policies import RoutingPolicy
from ...memory.secrets.commands import protect_command
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.secrets.turns import ProtectedTurn, protect_turn
from ...schemas.cloudevents import REKEYED_HEADER
from ...schemas.commands import Command
from ...schemas.errors import Poison
from ...schemas.outcomes import OutRecord
from ...schemas.topics import COMMANDS_SESSION, TURNS
from ...schemas.turns import Owner, Turn
from ...streams.engine.codec import decode
from ...streams.engine.lane_events import RoutedEvent
from ...streams.log.port import Record
from ..common.erased_events import Happening, happening_of_command
from ..common.restored_turns import RestoredTurn, decode_restored_turn, is_restored_turn
from ..common.turn_routing import TurnReading, check_key, decode_turn, happening_of_turn, was_rekeyed

RESENT_MAX_BYTES = 1_000_000
"""Maximum size in bytes of a record that is sent again: key, value and headers. A topic accepts 1 048 588 bytes by
default, including the batch header. A broker that refuses a record as too large breaks the producer's sequence of
records, so the observer does not send a larger record."""


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """A turn with masked secrets, and its owner."""

    protected: ProtectedTurn
    owner: Owner
    session_key: str
    reading: TurnReading

    @property
    def turn(self) -> Turn:
        return self.protected.turn

    @property
    def event_id(self) -> str:
        return self.turn.turn_id

    @property
    def happening(self) -> Happening:
        return happening_of_turn(self.turn)


@dataclass(frozen=True, slots=True)
class SessionCommand:
    command: Command
    session_key: str

    @property
    def event_id(self) -> str:
        return self.command.command_id

    @property
    def happening(self) -> Happening:
        return happening_of_command(self.command)


SessionEvent = TurnEvent | SessionCommand | RestoredTurn


def route_event(
    record: Record, policy: RoutingPolicy, secrets: SecretFilter, *, now: datetime, partitions: int
) -> RoutedEvent[SessionEvent]:
    """Decode a record, mask its secrets and assign it to the lane of its session key. Raises Poison."""
    if record.position.topic == TURNS.name and is_restored_turn(record):
        restored = decode_restored_turn(record, partitions=partitions)
        return RoutedEvent(restored.session_key, restored)
    if record.position.topic == COMMANDS_SESSION.name:
        command = decode(record, Command)
        if command.session is None:
            raise Poison("invalid", "session: a command on memory.commands.session needs one")
        check_key(record, command.key)
        return RoutedEvent(command.key, SessionCommand(protect_command(command, secrets), command.key))
    routed = decode_turn(record, policy, now=now)
    key = routed.turn.session_key
    turn = protect_turn(routed.turn, secrets)
    return RoutedEvent(key, TurnEvent(turn, routed.owner, key, routed.reading))


def resent_record(event: TurnEvent | SessionCommand, record: Record) -> OutRecord:
    """Return the record that moves a misplaced turn to the partition of its session key.

    The value is unchanged and not masked, because the producer wrote it to the same topic. The timestamp and all other
    headers are kept. Raises Poison for a command, for a turn that was sent again before, and for a turn that is too
    large.
    """
    if isinstance(event, SessionCommand):
        raise Poison(
            "invalid",
            "its key is not its session key, or it is on another partition than murmur2 of the session key gives",
        )
    if was_rekeyed(record):
        raise Poison(
            "invalid",
            f"it was sent again with {REKEYED_HEADER}, but its key is not its session key, or it is on another "
            "partition than murmur2 of the session key gives: does every producer use the right partition count?",
        )
    resent = OutRecord(
        topic=TURNS.name,
        key=event.session_key.encode(),
        value=record.value,
        headers=(*record.headers, (REKEYED_HEADER, b"1")),
        timestamp=record.timestamp,
    )
    if resent.size > RESENT_MAX_BYTES:
        raise Poison(
            "oversized",
            f"it is on the wrong partition and too large to be sent again: key, value and headers have "
            f"{resent.size} bytes, the limit is {RESENT_MAX_BYTES}. Leave out headers, or set the key",
        )
    return resent

"""Routing of events by owner, for the reflector and consolidation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from ...memory.secrets.commands import protect_command
from ...memory.secrets.secret_filter import SecretFilter
from ...schemas.commands import Command
from ...schemas.errors import Poison
from ...schemas.topics import COMMANDS
from ...streams.engine.codec import decode
from ...streams.engine.lane_events import RoutedEvent
from ...streams.log.port import Record
from .erased_events import Happening, happening_of_command
from .turn_routing import check_key, is_on_other_partition


class OwnerEvent(Protocol):
    """An event of one owner."""

    @property
    def owner_key(self) -> str: ...


W = TypeVar("W", bound=OwnerEvent)


@dataclass(frozen=True, slots=True)
class OwnerCommand:
    """A command about one owner."""

    command: Command
    owner_key: str

    @property
    def event_id(self) -> str:
        return self.command.command_id

    @property
    def happening(self) -> Happening:
        return happening_of_command(self.command)


def decode_owner_command(record: Record, secrets: SecretFilter) -> OwnerCommand:
    """Decode a command from memory.commands and mask its secrets. Raises Poison."""
    command = protect_command(decode(record, Command), secrets)
    if command.owner is None:
        raise Poison("invalid", f"owner: a command on {COMMANDS.name} needs one")
    return OwnerCommand(command, command.key)


def route_to_owner(record: Record, work: W, *, partitions: int) -> RoutedEvent[W]:
    """Assign an event to the lane of its owner.

    Raises Poison when the record has another owner's key, or is not on its owner's partition. Otherwise two lanes or
    two workers would write the same owner's rows.
    """
    check_key(record, work.owner_key)
    if is_on_other_partition(record, work.owner_key, partitions=partitions):
        raise Poison("invalid", "it is on another partition than murmur2 of its owner key gives: key it by owner")
    return RoutedEvent(work.owner_key, work)

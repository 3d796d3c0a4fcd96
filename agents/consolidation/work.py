"""The events of consolidation, decoded: a reflected turn, a command, or a recall."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.commands import Command
from ...schemas.episodes import EpisodesRecorded
from ...schemas.errors import Poison
from ...schemas.recalled import RecallTold
from ...schemas.topics import COMMANDS, RECALLED
from ...streams.codec import decode
from ...streams.ports import Record
from ...streams.stage import Routed
from ..routing import is_misplaced


@dataclass(frozen=True, slots=True)
class TurnWork:
    recorded: EpisodesRecorded
    owner_key: str

    @property
    def id(self) -> str:
        return self.recorded.turn_id


@dataclass(frozen=True, slots=True)
class CommandWork:
    command: Command
    owner_key: str

    @property
    def id(self) -> str:
        return self.command.command_id


@dataclass(frozen=True, slots=True)
class RecallWork:
    told: RecallTold
    owner_key: str

    @property
    def id(self) -> str:
        return self.told.recall_id


Work = TurnWork | CommandWork | RecallWork


def routed(record: Record, *, partitions: int) -> Routed[Work]:
    """In the lane of its owner. Raises Poison."""
    work: Work
    if record.position.topic == COMMANDS.name:
        command = decode(record, Command)
        if command.owner is None:
            raise Poison("invalid", f"owner: a command on {COMMANDS.name} needs one")
        work = CommandWork(command, command.key)
    elif record.position.topic == RECALLED.name:
        told = decode(record, RecallTold)
        work = RecallWork(told, told.owner.key(told.tenant_id))
    else:
        recorded = decode(record, EpisodesRecorded)
        work = TurnWork(recorded, recorded.owner.key(recorded.tenant_id))
    if is_misplaced(record, work.owner_key, partitions=partitions):
        raise Poison("invalid", "it lies on another partition than murmur2 of its owner key says: key it by owner")
    return Routed(work.owner_key, work)

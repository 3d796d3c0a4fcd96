"""The events of consolidation, decoded: a reflected turn, a command, or a recall."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.episodes import EpisodesRecorded
from ...schemas.recall import RecallTold
from ...schemas.topics import COMMANDS, RECALLED
from ...streams.engine.codec import decode
from ...streams.engine.handler import Routed
from ...streams.log.port import Record
from ..common.owner_routing import CommandWork, in_lane_of_owner, owner_command


@dataclass(frozen=True, slots=True)
class TurnWork:
    recorded: EpisodesRecorded
    owner_key: str

    @property
    def id(self) -> str:
        return self.recorded.turn_id


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
        work = owner_command(record)
    elif record.position.topic == RECALLED.name:
        told = decode(record, RecallTold)
        work = RecallWork(told, told.owner.key(told.tenant_id))
    else:
        recorded = decode(record, EpisodesRecorded)
        work = TurnWork(recorded, recorded.owner.key(recorded.tenant_id))
    return in_lane_of_owner(record, work, partitions=partitions)

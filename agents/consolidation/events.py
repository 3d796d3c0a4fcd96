"""The events of consolidation, decoded: a reflected turn, a command, or a recall."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.episodes import EpisodesRecorded
from ...schemas.recall import RecallTold
from ...schemas.topics import COMMANDS, RECALLED
from ...streams.engine.codec import decode
from ...streams.engine.handler import RoutedEvent
from ...streams.log.port import Record
from ..common.owner_routing import OwnerCommand, in_lane_of_owner, owner_command


@dataclass(frozen=True, slots=True)
class ReflectedTurn:
    recorded: EpisodesRecorded
    owner_key: str

    @property
    def id(self) -> str:
        return self.recorded.turn_id


@dataclass(frozen=True, slots=True)
class RecallEvent:
    told: RecallTold
    owner_key: str

    @property
    def id(self) -> str:
        return self.told.recall_id


Work = ReflectedTurn | OwnerCommand | RecallEvent


def routed(record: Record, *, partitions: int) -> RoutedEvent[Work]:
    """In the lane of its owner. Raises Poison."""
    work: Work
    if record.position.topic == COMMANDS.name:
        work = owner_command(record)
    elif record.position.topic == RECALLED.name:
        told = decode(record, RecallTold)
        work = RecallEvent(told, told.owner.key(told.tenant_id))
    else:
        recorded = decode(record, EpisodesRecorded)
        work = ReflectedTurn(recorded, recorded.owner.key(recorded.tenant_id))
    return in_lane_of_owner(record, work, partitions=partitions)

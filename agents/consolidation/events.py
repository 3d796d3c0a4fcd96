"""Events of consolidation: a reflected turn, a command, or a recall."""

from __future__ import annotations

from dataclasses import dataclass

from ...memory.secrets.secret_filter import SecretFilter
from ...schemas import ids
from ...schemas.episodes import EpisodesRecorded
from ...schemas.recall import RecallReport
from ...schemas.topics import COMMANDS, RECALLED
from ...streams.engine.codec import decode
from ...streams.engine.lane_events import RoutedEvent
from ...streams.log.port import Record
from ..common.erased_events import Happening, users_of
from ..common.owner_routing import OwnerCommand, decode_owner_command, route_to_owner


@dataclass(frozen=True, slots=True)
class ReflectedTurn:
    """A turn whose observations the reflector has recorded."""

    recorded: EpisodesRecorded
    owner_key: str

    @property
    def event_id(self) -> str:
        return self.recorded.turn_id

    @property
    def session_key(self) -> str:
        return ids.session_key(self.recorded.tenant_id, self.recorded.user_id, self.recorded.session_id)

    @property
    def happening(self) -> Happening:
        told = self.recorded
        return Happening(told.tenant_id, users_of(told.owner, told.user_id), told.occurred_at)

    @property
    def run_id(self) -> str:
        """The id of the run, or of the janitor's visit, that this turn causes."""
        return ids.run_id(self.owner_key, ids.turn_cause(self.session_key, self.recorded.turn_id))


@dataclass(frozen=True, slots=True)
class RecallEvent:
    """A report of the records returned to a reader."""

    recall: RecallReport
    owner_key: str

    @property
    def event_id(self) -> str:
        return self.recall.recall_id

    @property
    def happening(self) -> Happening:
        return Happening(self.recall.tenant_id, users_of(self.recall.owner), self.recall.at)


ConsolidationEvent = ReflectedTurn | OwnerCommand | RecallEvent


def route_event(record: Record, *, partitions: int, secrets: SecretFilter) -> RoutedEvent[ConsolidationEvent]:
    """Decode an event and assign it to the lane of its owner. Raises Poison."""
    work: ConsolidationEvent
    if record.position.topic == COMMANDS.name:
        work = decode_owner_command(record, secrets)
    elif record.position.topic == RECALLED.name:
        recall = decode(record, RecallReport)
        work = RecallEvent(recall, recall.owner.key(recall.tenant_id))
    else:
        recorded = decode(record, EpisodesRecorded)
        work = ReflectedTurn(recorded, recorded.owner.key(recorded.tenant_id))
    return route_to_owner(record, work, partitions=partitions)

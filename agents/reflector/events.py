"""Events of the reflector: an observed turn, or a command."""

from __future__ import annotations

from dataclasses import dataclass

from ...memory.secrets.secret_filter import SecretFilter
from ...schemas import ids
from ...schemas.observations import Observed
from ...schemas.topics import COMMANDS
from ...streams.engine.codec import decode
from ...streams.engine.lane_events import RoutedEvent
from ...streams.log.port import Record
from ..common.erased_events import Happening, users_of
from ..common.owner_routing import OwnerCommand, decode_owner_command, route_to_owner
from ..common.protection import protect_observed


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    """A turn with its observations."""

    observed: Observed
    owner_key: str

    @property
    def event_id(self) -> str:
        return self.observed.turn_id

    @property
    def session_key(self) -> str:
        return ids.session_key(self.observed.tenant_id, self.observed.user_id, self.observed.session_id)

    @property
    def happening(self) -> Happening:
        said = self.observed
        return Happening(said.tenant_id, users_of(said.owner, said.user_id), said.occurred_at)


ReflectorEvent = ObservedTurn | OwnerCommand


def route_event(record: Record, *, partitions: int, secrets: SecretFilter) -> RoutedEvent[ReflectorEvent]:
    """Decode a record and assign it to the lane of its owner. Raises Poison."""
    work: ReflectorEvent
    if record.position.topic == COMMANDS.name:
        work = decode_owner_command(record, secrets)
    else:
        observed = protect_observed(decode(record, Observed), secrets)
        work = ObservedTurn(observed, observed.owner.key(observed.tenant_id))
    return route_to_owner(record, work, partitions=partitions)

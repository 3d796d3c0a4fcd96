"""Trace of a turn: its words, the observations made from it, and the parts that were left out.

The words come from Qdrant, and the observer's record comes from the log. When the log has no record of a turn, the turn
was not observed yet, or the record is older than the retention of the topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError
from qdrant_client import models

from ..adapters.ports import VectorStore
from ..adapters.vectors.conditions import equals
from ..schemas import ids
from ..schemas.collections import TURNS
from ..schemas.observations import Observation, Observed
from ..schemas.topics import OBSERVATIONS
from ..schemas.turns import Sensitivity, up_to
from ..schemas.working_set import StoredMessage
from ..streams.log.port import Log, Record
from .bounded_log_reads import BoundedLogReads, FormerCounts, LogPolicy
from .deadline import UnansweredPart


@dataclass(frozen=True, slots=True)
class TurnRef:
    """The turns with one id, optionally of one session or user, and the caller's permissions."""

    tenant_id: str
    turn_id: str
    session_id: str | None = None
    user_id: str | None = None
    ceiling: Sensitivity = "internal"

    def names(self, user_id: str, session_id: str, turn_id: str) -> bool:
        return turn_id == self.turn_id and self.session_id in (None, session_id) and self.user_id in (None, user_id)

    def may_show(self, sensitivity: Sensitivity) -> bool:
        return sensitivity in up_to(self.ceiling)


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One turn. `observed` is None when the log has no record of it."""

    user_id: str
    session_id: str
    turn_id: str
    messages: tuple[StoredMessage, ...]
    observed: Observed | None
    observations: tuple[Observation, ...] = ()
    """The observations that the caller may see."""

    def payload(self) -> dict[str, JsonValue]:
        """Encode the turn for the output of `memstream trace --turn --json`."""
        record = self.observed
        return {
            "user_id": self.user_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "messages": [each.to_payload() for each in self.messages],
            "observed": record is not None,
            "turn_number": None if record is None else record.turn_number,
            "observations": [each.to_payload() for each in self.observations],
            "cause": None if record is None else record.cause.to_payload(),
        }


@dataclass(frozen=True, slots=True)
class TurnOutcomes:
    """The turns with one id, sorted by user and session."""

    turns: tuple[TurnOutcome, ...]
    missing: tuple[UnansweredPart, ...] = ()


class TurnTracer:
    """The reads for `memstream trace --turn`. Raises Transient when the store does not answer."""

    def __init__(self, *, store: VectorStore, log: Log, policy: LogPolicy | None = None) -> None:
        self._store = store
        self._log = log
        self._policy = policy or LogPolicy()
        self._former = FormerCounts(log)

    async def trace(self, ref: TurnRef) -> TurnOutcomes:
        """Return the outcomes of the turns. A turn without stored messages is found only when `ref` names its user,
        because the user is part of the key in the log."""
        reads = BoundedLogReads(self._log, self._policy, self._former)
        messages = await self._messages(ref)
        owners = {each.owner_key for each in messages}
        if ref.user_id is not None:
            owners.add(ids.owner_key(ref.tenant_id, "user", ref.user_id))
        observed: dict[tuple[str, str], Observed] = {}

        def take(record: Record) -> bool:
            found = _read(record)
            if found is not None and ref.names(found.user_id, found.session_id, found.turn_id):
                observed.setdefault((found.user_id, found.session_id), found)
            return False

        for owner_key in sorted(owners):
            await reads.of_key("observations", OBSERVATIONS.name, owner_key.encode(), take=take, whole=lambda: False)
        places = sorted({*((each.user_id, each.session_id) for each in messages), *observed})
        return TurnOutcomes(
            tuple(_outcome(ref, place, messages, observed.get(place)) for place in places), tuple(reads.missing)
        )

    async def _messages(self, ref: TurnRef) -> list[StoredMessage]:
        if not await self._store.exists(TURNS):
            return []
        named = {"session_id": ref.session_id, "user_id": ref.user_id}
        conditions: list[models.Condition] = [
            equals("turn_id", ref.turn_id),
            *(equals(name, value) for name, value in named.items() if value is not None),
        ]
        found = await self._store.select(TURNS, tenant_id=ref.tenant_id, where=models.Filter(must=conditions))
        return sorted((StoredMessage.from_payload(each.payload) for each in found), key=lambda each: each.message_index)


def _outcome(
    ref: TurnRef, place: tuple[str, str], messages: Sequence[StoredMessage], observed: Observed | None
) -> TurnOutcome:
    said = (each for each in messages if (each.user_id, each.session_id) == place)
    seen = () if observed is None else observed.observations
    return TurnOutcome(
        *place,
        ref.turn_id,
        tuple(each for each in said if ref.may_show(each.sensitivity)),
        observed,
        tuple(each for each in seen if ref.may_show(each.sensitivity)),
    )


def _read(record: Record) -> Observed | None:
    """Decode a record. Return None when memstream did not write it."""
    try:
        return None if record.value is None else Observed.read(record.value)
    except ValidationError:
        return None

"""What the reflector sends: one event per change, one record per reflected turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...memory.facts.transitions import Transition
from ...schemas import ids
from ...schemas.cloudevents import CloudEvent
from ...schemas.episodes import EpisodesRecorded
from ...schemas.facts import Fact, FactCause, FactUpdated
from ...schemas.outcomes import OutRecord
from ...schemas.topics import EPISODES_RECORDED, FACTS, FACTS_UPDATED

SOURCE = "/memstream/reflector"


def fact_updated(transition: Transition, *, cause: FactCause, at: datetime) -> OutRecord:
    """One change of one fact, for memory.facts.updated."""
    fact, before = transition.fact, transition.before
    event = FactUpdated(
        event_id=ids.event_id(fact.fact_id, fact.version),
        action=transition.action,
        at=at,
        tenant_id=fact.tenant_id,
        owner=fact.owner,
        fact=fact.public(),
        before=before.public() if before else None,
        reason=transition.reason,
        decision=transition.decision,
        cause=cause,
    )
    header = CloudEvent(
        id=event.event_id, source=SOURCE, type="memstream.fact.updated.v1", subject=fact.owner_key, time=at
    )
    return OutRecord.of(FACTS_UPDATED.name, fact.owner_key, event, header)


def fact_state(fact: Fact, *, at: datetime) -> OutRecord:
    """A fact as it stands, for memory.facts."""
    header = CloudEvent(
        id=ids.event_id(fact.fact_id, fact.version),
        source=SOURCE,
        type="memstream.fact.state.v1",
        subject=fact.owner.key(fact.tenant_id),
        time=at,
    )
    return OutRecord.of(FACTS.name, ids.fact_key(fact.tenant_id, fact.fact_id), fact, header)


def episodes_recorded(recorded: EpisodesRecorded, *, at: datetime) -> OutRecord:
    owner_key = recorded.owner.key(recorded.tenant_id)
    session = ids.session_key(recorded.tenant_id, recorded.user_id, recorded.session_id)
    header = CloudEvent(
        id=ids.recorded_id(owner_key, session, recorded.turn_id),
        source=SOURCE,
        type="memstream.episodes.recorded.v1",
        subject=owner_key,
        time=at,
    )
    return OutRecord.of(EPISODES_RECORDED.name, owner_key, recorded, header)


def touched(transitions: Sequence[Transition]) -> tuple[str, ...]:
    """The facts with an event, each once, in order."""
    return tuple(dict.fromkeys(each.fact.fact_id for each in transitions))

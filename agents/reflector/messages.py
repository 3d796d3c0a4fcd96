"""Records that the reflector sends: fact changes, reflected turns, command results, and fact states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from ...memory.facts.transitions import Transition
from ...memory.recall.context import tokens
from ...schemas import ids
from ...schemas.cloudevents import CloudEvent
from ...schemas.commands import Command, CommandResult
from ...schemas.episodes import EpisodesRecorded, RecordedEpisode, StoredEpisode
from ...schemas.facts import Fact, FactCause, FactUpdated
from ...schemas.observations import Observed
from ...schemas.outcomes import OutRecord
from ...schemas.prospective import StoredTask, TaskDue
from ...schemas.topics import EPISODES_RECORDED, FACTS, FACTS_UPDATED, TASKS_DUE
from ...streams.senders.commands import result_record
from .fact_changes import FactChange

SOURCE: Final = "/memstream/reflector"


def fact_updated(transition: Transition, *, cause: FactCause, at: datetime) -> OutRecord:
    """Return the record of one change of one fact, for memory.facts.updated."""
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


def restored_event(event: FactUpdated) -> OutRecord:
    """Return the record of a change that an import publishes again, unchanged."""
    owner_key = event.owner.key(event.tenant_id)
    header = CloudEvent(
        id=event.event_id, source=SOURCE, type="memstream.fact.updated.v1", subject=owner_key, time=event.at
    )
    return OutRecord.of(FACTS_UPDATED.name, owner_key, event, header)


def fact_events(changes: Sequence[FactChange], *, at: datetime) -> tuple[OutRecord, ...]:
    """Return one record per change."""
    return tuple(fact_updated(each.transition, cause=each.cause, at=at) for each in changes)


def episodes_recorded(
    observed: Observed, episodes: Sequence[StoredEpisode], changes: Sequence[FactChange], *, at: datetime
) -> OutRecord:
    """Return the record of a reflected turn, for consolidation."""
    owner_key = observed.owner.key(observed.tenant_id)
    session = ids.session_key(observed.tenant_id, observed.user_id, observed.session_id)
    states = {each.fact.fact_id: each.fact.state for each in changes}
    recorded = EpisodesRecorded(
        tenant_id=observed.tenant_id,
        owner=observed.owner,
        user_id=observed.user_id,
        session_id=observed.session_id,
        turn_id=observed.turn_id,
        turn_number=observed.turn_number,
        occurred_at=observed.occurred_at,
        episodes=tuple(
            RecordedEpisode(episode_id=each.episode_id, importance=each.importance, category=each.category)
            for each in episodes
        ),
        fact_ids=tuple(states),
        pending_fact_ids=tuple(fact_id for fact_id, state in states.items() if state == "pending"),
        evicted_persistent=len(observed.evicted),
        agent_id=observed.agent_id,
        notes_tokens=sum(tokens(each.content) for each in observed.observations),
        epoch=observed.epoch,
    )
    header = CloudEvent(
        id=ids.recorded_id(owner_key, session, observed.turn_id),
        source=SOURCE,
        type="memstream.episodes.recorded.v1",
        subject=owner_key,
        time=at,
    )
    return OutRecord.of(EPISODES_RECORDED.name, owner_key, recorded, header)


def applied_result(command: Command, result: dict[str, JsonValue], *, at: datetime) -> OutRecord:
    """Return the result of an applied command."""
    answer = CommandResult(command_id=command.command_id, status="applied", result=result, at=at)
    return result_record(answer, of=command, source=SOURCE)


def task_due(task: StoredTask, *, at: datetime) -> OutRecord:
    """Return the record of a due task, for memory.tasks.due."""
    assert task.due_at is not None  # a task without a time is never due
    event = TaskDue(event_id=ids.task_due_id(task.task_id, task.due_at), task=task.public(), at=at)
    header = CloudEvent(id=event.event_id, source=SOURCE, type="memstream.task.due.v1", subject=task.owner_key, time=at)
    return OutRecord.of(TASKS_DUE.name, task.owner_key, event, header)


def erased_state(tenant_id: str, fact_id: str) -> OutRecord:
    """Return the tombstone of an erased fact, for memory.facts."""
    return OutRecord(topic=FACTS.name, key=ids.fact_key(tenant_id, fact_id).encode(), value=None)


def fact_state(fact: Fact, *, at: datetime) -> OutRecord:
    """Return the record of a fact's state, for memory.facts."""
    header = CloudEvent(
        id=ids.event_id(fact.fact_id, fact.version),
        source=SOURCE,
        type="memstream.fact.state.v1",
        subject=fact.owner.key(fact.tenant_id),
        time=at,
    )
    return OutRecord.of(FACTS.name, ids.fact_key(fact.tenant_id, fact.fact_id), fact, header)

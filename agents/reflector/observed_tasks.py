"""Tasks with a time that a turn tells become prospective memory; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ...memory.facts.routing import trust_of
from ...memory.facts.statements import resolve_subject
from ...schemas import ids
from ...schemas.collections import TASKS
from ...schemas.observations import Observed
from ...schemas.outcomes import InsertPoints, OutPoint
from ...schemas.prospective import StoredTask
from .timers import TIMERS_MAX, TaskTimers


@dataclass(frozen=True, slots=True)
class ObservedTasks:
    """The tasks of a turn, and the owner's times with theirs."""

    writes: tuple[InsertPoints, ...]
    timers: TaskTimers


def observed_tasks(observed: Observed, timers: TaskTimers, *, now: datetime) -> ObservedTasks:
    """Return the tasks that the turn tells for a later time. An owner with too many times gets no more."""
    points: list[OutPoint] = []
    for task in _tasks(observed, now=now):
        if len(timers.timers) >= TIMERS_MAX or task.due_at is None:
            break
        timers = timers.add(observed.owner, observed.tenant_id, task.task_id, task.due_at)
        points.append(OutPoint(id=task.task_id, payload=task.to_payload()))
    writes = (InsertPoints(collection=TASKS, points=tuple(points)),) if points else ()
    return ObservedTasks(writes, timers)


def _tasks(observed: Observed, *, now: datetime) -> Iterator[StoredTask]:
    owner_key = observed.owner.key(observed.tenant_id)
    for each in observed.observations:
        if each.category != "task" or each.retracts or each.due_at is None or each.due_at <= observed.occurred_at:
            continue
        yield StoredTask(
            task_id=ids.task_id(owner_key, each.observation_id),
            tenant_id=observed.tenant_id,
            owner=observed.owner,
            subject=resolve_subject(each.subject, observed.owner, observed.user_id),
            content=each.content,
            due_at=each.due_at,
            created_at=observed.occurred_at,
            updated_at=now,
            sensitivity=each.sensitivity,
            trust=trust_of(each.source_role),
            observation_id=each.observation_id,
            owner_key=owner_key,
            content_hash=ids.content_hash(each.content),
            applied=(each.observation_id,),
        )

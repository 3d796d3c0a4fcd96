"""Tasks with a due time in observed turns, added to prospective memory. The functions write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ...adapters.ports import VectorStore
from ...memory.facts.routing import route, trust_of
from ...memory.facts.statements import resolve_subject
from ...memory.policies import MemoryPolicy
from ...schemas import ids
from ...schemas.edits.prospective import TASKS_MAX
from ...schemas.observations import Observed
from ...schemas.outcomes import OutPoint
from ...schemas.prospective import StoredTask
from ...streams.engine.retry import Calls
from .pending_tasks import count_pending
from .timers import TIMERS_MAX, TaskTimers


@dataclass(frozen=True, slots=True)
class ObservedTasks:
    """The tasks of a turn, and the owner's timers with these tasks. `skipped`: number of tasks above a limit."""

    points: tuple[OutPoint, ...]
    timers: TaskTimers
    skipped: int = 0


async def observed_tasks(
    observed: Observed,
    timers: TaskTimers,
    policy: MemoryPolicy,
    *,
    added: int = 0,
    store: VectorStore,
    calls: Calls,
    now: datetime,
) -> ObservedTasks:
    """Return the turn's tasks with a future due time. An owner at the limit of tasks or timers gets no more tasks.

    `added`: number of tasks of the same outcome, which the store does not have yet.
    """
    tasks = tuple(_tasks(observed, policy, now=now))
    if not tasks:
        return ObservedTasks((), timers)
    owner_key = observed.owner.key(observed.tenant_id)
    pending = await count_pending(store, calls, tenant_id=observed.tenant_id, owner_key=owner_key)
    room = max(0, min(TASKS_MAX - pending - added, TIMERS_MAX - len(timers.timers)))
    for task in tasks[:room]:
        assert task.due_at is not None  # _tasks skips tasks without a due time
        timers = timers.add(task.task_id, task.due_at)
    points = tuple(OutPoint(id=task.task_id, payload=task.to_payload()) for task in tasks[:room])
    return ObservedTasks(points, timers, skipped=len(tasks) - len(points))


def _tasks(observed: Observed, policy: MemoryPolicy, *, now: datetime) -> Iterator[StoredTask]:
    owner_key = observed.owner.key(observed.tenant_id)
    for each in observed.observations:
        if not route(each, policy).prospective or each.due_at is None or each.due_at <= observed.said_at(each):
            continue
        yield StoredTask(
            task_id=ids.task_id(owner_key, each.observation_id),
            tenant_id=observed.tenant_id,
            owner=observed.owner,
            subject=resolve_subject(each.subject, observed.owner, observed.user_id),
            content=each.content,
            due_at=each.due_at,
            created_at=observed.said_at(each),
            updated_at=now,
            sensitivity=each.sensitivity,
            trust=trust_of(each.source_role),
            observation_id=each.observation_id,
            owner_key=owner_key,
            content_hash=ids.content_hash(each.content),
            applied=(each.observation_id,),
            user_id=observed.user_id,
            session_id=observed.session_id,
        )

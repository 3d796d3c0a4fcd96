"""Edits of prospective memory (docs/reference/edits.md). The functions return writes; the caller executes them.

Future due times are in a row of the owner in the table ledger (agents/reflector/timers.py).
"""

from __future__ import annotations

from dataclasses import replace

from qdrant_client import models

from ....adapters.vectors.conditions import any_of, equals
from ....memory.facts.statements import resolve_subject
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....schemas import ids
from ....schemas.collections import TASKS
from ....schemas.edits.prospective import PENDING, TASKS_MAX, TaskAdd, TaskChanged, TaskDueNow, TaskRef, TaskState
from ....schemas.outcomes import SwapPoint
from ....schemas.prospective import ProspectiveTask, StoredTask
from ..messages import task_due
from ..pending_tasks import count_pending
from ..timers import TIMERS_MAX, TaskTimers, TimerRows
from .scope import OwnerEditResult, OwnerEditScope, refused
from .versioned import read_record, write_record


async def add(args: TaskAdd, scope: OwnerEditScope) -> OwnerEditResult:
    """Add a task, unless the owner has a pending task with the same text, time and condition."""
    unsafe = find_unsafe_text(ProspectiveTask, args.to_payload(), by_person=args.trust == "user")
    if unsafe is not None:
        return refused(unsafe.code, f"{unsafe.message}: a person has to add it")
    task = _task(args, scope)
    known = await _equal(task, scope)
    if known is not None:
        return OwnerEditResult(result=TaskChanged(task_id=known.task_id, state=known.state, changed=False))
    timers = TaskTimers.of(scope.rows, scope.owner_key)
    if task.due_at is not None:
        timers = timers.add(task.task_id, task.due_at)
    if len(timers.timers) > TIMERS_MAX:
        return refused("too_many", f"an owner has at most {TIMERS_MAX} tasks with a future due time: cancel one")
    tenant_id, owner_key = scope.command.tenant_id, scope.owner_key
    if await count_pending(scope.store, scope.calls, tenant_id=tenant_id, owner_key=owner_key) >= TASKS_MAX:
        return refused("too_many", f"an owner has at most {TASKS_MAX} tasks that are not done: cancel one")
    return _changed(task, scope, timers)


async def finish(args: TaskRef, scope: OwnerEditScope) -> OwnerEditResult:
    """Mark a task as done or cancelled, and remove its due time."""
    task = await read_record(TASKS, args.task_id, StoredTask, scope)
    if task is None:
        return refused("unknown", f"there is no task {args.task_id} of this owner")
    state: TaskState = "done" if scope.command.kind == "tasks.done" else "cancelled"
    if task.state in ("done", "cancelled"):
        return OwnerEditResult(result=TaskChanged(task_id=task.task_id, state=task.state, changed=False))
    timers = TaskTimers.of(scope.rows, scope.owner_key).remove(task.task_id)
    return _changed(task_in_state(task, state, args.reason, scope), scope, timers)


async def tell_due(args: TaskDueNow, scope: OwnerEditScope) -> OwnerEditResult:
    """Publish a due task, once, and set its state to `due`."""
    task = await read_record(TASKS, args.task_id, StoredTask, scope)
    if task is None:
        return refused("unknown", f"there is no task {args.task_id} of this owner")
    if task.state != "open" or task.due_at != args.due_at:
        return OwnerEditResult(result=TaskChanged(task_id=task.task_id, state=task.state, changed=False))
    timers = TaskTimers.of(scope.rows, scope.owner_key).remove(task.task_id)
    due = task_in_state(task, "due", "", scope)
    edit = _changed(due, scope, timers)
    return replace(edit, records=(task_due(due, at=scope.now),))


def derived_ids(task: StoredTask, session_key: str, turn_id: str) -> frozenset[str]:
    """Return the ids that the task's observation would have if it were from this turn: they are derived from the turn,
    the subject and the text. `user` is stored as the user's id in a task of another owner."""
    return frozenset(ids.observation_id(session_key, turn_id, each, task.content) for each in (task.subject, "user"))


def task_write(task: StoredTask, *, cause: str) -> SwapPoint:
    return write_record(TASKS, task.task_id, task.to_payload(), cause=cause)


def _changed(task: StoredTask, scope: OwnerEditScope, timers: TaskTimers) -> OwnerEditResult:
    rows = TimerRows.changed(scope.owner_key, TaskTimers.of(scope.rows, scope.owner_key), timers)
    return OwnerEditResult(
        result=TaskChanged(task_id=task.task_id, state=task.state, changed=True),
        writes=(task_write(task, cause=scope.command.command_id),),
        after=rows.after,
        cleanup=rows.cleanup,
    )


def task_in_state(task: StoredTask, state: TaskState, reason: str, scope: OwnerEditScope) -> StoredTask:
    """Return the task's next version, in another state."""
    return task.model_copy(
        update={"state": state, "reason": reason, "version": task.version + 1, "updated_at": scope.now}
    )


def _task(args: TaskAdd, scope: OwnerEditScope) -> StoredTask:
    command = scope.command
    subject = resolve_subject(args.subject, scope.owner, scope.owner.id)
    label = scope.secrets.label(args.content, args.condition, subject)
    return StoredTask(
        task_id=ids.task_id(scope.owner_key, command.command_id),
        tenant_id=command.tenant_id,
        owner=scope.owner,
        subject=subject,
        content=args.content,
        due_at=args.due_at,
        condition=args.condition,
        created_at=command.issued_at,
        updated_at=scope.now,
        sensitivity=at_least(args.sensitivity, label),
        trust=args.trust,
        tags=args.tags,
        command_id=command.command_id,
        owner_key=scope.owner_key,
        content_hash=ids.content_hash(args.content),
    )


async def _equal(task: StoredTask, scope: OwnerEditScope) -> StoredTask | None:
    """Return an equal task of the owner that is neither done nor cancelled, if any."""
    where = models.Filter(
        must=[
            equals("owner_key", task.owner_key),
            equals("content_hash", task.content_hash),
            any_of("state", PENDING),
        ]
    )
    found = await scope.calls.call(
        "store", lambda: scope.store.select(TASKS, tenant_id=task.tenant_id, where=where, limit=TASKS_MAX)
    )
    known = (StoredTask.from_payload(each.payload) for each in found)
    wanted = (task.subject, task.due_at, ids.canonical(task.condition or ""))
    return next((it for it in known if (it.subject, it.due_at, ids.canonical(it.condition or "")) == wanted), None)

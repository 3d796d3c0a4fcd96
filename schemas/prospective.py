"""Prospective memory: tasks that an owner wants to be reminded of, and the events that report them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import CommandId, Content, Contract, GivenId, Instant, OurId, Reason, Subject, Tags
from .edits.prospective import TaskCondition, TaskState
from .facts import Trust
from .turns import Owner, Sensitivity


class ProspectiveTask(Contract):
    """A task that becomes due at a time, or when a condition is true. `version` counts its changes of state."""

    task_id: OurId
    version: Annotated[int, Field(ge=1)] = 1
    tenant_id: GivenId
    owner: Owner
    subject: Subject
    content: Content
    due_at: Instant | None = None
    condition: TaskCondition | None = None
    state: TaskState = "open"
    """`due`: the task's time has come, and a record on memory.tasks.due has reported it."""
    reason: Reason = ""
    """Reason of the last change of state."""
    created_at: Instant
    updated_at: Instant
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    tags: Tags = ()
    observation_id: OurId | None = None
    """The observation from which the task was created; None: a command added it."""
    command_id: CommandId | None = None
    """The command that added the task."""


class StoredTask(ProspectiveTask):
    """A task as Qdrant stores it. `applied` has the causes of its last versions."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    content_hash: Annotated[str, StringConstraints(max_length=64)]
    applied: tuple[str, ...] = ()
    user_id: GivenId | None = None
    """The user of the turn that states the task. None: a command added it, an import, or an earlier version."""
    session_id: GivenId | None = None

    def public(self) -> ProspectiveTask:
        return ProspectiveTask.from_payload(self.to_payload())


class TaskDue(Contract):
    """A record on memory.tasks.due: the time of a task has come. Each task is reported once for each due time.
    `event_id` is derived from the task and this time."""

    event_id: OurId
    task: ProspectiveTask
    at: Instant

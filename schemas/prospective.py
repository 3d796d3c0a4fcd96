"""Prospective memory: tasks that an owner wants to be reminded of, and the events that tell them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import CommandId, Content, Contract, GivenId, Instant, OurId, Reason, Subject, Tags
from .edits.prospective import TaskCondition, TaskState
from .facts import Trust
from .turns import Owner, Sensitivity


class ProspectiveTask(Contract):
    """Something to do at a time, or when a condition holds. `version` counts its changes of state."""

    task_id: OurId
    version: Annotated[int, Field(ge=1)] = 1
    tenant_id: GivenId
    owner: Owner
    subject: Subject
    content: Content
    due_at: Instant | None = None
    condition: TaskCondition | None = None
    state: TaskState = "open"
    """`due`: its time came, and memory.tasks.due has told it."""
    reason: Reason = ""
    """Of the last change of state."""
    created_at: Instant
    updated_at: Instant
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    tags: Tags = ()
    observation_id: OurId | None = None
    """The observation that it comes from; None: a command added it."""
    command_id: CommandId | None = None
    """The command that added it."""


class StoredTask(ProspectiveTask):
    """A task as Qdrant stores it. `applied`: the causes of its last versions."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    content_hash: Annotated[str, StringConstraints(max_length=64)]
    applied: tuple[str, ...] = ()

    def public(self) -> ProspectiveTask:
        return ProspectiveTask.from_payload(self.to_payload())


class TaskDue(Contract):
    """A record on memory.tasks.due: the time of a task has come. Each task is told once for each time that it is due.
    `event_id` is derived from the task and its time."""

    event_id: OurId
    task: ProspectiveTask
    at: Instant

"""Edits of prospective memory: tasks for later. The reflector applies them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import StringConstraints, model_validator

from ..base import Contract, Instant, OurId, Reason, Tags
from ..facts import Trust
from ..turns import Sensitivity
from .common import GivenContent, GivenSubject, NotBlank

TaskState = Literal["open", "due", "done", "cancelled"]
"""`due`: the task's time has come, and a record on memory.tasks.due has reported it."""
PENDING: Final[tuple[TaskState, ...]] = ("open", "due")
"""States of unfinished tasks."""
TASKS_MAX: Final = 500
"""Maximum number of pending tasks of an owner."""

TaskCondition = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class TaskAdd(Contract):
    """`args` of tasks.add: a task that becomes due at a time, or when a condition is true. A second open task with the
    same text, time and condition is not added."""

    content: GivenContent
    due_at: Instant | None = None
    condition: Annotated[TaskCondition, NotBlank] | None = None
    """Condition in words. When the cue of a read matches the condition, the task is due in the answer of this read."""
    subject: GivenSubject = "user"
    tags: Tags = ()
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"

    @model_validator(mode="after")
    def _has_a_time_or_condition(self) -> TaskAdd:
        if self.due_at is None and self.condition is None:
            raise ValueError("due_at or condition is needed")
        return self


class TaskRef(Contract):
    """`args` of tasks.done and tasks.cancel."""

    task_id: OurId
    reason: Reason = ""


class TaskDueNow(Contract):
    """`args` of tasks.due, which the reflector sends to itself when a task's time has come."""

    task_id: OurId
    due_at: Instant


class TaskChanged(Contract):
    """Result of every edit of a task. `changed` is false when the task was already in this state."""

    task_id: OurId
    state: TaskState
    changed: bool

"""Future due times of tasks: a row per owner in the table ledger, and timers in the worker.

The row is durable. The timers are restored from the rows when partitions are assigned. A timer only sends a command
`tasks.due`. The command's id is derived from the task and its due time, so a duplicate command has no effect.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ...schemas import ids
from ...schemas.base import Instant
from ...schemas.commands import Command
from ...schemas.edits.prospective import TaskDueNow
from ...schemas.outcomes import OutRecord
from ...schemas.row_keys import index_key
from ...schemas.turns import Owner
from ...streams.engine.decision import Rows
from ...streams.senders.commands import command_record
from ..common.handled_sessions import sessions_index
from ..common.pending_index import INDEX_ROW, forget, pending_keys
from ..common.stored_row import RowPart, StoredRow
from .messages import SOURCE

TIMERS_MAX: Final = 256
"""Maximum number of an owner's tasks with a future due time."""
_SUFFIX: Final = "/tasks"
TASKS: Final = "tasks"
"""Index of owners with timers."""


class TaskTimer(RowPart):
    task_id: str
    due_at: Instant


class TaskTimers(StoredRow):
    """The due times of an owner's open tasks."""

    timers: tuple[TaskTimer, ...] = ()

    @classmethod
    def of(cls, rows: Rows, owner_key: str, *, partition: int | None = None) -> TaskTimers:
        return cls.load(rows, timers_key(owner_key), partition=partition)

    def add(self, task_id: str, due_at: datetime) -> TaskTimers:
        kept = (*self.remove(task_id).timers, TaskTimer(task_id=task_id, due_at=due_at))
        return self.model_copy(update={"timers": kept})

    def remove(self, task_id: str) -> TaskTimers:
        kept = tuple(each for each in self.timers if each.task_id != task_id)
        return self.model_copy(update={"timers": kept})


def timers_key(owner_key: str) -> str:
    """Return the row key. It has four parts; an owner key has three and a session row key has six."""
    return owner_key + _SUFFIX


@dataclass(frozen=True, slots=True)
class TimerRows:
    """The timer rows of an owner in an outcome.

    `after`: rows to write, the index row first. `cleanup`: keys of rows to delete after all other effects.
    """

    after: Mapping[str, bytes] = field(default_factory=dict)
    cleanup: tuple[str, ...] = ()

    @classmethod
    def changed(cls, owner_key: str, before: TaskTimers, now: TaskTimers) -> TimerRows:
        """Return the changed rows. An owner without timers has neither a timer row nor an index row."""
        index, key = index_key(TASKS, owner_key), timers_key(owner_key)
        if now == before:
            return cls()
        if not now.timers:
            return cls({key: now.to_bytes()}, (key, index))
        return cls({index: INDEX_ROW, key: now.to_bytes()})


def timers_index(key: str, raw: bytes) -> tuple[str, ...]:
    """Return the index row that a row of an earlier version needs."""
    is_timers = key.count("/") == 3 and key.endswith(_SUFFIX) and TaskTimers.read(raw).timers
    return (index_key(TASKS, key.removesuffix(_SUFFIX)),) if is_timers else ()


class DueTasks:
    """Timers of the worker's partitions. `pause`: seconds until an unhandled command is sent again."""

    def __init__(self, *, now: Callable[[], datetime], pause: float = 60.0) -> None:
        self._now = now
        self._pause = timedelta(seconds=pause)
        self._rows: dict[str, tuple[int, TaskTimers]] = {}
        self._queue: list[tuple[datetime, str, str, datetime]] = []
        """Heap of (send time, owner key, task id, due_at). Entries of removed timers are skipped."""

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the owners of all other partitions."""
        self._rows = {key: each for key, each in self._rows.items() if each[0] in partitions}
        self._queue = [each for each in self._queue if each[1] in self._rows]
        heapq.heapify(self._queue)

    async def rediscover(self, partition: int, rows: Rows, *, partitions: int) -> None:
        """Set the timers of a newly assigned partition."""
        indexed = sessions_index(timers_index, self._now)
        async for owner_key in pending_keys(rows, partition, TASKS, partitions=partitions, indexed=indexed):
            row = TaskTimers.of(rows, owner_key, partition=partition)
            if row.timers:
                self.keep(owner_key, partition, row)
            else:
                await forget(rows, partition, TASKS, owner_key)

    def keep(self, owner_key: str, partition: int, row: TaskTimers) -> None:
        """Update the timers from an owner's written row."""
        known = self._rows.get(owner_key, (partition, TaskTimers()))[1].timers
        for timer in row.timers:
            if timer not in known:
                heapq.heappush(self._queue, (timer.due_at, owner_key, timer.task_id, timer.due_at))
        if row.timers:
            self._rows[owner_key] = (partition, row)
        else:
            self._rows.pop(owner_key, None)

    def due(self, at_most: int) -> Iterator[OutRecord]:
        """Yield due commands, at most `at_most`."""
        now = self._now()
        sent = 0
        while self._queue and self._queue[0][0] <= now and sent < at_most:
            _, owner_key, task_id, due_at = heapq.heappop(self._queue)
            row = self._rows.get(owner_key, (0, TaskTimers()))[1]
            if TaskTimer(task_id=task_id, due_at=due_at) not in row.timers:
                continue
            heapq.heappush(self._queue, (now + self._pause, owner_key, task_id, due_at))
            sent += 1
            yield _command(owner_key, task_id, due_at, now=now)


def _command(owner_key: str, task_id: str, due_at: datetime, *, now: datetime) -> OutRecord:
    tenant_id, scope, owner_id = ids.split(owner_key)
    command = Command(
        command_id=ids.task_due_id(task_id, due_at),
        kind="tasks.due",
        tenant_id=tenant_id,
        owner=Owner.model_validate({"scope": scope, "id": owner_id}),
        args=TaskDueNow(task_id=task_id, due_at=due_at).to_payload(),
        issued_by=SOURCE,
        issued_at=now,
    )
    return command_record(command, source=SOURCE)

"""Which owners wait for a run, and when to remind ourselves: the reminder is a command, never an effect.

State in memory only: it is found again in the table when partitions are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .rows import Waiting

COMMANDS_PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class Reminder:
    """`due` on the monotonic clock, seconds."""

    partition: int
    waiting: Waiting
    due: float


class Reminders:
    """By owner key. `pause`: seconds until a deferred run is tried again, and between two reminders of one owner."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._waiting: dict[str, Reminder] = {}
        self._partitions: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._waiting)

    def assigned(self, partitions: frozenset[int]) -> frozenset[int]:
        """Forget the owners of partitions that are gone; returns the partitions that are new."""
        new = partitions - self._partitions
        self._partitions = partitions
        self._waiting = {key: item for key, item in self._waiting.items() if item.partition in partitions}
        return new

    def wait(self, owner_key: str, partition: int, waiting: Waiting, *, at_once: bool = False) -> None:
        pause = 0.0 if at_once else self._pause
        self._waiting[owner_key] = Reminder(partition, waiting, self._clock() + pause)

    def done(self, owner_key: str) -> None:
        self._waiting.pop(owner_key, None)

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again: all its owners are due."""
        now = self._clock()
        for key, item in self._waiting.items():
            if item.waiting.tenant_id == tenant_id:
                self._waiting[key] = replace(item, due=now)

    def take_due(self, at_most: int) -> list[Waiting]:
        """Whose time has come. Each is due again after the pause until its row says otherwise: a reminder that was
        lost is sent again under the same id."""
        now = self._clock()
        due = [(key, item) for key, item in self._waiting.items() if item.due <= now][:at_most]
        for key, item in due:
            self._waiting[key] = replace(item, due=now + self._pause)
        return [item.waiting for _, item in due]

"""Which owners wait for a command of our own, and when to send it: a timer has no effect but a command.

State in memory only: it is found again in the table when partitions are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .schedule import ScheduledCommand

COMMANDS_PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class _Set:
    """`due` on the monotonic clock, seconds."""

    partition: int
    reminder: ScheduledCommand
    due: float


class OwnerReminders:
    """By owner key. `pause`: seconds between two reminders of one owner."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._set: dict[str, _Set] = {}
        self._partitions: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._set)

    def assigned(self, partitions: frozenset[int]) -> frozenset[int]:
        """Forget the owners of partitions that are gone; returns the partitions that are new."""
        new = partitions - self._partitions
        self._partitions = partitions
        self._set = {key: item for key, item in self._set.items() if item.partition in partitions}
        return new

    def wait(self, owner_key: str, partition: int, reminder: ScheduledCommand, *, seconds: float) -> None:
        """One that waits already keeps its time: an owner who goes on speaking does not put it off."""
        before = self._set.get(owner_key)
        if before is not None and before.reminder.command_id == reminder.command_id:
            return
        self._set[owner_key] = _Set(partition, reminder, self._clock() + seconds)

    def done(self, owner_key: str) -> None:
        self._set.pop(owner_key, None)

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again: all its owners who wait for it are due."""
        now = self._clock()
        for key, item in self._set.items():
            if item.reminder.for_model and item.reminder.tenant_id == tenant_id:
                self._set[key] = replace(item, due=now)

    def take_due(self, at_most: int) -> list[ScheduledCommand]:
        """Whose time has come. Each is due again after the pause until its row says otherwise: a reminder that was
        lost is sent again under the same id."""
        now = self._clock()
        due = [(key, item) for key, item in self._set.items() if item.due <= now][:at_most]
        for key, item in due:
            self._set[key] = replace(item, due=now + self._pause)
        return [item.reminder for _, item in due]

"""Owners with a pending command of consolidation, and the time at which each command is due.

The state is in memory only. It is restored from the table when partitions are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .schedule import ScheduledCommand


@dataclass(frozen=True, slots=True)
class _Reminder:
    """A pending command. `due`: seconds on the monotonic clock."""

    partition: int
    command: ScheduledCommand
    due: float


class OwnerReminders:
    """Reminders by owner key. `pause`: seconds between two reminders of one owner."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._reminders: dict[str, _Reminder] = {}

    def __len__(self) -> int:
        return len(self._reminders)

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the owners of all other partitions."""
        self._reminders = {key: each for key, each in self._reminders.items() if each.partition in partitions}

    def wait(self, owner_key: str, partition: int, command: ScheduledCommand, *, seconds: float) -> None:
        """Set the owner's reminder. An equal command keeps its due time, so further events do not delay it."""
        before = self._reminders.get(owner_key)
        if before is not None and before.command.command_id == command.command_id:
            return
        self._reminders[owner_key] = _Reminder(partition, command, self._clock() + seconds)

    def done(self, owner_key: str) -> None:
        self._reminders.pop(owner_key, None)

    def wake(self, tenant_id: str) -> None:
        """Make the tenant's reminders that wait for its model due now."""
        now = self._clock()
        for key, each in self._reminders.items():
            if each.command.for_model and each.command.tenant_id == tenant_id:
                self._reminders[key] = replace(each, due=now)

    def take_due(self, at_most: int) -> list[ScheduledCommand]:
        """Return due commands.

        A returned command becomes due again after each pause, until the owner's row changes. So a lost reminder is sent
        again with the same command id.
        """
        now = self._clock()
        due = [(key, each) for key, each in self._reminders.items() if each.due <= now][:at_most]
        for key, each in due:
            self._reminders[key] = replace(each, due=now + self._pause)
        return [each.command for _, each in due]

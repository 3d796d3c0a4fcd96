"""Which sessions wait to be observed, and when to remind ourselves: the reminder is a command, never an effect.

State in memory only: it is found again in the table when partitions are assigned. Nothing here touches a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

COMMANDS_PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class Reminder:
    """A session with waiting turns. `due` on the monotonic clock, seconds."""

    partition: int
    tenant_id: str
    user_id: str
    session_id: str
    last_turn_id: str
    due: float
    attempt: int = 0


class Reminders:
    """By session key. `pause` is the time between two reminders of one session, seconds."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._waiting: dict[str, Reminder] = {}
        self._partitions: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._waiting)

    def assigned(self, partitions: frozenset[int]) -> frozenset[int]:
        """Forget the sessions of partitions that are gone; returns the partitions that are new."""
        new = partitions - self._partitions
        self._partitions = partitions
        self._waiting = {key: item for key, item in self._waiting.items() if item.partition in partitions}
        return new

    def wait(self, session_key: str, reminder: Reminder) -> None:
        """A turn was deferred, or found waiting. The pause begins with the first deferral, not with each one."""
        known = self._waiting.get(session_key)
        if known is not None:
            reminder = replace(reminder, due=min(known.due, reminder.due), attempt=known.attempt)
        self._waiting[session_key] = reminder

    def done(self, session_key: str) -> None:
        self._waiting.pop(session_key, None)

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again: all its sessions are due."""
        now = self._clock()
        for key, item in self._waiting.items():
            if item.tenant_id == tenant_id:
                self._waiting[key] = replace(item, due=now)

    def take_due(self, at_most: int) -> Iterator[tuple[str, Reminder]]:
        """The sessions whose time has come; each is due again after the pause, until it is done."""
        now = self._clock()
        due = [(key, item) for key, item in self._waiting.items() if item.due <= now][:at_most]
        for key, item in due:
            self._waiting[key] = replace(item, due=now + self._pause, attempt=item.attempt + 1)
            yield key, item

"""Which sessions wait to be observed, and when to remind ourselves: the reminder is a command, never an effect.

State in memory only: it is found again in the table when partitions are assigned. Nothing here touches a session.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

COMMANDS_PER_SECOND = 50


@dataclass(frozen=True, slots=True)
class Reminder:
    """A session with waiting turns. `due` on the monotonic clock, seconds."""

    partition: int
    tenant_id: str
    last_turn_id: str
    due: float
    attempt: int = 0


class Reminders:
    """By session key. `pause` is the time between two reminders of one session, seconds."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._waiting: dict[str, Reminder] = {}
        self._queue: list[tuple[float, int, str]] = []
        """(due, place, session key), the first to come first; what no longer holds is passed over when it comes."""
        self._place = count()
        self._partitions: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._waiting)

    def assigned(self, partitions: frozenset[int]) -> frozenset[int]:
        """Forget the sessions of partitions that are gone; returns the partitions that are new."""
        new = partitions - self._partitions
        self._partitions = partitions
        self._waiting = {key: item for key, item in self._waiting.items() if item.partition in partitions}
        return new

    def wait(self, session_key: str, *, partition: int, tenant_id: str, last_turn_id: str, due_in: float) -> None:
        """A turn was deferred, or found waiting. The pause begins with the first deferral, not with each one."""
        known = self._waiting.get(session_key)
        due = self._clock() + due_in
        if known is None:
            self._put(session_key, Reminder(partition, tenant_id, last_turn_id, due))
        elif due < known.due:
            self._put(session_key, replace(known, last_turn_id=last_turn_id, due=due))
        else:
            self._waiting[session_key] = replace(known, last_turn_id=last_turn_id)

    def done(self, session_key: str) -> None:
        self._waiting.pop(session_key, None)

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again: all its sessions are due."""
        now = self._clock()
        for key, item in list(self._waiting.items()):
            if item.tenant_id == tenant_id and item.due > now:
                self._put(key, replace(item, due=now))

    def take_due(self, at_most: int) -> Iterator[tuple[str, Reminder]]:
        """The sessions whose time has come, the longest due first; each is due again after the pause, until done."""
        now = self._clock()
        while at_most > 0 and self._queue and self._queue[0][0] <= now:
            due, _, key = heapq.heappop(self._queue)
            item = self._waiting.get(key)
            if item is None or item.due != due:
                continue
            self._put(key, replace(item, due=now + self._pause, attempt=item.attempt + 1))
            at_most -= 1
            yield key, item

    def _put(self, key: str, item: Reminder) -> None:
        self._waiting[key] = item
        heapq.heappush(self._queue, (item.due, next(self._place), key))

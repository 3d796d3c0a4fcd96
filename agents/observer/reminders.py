"""Reminders of sessions with waiting turns.

A reminder is a command `observe` that the stage sends to itself; it has no other effect. Reminders are in memory only:
the stage restores them from the table when partitions are assigned.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

HeldBack = Literal["model_away", "budget"]
STALE_MAX = 1_000
"""Number of outdated queue entries above which the queue is cleaned. During a backlog, most reminders are removed
before they are due."""


@dataclass(frozen=True, slots=True)
class SessionReminder:
    """A session with waiting turns. Times are seconds of the monotonic clock."""

    partition: int
    tenant_id: str
    last_turn_id: str
    since: float
    """Time at which the wait began or the last command was sent."""
    due: float
    batch_wait: bool = False
    """True when the session waits for more turns of a backlog. It is due when the backlog ends (`caught_up`)."""
    not_before: float = 0.0
    """Earliest time of the next call, because the model's server asked for a pause or the budget is spent."""
    for_budget: bool = False
    """True when the session waits for a budget. The next day ends the wait."""
    attempt: int = 0


class SessionReminders:
    """Reminders by session key. `pause`: seconds between two reminders of one session."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._waiting: dict[str, SessionReminder] = {}
        self._batch_waits: defaultdict[int, dict[str, None]] = defaultdict(dict)
        """Session keys in a batch wait, by partition, longest wait first."""
        self._queue: list[tuple[float, int, str]] = []
        """Heap of (due, place, session key). Outdated entries are skipped."""
        self._asked: set[str] = set()
        """Session keys whose command was sent and that have had no event since."""
        self._place = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, session_key: str) -> bool:
        return session_key in self._waiting

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the sessions of all other partitions."""
        for key in [key for key, item in self._waiting.items() if item.partition not in partitions]:
            self.remove(key)

    def wait(
        self,
        session_key: str,
        *,
        partition: int,
        tenant_id: str,
        last_turn_id: str,
        due_in: float,
        batch_wait: bool = False,
        retry_after: float = 0.0,
        for_budget: bool = False,
    ) -> None:
        """Add or update a session with waiting turns.

        `due_in`: seconds from the beginning of the wait. `retry_after`: seconds from now.
        """
        self._asked.discard(session_key)
        known = self._waiting.get(session_key)
        now = self._clock()
        since, not_before = (now, 0.0) if known is None else (known.since, known.not_before)
        not_before = max(not_before, now + retry_after)
        due = max(since + due_in, not_before)
        item = SessionReminder(partition, tenant_id, last_turn_id, since, due, batch_wait, not_before, for_budget)
        self._put(session_key, item if known is None else replace(item, attempt=known.attempt))

    def restart_idle_clock(self, session_key: str) -> None:
        """Restart the session's idle time, because one of its turns has arrived."""
        known = self._waiting.get(session_key)
        if known is not None:
            self._waiting[session_key] = replace(known, since=self._clock())

    def release_budget_waits(self) -> None:
        """Make all sessions that wait for a budget due, because a new day has begun."""
        now = self._clock()
        for key, item in list(self._waiting.items()):
            if item.for_budget:
                self._put(key, replace(item, due=now, not_before=now, for_budget=False))

    def held_back(self, session_key: str) -> HeldBack | None:
        """Return the reason that blocks the session until `not_before`, or None afterwards."""
        item = self._waiting.get(session_key)
        if item is None or item.not_before <= self._clock():
            return None
        return "budget" if item.for_budget else "model_away"

    def remove(self, session_key: str) -> None:
        self._asked.discard(session_key)
        item = self._waiting.pop(session_key, None)
        if item is not None and item.batch_wait:
            del self._batch_waits[item.partition][session_key]

    def wake(self, tenant_id: str) -> None:
        """Make the tenant's sessions due, except sessions in a batch wait, because its model answers again."""
        now = self._clock()
        for key, item in list(self._waiting.items()):
            if item.tenant_id == tenant_id and item.due > now and not item.batch_wait:
                self._put(key, replace(item, due=max(now, item.not_before)))

    def count_asked(self) -> int:
        """Return the number of sessions whose command is unanswered."""
        return len(self._asked)

    def count_batch_waits(self, partition: int) -> int:
        """Return the number of the partition's sessions in a batch wait."""
        batch_wait = self._batch_waits.get(partition)
        return len(batch_wait) if batch_wait else 0

    def partitions_with_batch_waits(self) -> list[int]:
        """Return the partitions with sessions in a batch wait."""
        return [partition for partition, keys in self._batch_waits.items() if keys]

    def caught_up(self, partition: int) -> None:
        """Make the partition's batch waits due, longest wait first, because its backlog has ended."""
        now = self._clock()
        for key in list(self._batch_waits[partition]):
            item = self._waiting[key]
            self._put(key, replace(item, due=max(min(item.due, now), item.not_before), batch_wait=False))

    def take_due(self, at_most: int) -> Iterator[tuple[str, SessionReminder]]:
        """Yield due sessions, longest due first.

        A returned session becomes due again after each pause, until it is removed.
        """
        now = self._clock()
        while at_most > 0 and self._queue and self._queue[0][0] <= now:
            first = heapq.heappop(self._queue)
            if not self._is_current(first):
                continue
            key = first[2]
            item = self._waiting[key]
            again = replace(item, since=now, due=now + self._pause, batch_wait=False, attempt=item.attempt + 1)
            self._put(key, again)
            self._asked.add(key)
            at_most -= 1
            yield key, item

    def _is_current(self, queued: tuple[float, int, str]) -> bool:
        item = self._waiting.get(queued[2])
        return item is not None and item.due == queued[0]

    def _put(self, key: str, item: SessionReminder) -> None:
        known = self._waiting.get(key)
        self._waiting[key] = item
        if known is None or known.due != item.due:
            heapq.heappush(self._queue, (item.due, next(self._place), key))
            if len(self._queue) > STALE_MAX + 2 * len(self._waiting):
                self._queue = [each for each in self._queue if self._is_current(each)]
                heapq.heapify(self._queue)
        if item.batch_wait:
            self._batch_waits[item.partition][key] = None
        elif known is not None and known.batch_wait:
            self._batch_waits[item.partition].pop(key, None)

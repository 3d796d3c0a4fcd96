"""Which sessions wait to be observed, and when to remind ourselves: the reminder is a command, never an effect.

State in memory only: it is found again in the table when partitions are assigned. Nothing here touches a session.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

HeldBack = Literal["model_away", "budget"]
COMMANDS_PER_SECOND = 50
STALE_MAX = 1_000
"""Entries of the queue that no longer hold are taken out when there are so many; under backlog most are soon done."""


@dataclass(frozen=True, slots=True)
class SessionReminder:
    """A session with waiting turns. `since` and `due` on the monotonic clock, seconds."""

    partition: int
    tenant_id: str
    last_turn_id: str
    since: float
    """When it began to wait, or was last asked."""
    due: float
    company: bool = False
    """It waits for further turns: due when its partition has no more of them (`caught_up`)."""
    not_before: float = 0.0
    """The model's server asked for so much time, or the budget has nothing left before; monotonic, seconds."""
    for_budget: bool = False
    """Another day ends the wait."""
    attempt: int = 0


class SessionReminders:
    """By session key. `pause` is the time between two reminders of one session, seconds."""

    def __init__(self, *, pause: float, clock: Callable[[], float]) -> None:
        self._pause = pause
        self._clock = clock
        self._waiting: dict[str, SessionReminder] = {}
        self._company: defaultdict[int, dict[str, None]] = defaultdict(dict)
        """The keys of those that wait for company, by partition, in the order in which they began."""
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
        for key in [key for key, item in self._waiting.items() if item.partition not in partitions]:
            self.done(key)
        return new

    def wait(
        self,
        session_key: str,
        *,
        partition: int,
        tenant_id: str,
        last_turn_id: str,
        due_in: float,
        company: bool = False,
        asked_for: float = 0.0,
        for_budget: bool = False,
    ) -> None:
        """A turn was deferred, or found waiting. `due_in` counts from the first deferral, not from each one,
        `asked_for` from now."""
        known = self._waiting.get(session_key)
        now = self._clock()
        since, not_before = (now, 0.0) if known is None else (known.since, known.not_before)
        not_before = max(not_before, now + asked_for)
        due = max(since + due_in, not_before)
        item = SessionReminder(partition, tenant_id, last_turn_id, since, due, company, not_before, for_budget)
        self._put(session_key, item if known is None else replace(item, attempt=known.attempt))

    def heard(self, session_key: str) -> None:
        """A turn of the session came: whether it falls idle counts from now."""
        known = self._waiting.get(session_key)
        if known is not None:
            self._waiting[session_key] = replace(known, since=self._clock())

    def day_turned(self) -> None:
        """There is a new budget: who waits for one is due."""
        now = self._clock()
        for key, item in list(self._waiting.items()):
            if item.for_budget:
                self._put(key, replace(item, due=now, not_before=now, for_budget=False))

    def held_back(self, session_key: str) -> HeldBack | None:
        """For what, while it is not `not_before` yet."""
        item = self._waiting.get(session_key)
        if item is None or item.not_before <= self._clock():
            return None
        return "budget" if item.for_budget else "model_away"

    def done(self, session_key: str) -> None:
        item = self._waiting.pop(session_key, None)
        if item is not None and item.company:
            del self._company[item.partition][session_key]

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again: all its sessions that did not wait for anything else are due."""
        now = self._clock()
        for key, item in list(self._waiting.items()):
            if item.tenant_id == tenant_id and item.due > now and not item.company:
                self._put(key, replace(item, due=max(now, item.not_before)))

    def wait_for_company(self, partition: int) -> int:
        """How many sessions of a partition do."""
        company = self._company.get(partition)
        return len(company) if company else 0

    def company(self) -> list[int]:
        """The partitions that have such sessions."""
        return [partition for partition, keys in self._company.items() if keys]

    def caught_up(self, partition: int) -> None:
        """No company comes any more: who waits for it is due, the longest waiting first."""
        now = self._clock()
        for key in list(self._company[partition]):
            item = self._waiting[key]
            self._put(key, replace(item, due=max(min(item.due, now), item.not_before), company=False))

    def take_due(self, at_most: int) -> Iterator[tuple[str, SessionReminder]]:
        """The sessions whose time has come, the longest due first; each is due again after the pause, until done."""
        now = self._clock()
        while at_most > 0 and self._queue and self._queue[0][0] <= now:
            first = heapq.heappop(self._queue)
            if not self._holds(first):
                continue
            key = first[2]
            item = self._waiting[key]
            again = replace(item, since=now, due=now + self._pause, company=False, attempt=item.attempt + 1)
            self._put(key, again)
            at_most -= 1
            yield key, item

    def _holds(self, queued: tuple[float, int, str]) -> bool:
        item = self._waiting.get(queued[2])
        return item is not None and item.due == queued[0]

    def _put(self, key: str, item: SessionReminder) -> None:
        known = self._waiting.get(key)
        self._waiting[key] = item
        if known is None or known.due != item.due:
            heapq.heappush(self._queue, (item.due, next(self._place), key))
            if len(self._queue) > STALE_MAX + 2 * len(self._waiting):
                self._queue = [each for each in self._queue if self._holds(each)]
                heapq.heapify(self._queue)
        if item.company:
            self._company[item.partition][key] = None
        elif known is not None and known.company:
            self._company[item.partition].pop(key, None)

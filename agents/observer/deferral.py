"""Sessions with waiting turns, and the time at which the stage checks each of them again.

| a session waits for | the stage checks it again |
|---|---|
| the model | when the tenant's breaker closes, else after `patience`, but not before the breaker allows a call |
| the model, after a time-out | after a pause that doubles with each time-out (timeouts.py) |
| the budget | on the next day, or after the wait that the budget asked for |
| the end of an event that has used all its model calls | immediately |
| enough tokens | at its next event, or when it is idle |
| a queued event of the session | at that event, in this worker or in the partition's next worker |
| more turns from a backlog (batch wait) | at its next event, at the end of the backlog, or after `company` seconds |
| (found in the table at assignment) | immediately when a batch is full or the session ended, else as in a batch wait |

To check a session, the stage sends a command `observe` to itself, because only events have effects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Final

from ...memory.policies import ObservePolicy
from ...memory.upkeep.budget import day_of
from ...memory.working_set.observe_trigger import (
    BATCH_WAITS,
    ObserveNow,
    UnobservedTurns,
    Wait,
    WaitReason,
    is_behind,
    seconds_until_idle,
    time_to_observe,
)
from ...schemas import ids
from ...schemas.outcomes import OutRecord
from ...streams.engine.decision import Rows
from ...streams.log.port import PartitionBacklog
from ..common.pending_index import forget, pending_keys
from ..common.reminders import AT_ONCE, send_reminders
from .commands import reminder_record
from .reminders import HeldBack, SessionReminders
from .rows import WAITS, SessionRow, WaitingTurn, waiting_key
from .session_end import observed_sessions_index
from .waiting_count import WaitingCount

ASKED: Final = 2
"""Maximum number of unanswered reminders per event in flight."""
AheadOf = Callable[[int], PartitionBacklog | None]
"""Function that returns the backlog of a memory.turns partition, or None when it is unknown."""


class DeferredSessions:
    """Sessions with waiting turns. The state is in memory; the table is authoritative. See the module docstring."""

    def __init__(
        self,
        *,
        policy: ObservePolicy,
        ahead: AheadOf,
        send_durably: Callable[[OutRecord], Awaitable[None]],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        in_flight: int,
        waiting: WaitingCount,
    ) -> None:
        self._policy = policy
        self._ahead = ahead
        self._send_durably = send_durably
        self._now = now
        self._in_flight = in_flight
        self._reminders = SessionReminders(pause=policy.patience, clock=monotonic)
        self._waiting = waiting
        self._behind: set[int] = set()
        self._day = day_of(now())

    def behind(self, partition: int) -> bool:
        """Return whether the partition's backlog justifies a batch wait (`observe_trigger.is_behind`)."""
        ahead = self._ahead(partition)
        was = partition in self._behind
        if ahead is None:
            return was
        behind = is_behind(
            ahead.unread,
            held=ahead.held,
            was=was,
            waiting=self._reminders.count_batch_waits(partition),
            policy=self._policy,
        )
        if behind:
            self._behind.add(partition)
        else:
            self._behind.discard(partition)
        return behind

    def held_back(self, key: str) -> HeldBack | None:
        """Return the reason that blocks the session: its model's server asked for a pause, or the budget is spent."""
        return self._reminders.held_back(key)

    def note_wait(
        self,
        session: SessionRow,
        key: str,
        partition: int,
        reason: WaitReason,
        *,
        retry_after: float = 0.0,
        open_for: float = 0.0,
    ) -> None:
        """Note the reason why the session waits after one of its events.

        `retry_after`: seconds that the model's server or the budget asked for; a new process does not know this time.
        `open_for`: seconds until the breaker of the tenant's model allows a call.
        """
        self._waiting.set(key, partition, session.waiting)
        if not session.waiting:
            self._reminders.remove(key)
        elif reason in BATCH_WAITS:
            self._wait(session, key, partition, due_in=self._policy.company, batch_wait=reason == "backlog")
        elif reason == "enough_rounds":
            self._wait(session, key, partition, due_in=0.0)
        elif reason == "few_tokens":
            self._reminders.restart_idle_clock(key)
            self._wait(session, key, partition, due_in=self._policy.idle)
        else:
            due_in, for_budget = max(self._policy.patience, open_for), reason == "budget"
            self._wait(session, key, partition, due_in=due_in, retry_after=retry_after, for_budget=for_budget)

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the sessions of all other partitions."""
        self._behind &= partitions
        self._reminders.retain(partitions)
        self._waiting.retain(partitions)

    async def rediscover(self, partition: int, rows: Rows, *, partitions: int) -> None:
        """Set the reminders of sessions with waiting turns in a newly assigned partition.

        The session's row counts its waiting turns. A waiting row that no session counts is ignored.
        """
        indexed = observed_sessions_index(self._now)
        async for key in pending_keys(rows, partition, WAITS, partitions=partitions, indexed=indexed):
            session = SessionRow.load(rows, key, partition=partition)
            if not session.waiting:
                await forget(rows, partition, WAITS, key)
                continue
            self._waiting.set(key, partition, session.waiting)
            if key not in self._reminders:  # an event of the session has newer information
                self._remind(session, key, partition, rows)

    def _remind(self, session: SessionRow, key: str, partition: int, rows: Rows) -> None:
        match self._in_a_backlog(session):
            case ObserveNow():
                self._wait(session, key, partition, due_in=0.0)
            case Wait(reason="few_tokens"):
                last = rows.row(waiting_key(key, session.waiting_next - 1), partition=partition)
                self._wait(session, key, partition, due_in=self._until_idle(last))
            case Wait():
                self._wait(session, key, partition, due_in=self._policy.company, batch_wait=True)

    def _until_idle(self, last: bytes | None) -> float:
        """Return the seconds until the session is idle. `last`: the row of its last waiting turn.

        When the row is missing, the session is due now, and its observation reports the missing row.
        """
        if last is None:
            return 0.0
        return seconds_until_idle(WaitingTurn.read(last).deferred_at, now=self._now(), policy=self._policy)

    def _in_a_backlog(self, session: SessionRow) -> ObserveNow | Wait:
        """Return the session's next action under the assumption that its partition has a backlog."""
        question = UnobservedTurns(
            turns=session.waiting, tokens=session.waiting_tokens, ends_session=session.waiting_ends, behind=True
        )
        return time_to_observe(question, self._policy)

    def _wait(
        self,
        session: SessionRow,
        key: str,
        partition: int,
        *,
        due_in: float,
        batch_wait: bool = False,
        retry_after: float = 0.0,
        for_budget: bool = False,
    ) -> None:
        self._reminders.wait(
            key,
            partition=partition,
            tenant_id=ids.split(key)[0],
            last_turn_id=session.waiting_last,
            due_in=due_in,
            batch_wait=batch_wait,
            retry_after=retry_after,
            for_budget=for_budget,
        )

    def wake(self, tenant_id: str) -> None:
        """Make the tenant's sessions due, because its model answers again."""
        self._reminders.wake(tenant_id)

    def due(self, at_most: int) -> Iterator[OutRecord]:
        """Yield due commands, at most `at_most`."""
        today = day_of(self._now())
        if today != self._day:
            self._day = today
            self._reminders.release_budget_waits()
        for partition in self._reminders.partitions_with_batch_waits():
            ahead = self._ahead(partition)
            if ahead is not None and ahead.unread <= self._policy.backlog and not self.behind(partition):
                self._reminders.caught_up(partition)
        for key, item in self._reminders.take_due(at_most):
            yield reminder_record(key, item, now=self._now())

    async def run(self) -> None:
        """Send due reminders until cancelled."""
        await send_reminders(self.due, self._send_durably, room=self._room)

    def _room(self) -> int:
        """Return the number of sessions to which a command may be sent now.

        `ASKED` commands per event in flight keep every worker slot busy; more commands would only wait in the log. At
        least `AT_ONCE` commands may be sent, because earlier commands may be lost.
        """
        return max(AT_ONCE, ASKED * self._in_flight - self._reminders.count_asked())

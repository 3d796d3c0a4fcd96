"""Which sessions wait, for what, and who asks the question for them when no event of theirs does.

What ends a wait:

| it waits for | asked again |
|---|---|
| the model | when the tenant's breaker closes, else after the pause |
| the budget | when the day turns, or after the time that the budget names |
| enough tokens | by its next event, else when it has fallen idle |
| the event of its session that is queued | by that event, here or where its partition goes |
| company that the backlog may bring | by its next event, when the backlog is read, or after `company` seconds |
| (found in the table with its partition) | at once when a round is full or the session ended, else as for company |

Nothing has an effect outside an event: asking is a command `observe` that the stage sends itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime

import structlog

from ...memory.policies import ObservePolicy
from ...memory.upkeep.budget import day_of
from ...memory.working_set.observe_trigger import (
    COMPANY,
    ObserveNow,
    UnobservedTurns,
    Wait,
    WaitReason,
    is_behind,
    seconds_until_idle,
    time_to_observe,
)
from ...schemas import ids
from ...schemas.errors import Relinquished, Transient
from ...schemas.outcomes import OutRecord
from ...streams.engine.handler import Rows
from ...streams.log.port import RecordAhead
from .commands import reminder_record
from .reminders import COMMANDS_PER_SECOND, HeldBack, SessionReminders
from .rows import SessionRow, WaitingTurn, session_of_waiting_key, waiting_key

log = structlog.get_logger(__name__)
TICK = 0.2
"""Seconds between two looks at what is due."""

AheadOf = Callable[[int], RecordAhead | None]
"""Of a partition of memory.turns; None: not known yet."""


class DeferredSessions:
    """See the module. In memory only; the table has the truth."""

    def __init__(
        self,
        *,
        policy: ObservePolicy,
        ahead: AheadOf,
        send_durably: Callable[[OutRecord], Awaitable[None]],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._ahead = ahead
        self._send_durably = send_durably
        self._now = now
        self._reminders = SessionReminders(pause=policy.patience, clock=monotonic)
        self._behind: set[int] = set()
        self._day = day_of(now())

    def behind(self, partition: int) -> bool:
        """Whether a session of this partition may expect company (`memory/working_set/observe_trigger.py`)."""
        ahead = self._ahead(partition)
        was = partition in self._behind
        if ahead is None:
            return was
        behind = is_behind(
            ahead.unread,
            held=ahead.held,
            was=was,
            waiting=self._reminders.wait_for_company(partition),
            policy=self._policy,
        )
        if behind:
            self._behind.add(partition)
        else:
            self._behind.discard(partition)
        return behind

    def held_back(self, key: str) -> HeldBack | None:
        """For what this session is not asked about yet: its model's server wants more time than has passed since, or
        the budget has nothing left before."""
        return self._reminders.held_back(key)

    def remember(
        self, session: SessionRow, key: str, partition: int, reason: WaitReason, *, asked_for: float = 0.0
    ) -> None:
        """An event of this session ended with this answer. `asked_for`: so many seconds the model's server wants to be
        left alone (Retry-After), or the budget has nothing left; nobody knows it any more in a process that starts."""
        if not session.waiting:
            self._reminders.done(key)
        elif reason in COMPANY:
            self._wait(session, key, partition, due_in=self._policy.company, company=reason == "backlog")
        elif reason == "few_tokens":
            self._reminders.heard(key)
            self._wait(session, key, partition, due_in=self._policy.idle)
        else:
            due_in, for_budget = self._policy.patience, reason == "budget"
            self._wait(session, key, partition, due_in=due_in, asked_for=asked_for, for_budget=for_budget)

    def found(self, partitions: frozenset[int], rows: Rows) -> None:
        """These partitions are ours now: looks for sessions with waiting turns. A waiting row alone says little: the
        session's row counts it."""
        self._behind &= partitions
        for partition in self._reminders.assigned(partitions):
            found = {session_of_waiting_key(key) for key, _ in rows.scan(partition)} - {None}
            if not found:
                continue
            for key, raw in rows.scan(partition):
                if key in found:
                    session = SessionRow.read(raw)
                    if not session.waiting:
                        continue
                    match self._in_a_backlog(session):
                        case ObserveNow():
                            self._wait(session, key, partition, due_in=0.0)
                        case Wait(reason="few_tokens"):
                            last = rows.row(waiting_key(key, session.waiting_next - 1))
                            self._wait(session, key, partition, due_in=self._until_idle(last))
                        case Wait():
                            self._wait(session, key, partition, due_in=self._policy.company, company=True)

    def _until_idle(self, last: bytes | None) -> float:
        """Seconds. `last`: the row of the session's last waiting turn; one that is missing is the observation's to
        tell."""
        if last is None:
            return 0.0
        return seconds_until_idle(WaitingTurn.read(last).deferred_at, now=self._now(), policy=self._policy)

    def _in_a_backlog(self, session: SessionRow) -> ObserveNow | Wait:
        """What the answer would be even in the middle of one."""
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
        company: bool = False,
        asked_for: float = 0.0,
        for_budget: bool = False,
    ) -> None:
        self._reminders.wait(
            key,
            partition=partition,
            tenant_id=ids.split(key)[0],
            last_turn_id=session.waiting_last,
            due_in=due_in,
            company=company,
            asked_for=asked_for,
            for_budget=for_budget,
        )

    def wake(self, tenant_id: str) -> None:
        """The tenant's model answers again."""
        self._reminders.wake(tenant_id)

    def due(self, at_most: int) -> Iterator[OutRecord]:
        """The commands whose time has come."""
        today = day_of(self._now())
        if today != self._day:
            self._day = today
            self._reminders.day_turned()
        for partition in self._reminders.company():
            ahead = self._ahead(partition)
            if ahead is not None and ahead.unread <= self._policy.backlog and not self.behind(partition):
                self._reminders.caught_up(partition)
        for key, item in self._reminders.take_due(at_most):
            yield reminder_record(key, item, now=self._now())

    async def run(self) -> None:
        """Asks for sessions that are due, at most 50 a second."""
        while True:
            for record in self.due(round(COMMANDS_PER_SECOND * TICK)):
                try:
                    await self._send_durably(record)
                except (Transient, Relinquished) as away:  # due again after the pause
                    log.warning("reminder_not_sent", why=str(away))
            await asyncio.sleep(TICK)

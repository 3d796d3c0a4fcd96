"""Turns of an owner that one outcome counts: the turn in hand, and those that wait behind it in its lane."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ...memory.policies import MemoryPolicy
from ...memory.upkeep.consolidation import count_turn, is_run_due
from ...memory.upkeep.summaries import add_turn
from ...streams.engine.handler import Rows
from ...streams.log.port import Record
from ..common.handled_sessions import HandledSessions
from .events import ReflectedTurn
from .rows import CountedTurns, ProgressRow, session_row_key, turns_of
from .schedule import may_try_again
from .steps.hygiene import after_turn, with_visits

QUEUED_MAX: Final = 32
"""Queued turns that one outcome counts. It keeps the rows of their sessions, so this bounds the owner's row. A crash
decides so many again at most."""


class TurnGroup:
    """Counts turns of one owner in their order. `row`: the owner's row after them.

    A turn that makes a run due is the last one: the run sees the counters that it would see if each turn were counted
    by itself.
    """

    def __init__(
        self,
        row: ProgressRow,
        owner_key: str,
        rows: Rows,
        *,
        sessions: HandledSessions,
        consolidates: bool,
        now: datetime,
    ) -> None:
        """`consolidates`: whether a run may make facts of episodes."""
        self.row = row
        self.last: tuple[ReflectedTurn, Record] | None = None
        """The last turn that was counted, and its record."""
        self.is_due = False
        """Whether it makes a run due."""
        self.duplicates = 0
        """Turns that were counted before."""
        self._owner_key = owner_key
        self._rows = rows
        self._sessions = sessions
        self._consolidates = consolidates
        self._now = now
        self._sessions_before: dict[str, CountedTurns] = {}
        self._sessions_after: dict[str, CountedTurns] = {}
        self._counted: dict[str, list[str]] = {}
        """The ids of the counted turns, by session."""

    def add(self, turn: ReflectedTurn, record: Record, policy: MemoryPolicy) -> None:
        """Count a turn. `policy`: that of its tenant and agent."""
        recorded = turn.recorded
        session = turn.session_key
        if session not in self._sessions_after:
            self._sessions_before[session] = turns_of(self._rows, self._owner_key, session)
        before = self._sessions_after.get(session, self._sessions_before[session])
        if before.has(recorded.number):
            self.duplicates += 1
            return
        self._sessions_after[session] = self._sessions.added(before, recorded.number, record)
        self._counted.setdefault(session, []).append(recorded.turn_id)
        self.row = self._count(turn, record, policy)
        self.last = turn, record
        waiting = self.row.waiting
        may_run = waiting is None or may_try_again(waiting, self.row.counters, policy.consolidation)
        self.is_due = may_run and is_run_due(self.row.counters, policy.consolidation)

    def _count(self, turn: ReflectedTurn, record: Record, policy: MemoryPolicy) -> ProgressRow:
        recorded = turn.recorded
        row = self.row.model_copy(
            update={
                "counters": count_turn(self.row.counters, recorded),
                "counted_since": self.row.counted_since or self._now,
                "changed_facts": self.row.changed_facts + len(recorded.fact_ids),
                "unsummarised": add_turn(self.row.unsummarised, recorded) if policy.consolidation.summary_turns else (),
            }
        )
        hygiene = with_visits(policy.hygiene, consolidates=self._consolidates)
        return after_turn(row, at=record.timestamp, run_id=lambda: turn.run_id, policy=hygiene, now=self._now)

    def session_rows(self) -> dict[str, bytes]:
        """Return the rows of the turns' sessions, each after its index row."""
        rows: dict[str, bytes] = {}
        for session, changed in self._sessions_after.items():
            changed = changed.model_copy(update={"counted": changed.counted.add(*self._counted[session])})
            key = session_row_key(self._owner_key, session)
            rows |= self._sessions.rows_of(key, self._sessions_before[session], changed)
        return rows

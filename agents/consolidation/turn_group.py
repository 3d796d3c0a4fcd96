"""Turns of an owner that one outcome counts: the current turn and the queued turns behind it in its lane."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ...memory.policies import MemoryPolicy
from ...memory.upkeep.consolidation import count_turn, is_run_due
from ...memory.upkeep.summaries import add_turn
from ...schemas.turn_number import TurnNumber
from ...streams.engine.decision import Rows
from ...streams.log.port import Record
from ..common.handled_sessions import HandledSessions
from ..common.seen_ids import SeenIds
from ..common.stored_row import EPOCH_VERSION
from .events import ReflectedTurn
from .judgement import with_listed
from .rows import CountedTurns, ProgressRow, RecentTurns, session_row_key
from .schedule import may_try_again
from .steps.hygiene import after_turn, with_visits

QUEUED_MAX: Final = 32
"""Maximum number of queued turns in one outcome. The outcome may contain the session rows of these turns, so this
number limits the size of the owner's row. After a crash, at most this many turns are decided again."""
RECENT_MAX: Final = 32
"""Maximum number of counted turns in the owner's row, about 25 bytes each. With more turns, all move to the session
rows."""


class TurnGroup:
    """Counter of turns of one owner, in order. `row`: the owner's row after the counted turns.

    A turn that makes a run due is the last turn of the group. So the run sees the same counters as without grouping.
    """

    def __init__(
        self,
        row: ProgressRow,
        owner_key: str,
        rows: Rows,
        *,
        sessions: HandledSessions,
        consolidates: bool,
        judges: bool,
        now: datetime,
    ) -> None:
        """`consolidates`: True when a run may turn episodes into facts. `judges`: True when a model may judge pending
        facts."""
        self.row = row
        self.last: tuple[ReflectedTurn, Record] | None = None
        """The last counted turn, and its record."""
        self.is_due = False
        """True when the last counted turn makes a run due."""
        self.duplicates = 0
        """Number of turns that were counted before."""
        self.unlisted = 0
        """Number of pending facts for which the list of judgements has no room."""
        self._owner_key = owner_key
        self._rows = rows
        self._sessions = sessions
        self._consolidates = consolidates
        self._judges = judges
        self._now = now
        self._table: dict[str, CountedTurns] = {}
        """The session rows of the turns, as stored in the table."""
        self._recent = {each.session: each for each in row.recent}
        self._counted: dict[str, list[ReflectedTurn]] = {}
        """The counted turns, by session."""
        self._numbers: set[tuple[str, TurnNumber]] = set()
        self._last_at: dict[str, int] = {}

    def add(self, turn: ReflectedTurn, record: Record, policy: MemoryPolicy) -> None:
        """Count a turn. `policy`: the policy of its tenant and agent."""
        session, number = turn.session_key, turn.recorded.number
        if session not in self._table:
            self._table[session] = CountedTurns.load(self._rows, session_row_key(self._owner_key, session))
        recent = self._recent.get(session)
        if (
            (session, number) in self._numbers
            or (recent is not None and recent.has(number))
            or self._table[session].has(number)
        ):
            self.duplicates += 1
            return
        self._numbers.add((session, number))
        self._counted.setdefault(session, []).append(turn)
        last_at = self._last_at.get(session) or (recent or self._table[session]).last_at
        self._last_at[session] = self._sessions.written_at(record, last_at)
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
        if self._judges:
            row, unlisted = with_listed(row, recorded.pending_fact_ids, run_id=turn.run_id, now=self._now)
            self.unlisted += unlisted
        hygiene = with_visits(policy.hygiene, consolidates=self._consolidates)
        return after_turn(row, at=record.timestamp, run_id=lambda: turn.run_id, policy=hygiene, now=self._now)

    def with_turns(self, row: ProgressRow) -> tuple[ProgressRow, dict[str, bytes]]:
        """Add the counted turns to the owner's row.

        With more than `RECENT_MAX` turns in the row, all of them move to their session rows. Return those rows, each
        after its index row.
        """
        recent = dict(self._recent)
        for session, turns in self._counted.items():
            recent[session] = self._with_counted(session, turns)
        if sum(len(each.numbers) for each in recent.values()) <= RECENT_MAX:
            return row.model_copy(update={"recent": tuple(recent.values()), "row_version": EPOCH_VERSION}), {}
        changed: dict[str, bytes] = {}
        for session, each in recent.items():
            key = session_row_key(self._owner_key, session)
            before = self._table.get(session) or CountedTurns.load(self._rows, key)
            changed |= self._sessions.rows_of(key, before, before.with_recent(each))
        return row.model_copy(update={"recent": ()}), changed

    def _with_counted(self, session: str, turns: Sequence[ReflectedTurn]) -> RecentTurns:
        before = self._recent.get(session)
        numbers = tuple((each.recorded.number.epoch, each.recorded.number.n) for each in turns)
        turn_ids = (before.turn_ids if before else SeenIds()).add(*(each.recorded.turn_id for each in turns))
        return RecentTurns(
            session=session,
            numbers=(before.numbers if before else ()) + numbers,
            turn_ids=turn_ids,
            last_at=self._last_at[session],
        )

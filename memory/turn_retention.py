"""Where a message is kept, and for how long. Pure.

A message lies in the period of its record's time. That time stays the same when the turn is delivered again, put back
from the dead letters, or sent again to another partition, so the turn finds its old place. What a user said about the
time has no part in it: an imported history would go at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..schemas.periods import Period

AHEAD = timedelta(days=1)
"""How far a record may be dated after the worker's clock."""
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""A record that is dated earlier was written by a machine without a clock: there was no memory to send it to."""
MARGIN = timedelta(days=1)
"""A period is written to no more for so long before it is dropped. So no write meets its deletion."""


@dataclass(frozen=True, slots=True)
class TurnRetention:
    """How long periods are kept."""

    days: float
    """After the end of a period. 0: for ever."""

    def is_over(self, period: Period, *, at: datetime) -> bool:
        """Tell whether nothing is written to this period any more."""
        since = self.over_since(at)
        return since is not None and period.ends <= since

    def over_since(self, at: datetime) -> datetime | None:
        """Return the moment so that all periods that ended by then are over. None: none is."""
        return at - timedelta(days=self.days) if self.days > 0 else None

    def dropped_before(self, at: datetime) -> datetime | None:
        """Return the moment so that all periods that ended by then are dropped. None: none is."""
        since = self.over_since(at)
        return None if since is None else since - MARGIN


def recorded_at(written: datetime | None, *, now: datetime, standing: Sequence[Period]) -> datetime:
    """Return the time that says where a turn is kept: its record's, within bounds.

    A record without a usable time counts as written now. One that is dated ahead of the worker's clock counts as
    written now or at the begin of the newest period, whichever is later: so neither a producer whose clock is ahead nor
    a worker whose clock is behind moves it far.
    """
    latest = max([now, *(period.begins for period in standing)])
    if written is None or written < EARLIEST or written > max(latest, now + AHEAD):
        return latest
    return written


def log_time(newest: datetime | None, *, now: datetime, opened: Sequence[Period]) -> datetime | None:
    """Return the time by which periods end: that of the newest turn, and no later than the worker's clock.

    `newest`: the newest `recorded_at` of this process. `opened`: the periods that a turn opened, which tell what was
    seen before a restart. So neither a worker nor a producer whose clock is ahead drops anything early; both together
    do. None: nothing is known, and nothing ends.
    """
    known = [*(period.begins for period in opened), *([] if newest is None else [newest])]
    return min(now, max(known)) if known else None

"""Retention of messages: the period of a message, and the end of periods. Pure.

A message belongs to the period of its record's timestamp. The timestamp stays the same when the turn is delivered
again, put back from the dead letters, or sent again to another partition. So the turn is in the same period as its
earlier copy. The time that the user gave for the turn does not decide the period: otherwise an imported old history
would be dropped immediately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..schemas.periods import Period

AHEAD = timedelta(days=1)
"""Maximum time by which a record's timestamp may be after the worker's clock."""
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""Earliest valid timestamp. This software did not exist before, so an earlier timestamp comes from a machine without a
clock."""
MARGIN = timedelta(days=1)
"""Time between the last write to a period and the deletion of the period, so that no write goes to a period that is
being deleted."""


@dataclass(frozen=True, slots=True)
class TurnRetention:
    """The retention of periods."""

    days: float
    """Days that a period is kept after its end. 0: for ever."""

    def is_over(self, period: Period, *, at: datetime) -> bool:
        """Return whether this period is closed for writes."""
        since = self.over_since(at)
        return since is not None and period.ends <= since

    def over_since(self, at: datetime) -> datetime | None:
        """Return the time by which a period must have ended to be closed for writes. None: no period is closed."""
        return at - timedelta(days=self.days) if self.days > 0 else None

    def dropped_before(self, at: datetime) -> datetime | None:
        """Return the time by which a period must have ended to be dropped. None: no period is dropped."""
        since = self.over_since(at)
        return None if since is None else since - MARGIN


def recorded_at(written: datetime | None, *, now: datetime, standing: Sequence[Period]) -> datetime:
    """Return the time that decides the period of a turn: usually the timestamp of its record.

    A timestamp is invalid when it is missing, before `EARLIEST`, or after both `now` + `AHEAD` and the beginning of the
    newest period in `standing`. For an invalid timestamp, return `now` or the beginning of the newest period, whichever
    is later. These rules keep the turn in a period near the present when the clock of a producer is fast or the clock
    of the worker is slow.
    """
    latest = max([now, *(period.begins for period in standing)])
    if written is None or written < EARLIEST or written > max(latest, now + AHEAD):
        return latest
    return written


def log_time(newest: datetime | None, *, now: datetime, opened: Sequence[Period]) -> datetime | None:
    """Return the clock of retention: the time of the newest turn, but not after the worker's clock.

    `newest`: the newest `recorded_at` of this process. `opened`: the periods in which turns were recorded. After a
    restart, they show the time that the clock of retention had reached. A period is dropped early only if the clock of
    the worker and the clock of a producer are both fast. None: no turn is known, and no period ends.
    """
    known = [*(period.begins for period in opened), *([] if newest is None else [newest])]
    return min(now, max(known)) if known else None

"""Retention of messages: the period of a message, and the end of periods. Pure.

A message belongs to the period of its record's timestamp. The timestamp stays the same when the turn is delivered
again, put back from the dead letters, or sent again to another partition, so the turn finds its earlier copy. The time
that the user gave for the turn does not count: an imported history would be dropped immediately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..schemas.periods import Period

AHEAD = timedelta(days=1)
"""Maximum distance of a record's timestamp after the worker's clock."""
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""Earliest valid timestamp. This software did not exist before, so an earlier timestamp comes from a machine without a
clock."""
MARGIN = timedelta(days=1)
"""Time between the last write to a period and its deletion, so that no write meets the deletion."""


@dataclass(frozen=True, slots=True)
class TurnRetention:
    """The retention of periods."""

    days: float
    """Days that a period is kept after its end. 0: for ever."""

    def is_over(self, period: Period, *, at: datetime) -> bool:
        """Return whether writes to this period are over."""
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
    """Return the time that decides the period of a turn: its record's timestamp, within bounds.

    Without a timestamp, or with one before `EARLIEST` or too far ahead of the worker's clock, it is `now` or the
    beginning of the newest period, whichever is later. So neither a producer with a fast clock nor a worker with a slow
    clock moves a turn far.
    """
    latest = max([now, *(period.begins for period in standing)])
    if written is None or written < EARLIEST or written > max(latest, now + AHEAD):
        return latest
    return written


def log_time(newest: datetime | None, *, now: datetime, opened: Sequence[Period]) -> datetime | None:
    """Return the clock of retention: the time of the newest turn, but not after the worker's clock.

    `newest`: the newest `recorded_at` of this process. `opened`: the periods that turns opened; they show the time
    reached before a restart. A period is dropped early only if the clock of the worker and the clock of a
    producer are both fast. None: no turn is known, and no period ends.
    """
    known = [*(period.begins for period in opened), *([] if newest is None else [newest])]
    return min(now, max(known)) if known else None

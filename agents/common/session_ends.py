"""Expiry of session rows: indexes by time, and the clocks by which rows age.

Each session row has an index row `ends<seconds>`, written together with the row. An observer row with an outcome also
has `trims<seconds>`, for the time at which it loses the outcome. Index rows are sorted by time, so a scan starts at
the oldest and reads only rows that may be old. The seconds are the row's time when the index row was written. A later
write of the row writes a new index row only after half of the row's lifetime. A scan that finds a row with a later time
moves the index row to this time.

The age of a row is measured with the earlier of two clocks: the worker's clock, and the newest record time that the
stage has handled and committed in the row's partition. So a worker whose clock is ahead deletes nothing early. A worker
that reads old records deletes nothing early either. A record time ahead of the worker's clock does not count until that
clock reaches it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from ...memory.policies import RowsPolicy
from ...schemas.row_keys import INDEX, index_key
from ...schemas.topics import Topic
from ...streams.engine.applied import Committed
from ...streams.engine.decision import Rows
from ...streams.engine.row_scan import scan
from ...streams.log.port import Record
from .pending_index import INDEX_ROW

ENDS: Final = "ends"
"""Prefix of the kinds of index rows for expiry; seconds follow."""
TRIMS: Final = "trims"
"""Prefix of the kinds of index rows for outcome removal; seconds follow."""
DAY: Final = 86_400
CLOCK_AHEAD: Final = 300
"""Seconds that a record's time may be ahead of the worker's clock. A later time does not count yet."""
LOOK_EVERY: Final = 60.0
"""Seconds between two scans of a partition's index, or a tenth of the row lifetime when this is less."""


def timed_kind(name: str, at: int) -> str:
    """Return the kind of an index row. `name`: ENDS or TRIMS; `at`: seconds since 1970."""
    return f"{name}{at:012d}"


def timed_key(name: str, row_key: str, at: int) -> str:
    """Return the key of an index row."""
    return index_key(timed_kind(name, at), row_key)


def _parts(name: str, key: str) -> tuple[int, str]:
    kind, _, row_key = key[len(INDEX) :].partition(INDEX)
    return int(kind.removeprefix(name)), row_key


class LogTime:
    """The newest time of handled and committed records, by partition. Records arrive in offset order.

    A time too far ahead of the worker's clock does not count. The smallest such time is kept. It counts when the first
    record arrives after the worker's clock has reached this time. So one wrong time has no effect. When the worker's
    clock is behind all producers, the log time follows the worker's clock.
    """

    def __init__(self) -> None:
        self._seen: dict[int, deque[tuple[int, int]]] = {}
        """(offset, seconds) of records not committed at the last check, ascending in both."""
        self._newest: dict[int, int] = {}
        self._ahead: dict[int, int] = {}
        """The smallest time that was ahead of the worker's clock, by partition."""

    def note(self, partition: int, offset: int, seconds: int, *, until: int) -> None:
        """Store the time of a handled record. `until`: the latest time that the worker's clock allows."""
        times = {seconds, self._ahead.pop(partition, seconds)}
        beyond = [each for each in times if each > until]
        if beyond:
            self._ahead[partition] = min(beyond)
        if len(beyond) == len(times):
            return
        newest = max(times.difference(beyond))
        seen = self._seen.setdefault(partition, deque())
        if not seen or seen[-1][1] < newest:
            seen.append((offset, newest))

    def of(self, partition: int, committed: int | None) -> int | None:
        """Return the log time in seconds, or None before the first commit. `committed`: the next offset to read."""
        seen = self._seen.get(partition, deque())
        while committed is not None and seen and seen[0][0] < committed:
            self._newest[partition] = max(self._newest.get(partition, 0), seen.popleft()[1])
        return self._newest.get(partition)

    def retain(self, partitions: frozenset[int]) -> None:
        self._seen = {each: seen for each, seen in self._seen.items() if each in partitions}
        self._newest = {each: newest for each, newest in self._newest.items() if each in partitions}
        self._ahead = {each: ahead for each, ahead in self._ahead.items() if each in partitions}


class SessionEnds:
    """Expiry of session rows. `topic`: the topic whose record times advance the log time."""

    def __init__(
        self,
        policy: RowsPolicy,
        topic: Topic,
        *,
        committed: Committed,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._life = policy.session_days * DAY
        trim = policy.trim_days * DAY
        self._ages = {ENDS: self._life, TRIMS: min(trim, self._life) if self._life else trim}
        """The age in seconds from which a row is old, for each index (ENDS and TRIMS)."""
        self._topic = topic.name
        self._committed = committed
        self._now = now
        self._monotonic = monotonic
        self._log_time = LogTime()
        self._look_at: dict[tuple[str, int], float] = {}

    def note(self, record: Record) -> None:
        """Note the time of a record that is about to be handled."""
        if record.position.topic == self._topic:
            until, seconds = int(self._now().timestamp()) + CLOCK_AHEAD, record.timestamp // 1000
            self._log_time.note(record.position.partition, record.position.offset, seconds, until=until)

    def written_at(self, record: Record, last_at: int) -> int:
        """Return the time of a row that this event writes. `last_at`: the row's previous time.

        A time ahead of the worker's clock counts, because that clock may be wrong. The time is cut to one row lifetime
        ahead of the worker's clock. So a record dated far ahead keeps a row for two lifetimes at most.
        """
        now = int(self._now().timestamp())
        told = max(last_at, record.timestamp // 1000)
        return max(now, min(told, now + int(max(self._ages.values()))))

    def needs_entry(self, last_at: int, at: int) -> bool:
        """Return whether a row with the time `last_at` needs an index row when it is written at `at`.

        True for a new row, and for a row so old that a scan may be deleting it now.
        """
        return not last_at or at - last_at > self._life / 2

    def entry(self, row_key: str, last_at: int, at: int) -> Mapping[str, bytes]:
        """Return the index row to write before a row; empty when the row already has an index row."""
        return {timed_key(ENDS, row_key, at): INDEX_ROW} if self.needs_entry(last_at, at) else {}

    def is_old(self, last_at: int, partition: int) -> bool:
        """Return whether a row is old enough to be deleted."""
        until = self._until(partition, ENDS)
        return until is not None and last_at <= until

    def _until(self, partition: int, index: str) -> int | None:
        """Return the latest time at which a row counts as old, or None when no row is old."""
        newest = self._log_time.of(partition, self._committed(self._topic, partition))
        age = self._ages[index]
        return None if newest is None or not age else int(min(newest, self._now().timestamp()) - age)

    def retain(self, partitions: frozenset[int]) -> None:
        self._log_time.retain(partitions)
        self._look_at.clear()

    async def look(
        self,
        partition: int,
        rows: Rows,
        *,
        last_at: Callable[[bytes], int],
        old: Callable[[str, str, int], Awaitable[None]],
        index: str = ENDS,
    ) -> None:
        """Scan for the old rows of a partition, at most once per interval.

        `last_at(value)` returns the time of a row, or 0 for a row of an earlier version. `old(index key, row key,
        time)` is called for each old row. Raises Transient, Relinquished, LaterVersion.
        """
        until, now = self._until(partition, index), self._monotonic()
        if until is None or now < self._look_at.get((index, partition), 0.0):
            return
        async for key, _ in scan(rows, partition, prefix=INDEX + index):
            at, row_key = _parts(index, key)
            if at > until:
                break
            raw = rows.row(row_key, partition=partition)
            last = 0 if raw is None else last_at(raw) or at
            if last > until:  # the row was written after its index row
                await rows.put({timed_key(index, row_key, last): INDEX_ROW, key: None}, partition=partition)
            elif raw is None:
                await rows.put({key: None}, partition=partition)
            else:
                await old(key, row_key, last)
        self._look_at[index, partition] = now + min(LOOK_EVERY, self._ages[index] / 10)

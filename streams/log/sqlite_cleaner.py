"""Retention and compaction of the log on disk, in short steps between the appends.

A pass first makes a plan (`plan`), on a separate connection, in one snapshot, and with a limited number of keys. Then
it removes records in short transactions. The cleaner works like Kafka's cleaner, with Kafka's settings
`cleanup.policy`, `retention.ms`, `min.compaction.lag.ms`, `max.compaction.lag.ms`, `min.cleanable.dirty.ratio` and
`delete.retention.ms`. It
ignores `retention.bytes`, `segment.*` and `compression.type`. It removes less than Kafka in two cases. First, the last
record of a partition always stays, so that no reader waits for an end offset that no longer exists. Second, retention
stops at the lowest committed offset of any group, so that a machine that was off for longer than the retention still
finds its work.

A timestamp after `now` comes from a wrong clock and does not show a record's age. Kafka keeps such a record, and all
records after it, until the time of the timestamp. Here the record counts as being as old as the next record with a
valid timestamp (`_old_until`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .sqlite_tables import LogTopic, offset_of, row_id

#: Maximum number of keys in one pass (about 20 MB of memory). The next pass continues after them.
MAX_KEYS = 100_000
#: Rows removed in one transaction, which takes about a millisecond, so appends hardly wait.
STEP = 500

_DAY_MS = 86_400_000
_RETENTION_MS = 7 * _DAY_MS


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows that one pass removes from a partition (row ids), and the partition's state afterwards."""

    part: int
    remove: tuple[int, ...]
    first: int
    cleaned: int
    kept: int
    horizon: int
    horizon_at: int


@dataclass(frozen=True, slots=True)
class _Part:
    first: int
    next: int
    cleaned: int
    kept: int
    horizon: int
    horizon_at: int


def plan(conn: sqlite3.Connection, topic: LogTopic, part: int, *, now: int) -> Plan | None:
    """Plan the clean-up of a partition at `now` (ms since 1970); None when nothing is due."""
    row = conn.execute(
        "SELECT first, next, cleaned, kept, horizon, horizon_at FROM part WHERE id = ?", (part,)
    ).fetchone()
    if row is None:
        return None
    state = _Part(*row)
    wrong_clock = state.horizon_at > now
    if wrong_clock:  # `horizon_at` is in the future: the delay of the tombstones starts now
        state = replace(state, horizon_at=now)
    policies = {policy.strip() for policy in topic.config.get("cleanup.policy", "delete").split(",")}
    made = _retention(conn, topic.config, part, state, now=now) if "delete" in policies else None
    if made is None and "compact" in policies:
        made = _compaction(conn, topic.config, part, state, now=now)
    if made is None and wrong_clock:
        made = Plan(part, (), state.first, state.cleaned, state.kept, state.horizon, state.horizon_at)
    return made


def apply(conn: sqlite3.Connection, step: Plan, *, last: bool) -> None:
    """Remove the rows of one step. The last step of a plan also updates the partition's state.

    The order of the steps does not matter. After a crash between steps the next pass removes the rest.
    """
    conn.executemany("DELETE FROM record WHERE at = ?", [(at,) for at in step.remove])
    if last:
        conn.execute(
            "UPDATE part SET first = max(first, ?), cleaned = ?, kept = ?, horizon = ?, horizon_at = ? WHERE id = ?",
            (step.first, step.cleaned, step.kept, step.horizon, step.horizon_at, step.part),
        )


def _number(config: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(config.get(name, default))
    except ValueError:
        return default


def _retention(
    conn: sqlite3.Connection, config: Mapping[str, str], part: int, state: _Part, *, now: int
) -> Plan | None:
    keep = _number(config, "retention.ms", _RETENTION_MS)
    if keep < 0:
        return None
    (lowest,) = conn.execute("SELECT min(next) FROM committed WHERE part = ?", (part,)).fetchone()
    limit = min(state.next - 1, state.next if lowest is None else lowest)
    until = _old_until(conn, part, (state.first, state.next), now - keep, now=now)
    cursor = conn.execute(
        "SELECT at FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
        (row_id(part, state.first), row_id(part, max(min(limit, until), 0)), MAX_KEYS),
    )
    remove = tuple(at for (at,) in cursor)
    if not remove:
        return None
    first = offset_of(remove[-1]) + 1
    kept = max(0, state.kept - len(remove))
    return Plan(part, remove, first, max(state.cleaned, first), kept, state.horizon, state.horizon_at)


def _compaction(
    conn: sqlite3.Connection, config: Mapping[str, str], part: int, state: _Part, *, now: int
) -> Plan | None:
    due = state.horizon and now >= state.horizon_at + _number(config, "delete.retention.ms", _DAY_MS)
    dirty = state.next - 1 - state.cleaned
    ratio = _number(config, "min.cleanable.dirty.ratio", 0.5)
    if dirty <= 0 or (dirty < ratio * (dirty + state.kept) and not _is_overdue(conn, config, part, state, now=now)):
        if not due:
            return None
        latest, cleaned = dict[bytes, int](), state.cleaned
    else:
        lag = _number(config, "min.compaction.lag.ms", 0)
        end = state.next - 1
        if lag > 0:
            end = min(end, _old_until(conn, part, (state.cleaned, state.next), now - lag, now=now))
        latest, cleaned = _latest(conn, part, state, end)
    if cleaned == state.cleaned and not due:
        return None
    remove: list[int] = []
    seen = 0
    tombstones = False
    cursor = conn.execute(
        "SELECT at, key, value IS NULL FROM record WHERE at >= ? AND at < ? ORDER BY at",
        (row_id(part, state.first), row_id(part, cleaned)),
    )
    for at, key, tombstone in cursor:
        seen += 1
        offset = offset_of(at)
        superseded = key is not None and offset < latest.get(key, -1)
        if superseded or (tombstone and due and offset < state.horizon):
            remove.append(at)
        else:
            tombstones = tombstones or bool(tombstone)
    cursor.close()
    # Tombstones stay for `delete.retention.ms` after the pass that first read them, so that every reader sees them. A
    # partition has one horizon at a time. Tombstones at higher offsets wait for the next horizon.
    waiting = state.horizon and not due
    horizon, horizon_at = (state.horizon, state.horizon_at) if waiting else (cleaned if tombstones else 0, now)
    return Plan(part, tuple(remove), state.first, cleaned, seen - len(remove), horizon, horizon_at)


def _is_overdue(conn: sqlite3.Connection, config: Mapping[str, str], part: int, state: _Part, *, now: int) -> bool:
    """Return whether the oldest uncleaned record is older than `max.compaction.lag.ms`."""
    lag = _number(config, "max.compaction.lag.ms", 0)
    return lag > 0 and _old_until(conn, part, (state.cleaned, state.next), now - lag, now=now) > state.cleaned


def _old_until(conn: sqlite3.Connection, part: int, offsets: tuple[int, int], oldest: float, *, now: int) -> int:
    """Return the end offset of the first records of the range that all have a timestamp of `oldest` or earlier.

    A timestamp after `now` is ignored, because such a record is at least as old as the next record.
    """
    first, end = (row_id(part, each) for each in offsets)
    young = conn.execute(
        "SELECT at FROM record WHERE at >= ? AND at < ? AND timestamp > ? AND timestamp <= ? ORDER BY at LIMIT 1",
        (first, end, oldest, now),
    ).fetchone()
    last = conn.execute(
        "SELECT at FROM record WHERE at >= ? AND at < ? AND timestamp <= ? ORDER BY at DESC LIMIT 1",
        (first, end if young is None else young[0], oldest),
    ).fetchone()
    return offsets[0] if last is None else offset_of(last[0]) + 1


def _latest(conn: sqlite3.Connection, part: int, state: _Part, end: int) -> tuple[dict[bytes, int], int]:
    """Return the last offset of each key in the uncleaned range below `end`, and the end of the scanned range."""
    latest: dict[bytes, int] = {}
    cleaned = state.cleaned
    cursor = conn.execute(
        "SELECT at, key FROM record WHERE at >= ? AND at < ? ORDER BY at",
        (row_id(part, state.cleaned), row_id(part, max(end, state.cleaned))),
    )
    for at, key in cursor:
        if len(latest) >= MAX_KEYS:
            break
        cleaned = offset_of(at) + 1
        if key is not None:
            latest[key] = offset_of(at)
    cursor.close()
    return latest, cleaned


def steps(made: Plan) -> Iterator[tuple[Plan, bool]]:
    """Split a plan into pieces of `STEP` rows. Yield each piece with a flag that is True for the last piece."""
    pieces = [made.remove[at : at + STEP] for at in range(0, len(made.remove), STEP)] or [()]
    for number, piece in enumerate(pieces, start=1):
        yield replace(made, remove=piece), number == len(pieces)

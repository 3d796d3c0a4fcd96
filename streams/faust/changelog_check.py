"""Check of a changelog for lost rows. When rows are missing, the worker stops, because a stage would trust its table.

Each partition of a changelog has one special entry, the marker. It states the offset from which the partition has all
entries. A compacted topic keeps the last value of each key forever, so it keeps the marker. The marker is written
before the first event of the partition is handled, and therefore before the first commit. A changelog partition is
whole if it has a marker, and all entries from the marker's offset on. The table shows the sign of each cause:

| cause | sign |
|---|---|
| topic deleted and created again, no local table | offsets are committed and the changelog is empty or has no marker |
| the same, with a local table | the table is ahead of the changelog's end, or the known marker is not in the log |
| records deleted, or a policy with `delete` | the log starts after `whole_from` (compaction does not move its start) |
| a partition that has only seen dead letters | a marker and nothing else: the changelog is whole |

The functions are pure. `recovery.py` reads the state and acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from faust.types import TP

from ...schemas.errors import Fatal
from ..log.markers import OWN_KEYS, Marker
from ..log.partition_count import CountChanged, grow_advice

#: Key in the local table only: the marker at the last successful check. An interrupted load leaves no such entry.
WHOLE_KEY = OWN_KEYS + "whole__"
#: Key in the local table only: the time at which the table was last complete (seconds since 1970).
COMPLETE_AT_KEY = OWN_KEYS + "seen__"
#: Maximum age in seconds of a local table that recovery continues from. Compaction keeps a tombstone for a day
#: (`delete.retention.ms`), so an older table may have rows whose tombstones are gone. One hour is left for the load.
TOMBSTONES_KEPT = 23 * 3600.0
#: Seconds by which a clock may be set back. A stored time that is further in the future came from a wrong clock.
CLOCK_STEP = 60.0


class ChangelogLost(Fatal):
    """Rows of a table are missing from its changelog. No event was handled."""


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """A changelog partition before it is read.

    `start`: the first offset in the log. `end`: the offset of the next record. `have`: the last offset in the local
    table (-1 without a local table).
    """

    tp: TP
    start: int
    end: int
    have: int


def outdated(state: ChangelogState, *, complete_at: float, now: float) -> bool:
    """Return whether compaction may have removed tombstones that the local table has not read.

    `complete_at`: the time at which the table was last complete. Without these tombstones, deleted rows would stay in
    the table. So an outdated table is loaded again from the start.
    """
    return state.have >= 0 and state.have + 1 < state.end and not -CLOCK_STEP <= now - complete_at <= TOMBSTONES_KEPT


def unreadable(state: ChangelogState) -> str | None:
    """Return the reason why reading cannot continue from the local table's offset, or None."""
    if state.have >= state.end:
        return f"the local table has everything up to offset {state.have}, the changelog ends at {state.end}"
    if state.have >= 0 and state.have + 1 < state.start:
        return f"the local table has everything up to offset {state.have}, the changelog begins at {state.start}"
    return None


def not_whole(
    state: ChangelogState, marker: Marker | None, committed: Mapping[TP, int], *, was_whole: bool
) -> str | None:
    """Return the problem of a changelog that was read to its end; None if it is whole or new.

    `marker`: the marker in the table; a new partition has no marker yet. `committed`: the group's offsets on the source
    partitions with this number. `was_whole`: this local table passed an earlier check.
    """
    if marker is None:
        if state.end > 0:
            return f"it has offsets {state.start} to {state.end - 1} but not its first entry (0.1.0 wrote none)"
        used = {tp.topic: offset for tp, offset in committed.items() if offset > 0}
        return f"it is empty, but the group has committed {used}" if used else None
    if state.start > marker.whole_from and not was_whole:
        return f"entries {marker.whole_from} to {state.start - 1} were deleted"
    return None


def of_another_count(table: str, found: Mapping[TP, int | None], partitions: int) -> CountChanged:
    """Build the error for partitions whose rows are placed by another partition count than `partitions`.

    A count of None is unknown: the partition was added to a changelog of an earlier version.
    """
    counts = {count for count in found.values() if count is not None}
    by = ", ".join(map(str, sorted(counts))) or "a smaller number of"
    return CountChanged(
        f"table {table}: the rows in {', '.join(sorted({tp.topic for tp in found}))} are placed by {by} partitions, "
        f"but there are {partitions}: partitions {', '.join(str(tp.partition) for tp in sorted(found))}. "
        "Nothing was handled: " + grow_advice(max({partitions} | counts))
    )


def another_topic(state: ChangelogState) -> str:
    """Return the problem of a local table whose marker is not in the log."""
    return f"the local table (up to offset {state.have}) is of another topic of this name"


def lost(table: str, stage: str, found: Mapping[TP, str], *, folder: Path) -> ChangelogLost:
    """Build the error for partitions with missing rows. It names the problem of each partition and the remedies."""
    topics = sorted({tp.topic for tp in found})
    each = "; ".join(f"partition {tp.partition}: {what}" for tp, what in sorted(found.items()))
    return ChangelogLost(
        f"table {table}: rows are missing from its changelog {', '.join(topics)}: {each}. Nothing was handled. "
        f"Either restore the topic from a backup, then delete the local tables of all {stage} workers (here {folder}); "
        f"or accept the loss of these rows: stop all workers, delete the same folders, run "
        f"`memstream tables accept-loss {stage}`, and start them again. See docs/design/recovery.md"
    )


def sources_of(committed: Mapping[TP, int | None], changelogs: Iterable[str], partition: int) -> dict[TP, int]:
    """Return the committed offsets of the source partitions with this number."""
    skip = frozenset(changelogs)
    return {
        tp: offset
        for tp, offset in committed.items()
        if tp.partition == partition and tp.topic not in skip and offset is not None
    }

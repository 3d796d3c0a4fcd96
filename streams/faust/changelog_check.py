"""Check of a changelog for lost rows. A stage would trust a table with missing rows, so the worker stops instead.

Each partition of a changelog carries one entry of its own, the marker: "from this offset on, all entries are here". A
compacted topic keeps the last value of each key for ever, so it keeps the marker. It is written before the partition's
first event is handled, and so before the first commit. A changelog without a marker, or without entries that the marker
promises, is not whole:

| cause | sign |
|---|---|
| topic deleted and created again, no local table | offsets are committed and the changelog is empty or has no marker |
| the same, with a local table | the table is ahead of the changelog's end, or the known marker is not in the log |
| records deleted, or a policy with `delete` | the log starts behind `whole_from` (compaction leaves its start) |
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

#: In the local table only: the marker with which it was last found whole. A load that was cut off leaves none.
WHOLE_KEY = OWN_KEYS + "whole__"
#: In the local table only: the time at which it was last complete (seconds since 1970).
COMPLETE_AT_KEY = OWN_KEYS + "seen__"
#: Seconds. Compaction keeps a tombstone for a day (`delete.retention.ms`). An older local table may have rows whose
#: tombstones are gone. The load itself may take an hour.
TOMBSTONES_KEPT = 23 * 3600.0
#: Seconds by which a clock may be set back. A time that is further ahead was noted by a wrong clock and says nothing.
CLOCK_STEP = 60.0


class ChangelogLost(Fatal):
    """Rows of a table are missing from its changelog. No event was handled."""


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """A changelog partition before it is read.

    `start`: the first offset kept. `end`: the offset of the next record. `have`: the last offset in the local table (-1
    without a local table).
    """

    tp: TP
    start: int
    end: int
    have: int


def outdated(state: ChangelogState, *, complete_at: float, now: float) -> bool:
    """Whether tombstones may be gone that a local table, complete at `complete_at`, has not read.

    Rows that were deleted would come back. Such a table is loaded again from the start.
    """
    return state.have >= 0 and state.have + 1 < state.end and not -CLOCK_STEP <= now - complete_at <= TOMBSTONES_KEPT


def unreadable(state: ChangelogState) -> str | None:
    """Return the reason why the changelog cannot be read on from the local table's offset, if there is one."""
    if state.have >= state.end:
        return f"the local table has everything up to offset {state.have}, the changelog ends at {state.end}"
    if state.have >= 0 and state.have + 1 < state.start:
        return f"the local table has everything up to offset {state.have}, the changelog begins at {state.start}"
    return None


def not_whole(
    state: ChangelogState, marker: Marker | None, committed: Mapping[TP, int], *, was_whole: bool
) -> str | None:
    """Return what is missing from a changelog that was read to its end, None for a whole or new one.

    `marker`: the marker in the table. `committed`: the group's offsets on the sources of this partition. `was_whole`:
    whether this local table was once found whole. Without a marker, None means that the partition is new and needs one.
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
    """Build the error for partitions whose rows lie by another count than `partitions`. None: by one that is not known,
    because the partition was added beside partitions of an earlier version."""
    counts = {count for count in found.values() if count is not None}
    by = ", ".join(map(str, sorted(counts))) or "a smaller number of"
    return CountChanged(
        f"table {table}: the rows in {', '.join(sorted({tp.topic for tp in found}))} lie by {by} partitions, and there "
        f"are {partitions}: partitions {', '.join(str(tp.partition) for tp in sorted(found))}. Nothing was handled: "
        + grow_advice(max({partitions} | counts))
    )


def another_topic(state: ChangelogState) -> str:
    """Return the problem of a local table whose marker is not in the log."""
    return f"the local table (up to offset {state.have}) is of another topic of this name"


def lost(table: str, stage: str, found: Mapping[TP, str], *, folder: Path) -> ChangelogLost:
    """Build the error for these partitions, with the problems found and the remedies."""
    topics = sorted({tp.topic for tp in found})
    each = "; ".join(f"partition {tp.partition}: {what}" for tp, what in sorted(found.items()))
    return ChangelogLost(
        f"table {table}: rows are missing from its changelog {', '.join(topics)}: {each}. Nothing was handled. "
        f"Either restore the topic from a backup, then delete the local tables of all {stage} workers (here {folder}); "
        f"or accept that what this table knew is gone: stop all workers, delete the same folders, run "
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

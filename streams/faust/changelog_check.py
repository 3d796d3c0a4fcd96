"""Is this changelog whole? A table that came back without some of its rows would be believed; so it is refused.

A compacted topic keeps the last value of each key for ever, so each partition carries one entry of ours, the marker:
"from this offset on, everything is here". It is written before the partition's first event flows, hence before its
first commit. A changelog that has no marker, or lost what the marker vouches for, is not whole:

| what happened | how it is seen |
|---|---|
| topic deleted and made anew, no local table | committed offsets, but an empty changelog; or entries and no marker |
| the same, local table there | it is ahead of the changelog's end; or the marker it knows is not where it was |
| records deleted, or a policy with `delete` | the log starts behind `whole_from` (compaction leaves its start) |
| a partition that has only seen dead letters | a marker and nothing else: whole |

Pure decisions; `recovery.py` asks and acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from faust.types import TP
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.errors import Fatal

#: No key of a row has a control character in it.
OWN_KEYS = "__memstream\0"
MARKER_KEY = OWN_KEYS + "marker__"
#: In the local table alone: the marker with which it was last found whole. A load that was cut off has none.
WHOLE_KEY = OWN_KEYS + "whole__"
#: In the local table alone: when it last had everything (seconds since 1970).
SEEN_KEY = OWN_KEYS + "seen__"
#: Seconds. Compaction keeps a tombstone for a day (`delete.retention.ms`); a local table from before may have rows
#: whose tombstones it will never see. An hour is for the load itself.
TOMBSTONES_KEPT = 23 * 3600.0
Offset = Annotated[int, Field(ge=0)]


class ChangelogLost(Fatal):
    """Rows of a table are gone from its changelog; nothing was handled."""


class Marker(BaseModel):
    """`identity` tells two topics of one name apart. From `whole_from` on the log has all entries; the marker itself
    lies at `written_at` or soon behind it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    identity: str
    whole_from: Offset
    written_at: Offset

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def of(cls, raw: bytes | None) -> Marker | None:
        """None when there is none, or none that this version can read."""
        if raw is None:
            return None
        try:
            return cls.model_validate_json(raw)
        except ValidationError:
            return None


def marker_entry(marker: Marker) -> tuple[bytes, bytes]:
    """Key and value of its record."""
    return MARKER_KEY.encode(), marker.to_bytes()


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """A changelog partition before it is read: the first offset kept, the offset of the next record, and the last one
    that the local table has (-1: there is no local table)."""

    tp: TP
    start: int
    end: int
    have: int


def outdated(standing: ChangelogState, *, seen: float, now: float) -> bool:
    """Whether tombstones may be gone that a local table, complete at `seen`, has not read: rows that were deleted would
    live again. Then it is read anew from the start."""
    return standing.have >= 0 and standing.have + 1 < standing.end and now - seen > TOMBSTONES_KEPT


def unreadable(standing: ChangelogState) -> str | None:
    """What makes it pointless to read on from what the local table has."""
    if standing.have >= standing.end:
        return f"the local table has everything up to offset {standing.have}, the changelog ends at {standing.end}"
    if standing.have >= 0 and standing.have + 1 < standing.start:
        return f"the local table has everything up to offset {standing.have}, the changelog begins at {standing.start}"
    return None


def not_whole(
    standing: ChangelogState, marker: Marker | None, committed: Mapping[TP, int], *, was_whole: bool
) -> str | None:
    """What is missing, once it has been read. `marker` is the one that the table now has, `committed` what the group
    has committed on this partition's sources, `was_whole` that this local table once was found whole. Without a
    marker, None means: this partition is new, write one."""
    if marker is None:
        if standing.end > 0:
            return f"it has offsets {standing.start} to {standing.end - 1} but not its first entry (0.1.0 wrote none)"
        used = {tp.topic: offset for tp, offset in committed.items() if offset > 0}
        return f"it is empty, but the group has committed {used}" if used else None
    if standing.start > marker.whole_from and not was_whole:
        return f"entries {marker.whole_from} to {standing.start - 1} were deleted"
    return None


def another_topic(standing: ChangelogState) -> str:
    """The marker that the local table knows is not in the log."""
    return f"the local table (up to offset {standing.have}) is of another topic of this name"


def lost(table: str, stage: str, found: Mapping[TP, str], *, folder: Path) -> ChangelogLost:
    """The error for these partitions: what was found, and what can be done."""
    topics = sorted({tp.topic for tp in found})
    each = "; ".join(f"partition {tp.partition}: {what}" for tp, what in sorted(found.items()))
    return ChangelogLost(
        f"table {table}: rows are missing from its changelog {', '.join(topics)}: {each}. Nothing was handled. "
        f"Either restore the topic from a backup, then delete the local tables of all {stage} workers (here {folder}); "
        f"or accept that what this table knew is gone: stop all workers, delete the same folders, run "
        f"`memstream tables accept-loss {stage}`, and start them again. See docs/design/recovery.md"
    )


def sources_of(committed: Mapping[TP, int | None], changelogs: Iterable[str], partition: int) -> dict[TP, int]:
    """What is committed on the source partitions of this number."""
    skip = frozenset(changelogs)
    return {
        tp: offset
        for tp, offset in committed.items()
        if tp.partition == partition and tp.topic not in skip and offset is not None
    }

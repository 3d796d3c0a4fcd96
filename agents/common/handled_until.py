"""Offset marks that recognise redelivered events of a key after their ids are dropped.

Events of one key and topic partition are handled in offset order, so every event below a handled offset was handled.
A mark stays some hundred events behind the last handled event. Events at or above the mark are recognised by their id
alone. A log that loses its last records gives their offsets to new events. These offsets are above the mark, so the new
events are handled.

When a topic is recreated, its offsets start at 0, and its records are newer than all records below the mark. So a
record below a mark with a newer timestamp is a new event. The first such event removes the marks of its partition.
"""

from __future__ import annotations

import operator
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from ...streams.log.port import Record
from .seen_ids import SEEN_KEPT
from .stored_row import RowPart

CLOCK_AHEAD_MS: Final = 300_000
"""Milliseconds that a record's time may be ahead of the worker's clock. Later times are cut to this limit: otherwise
one wrong time would make all records of a recreated topic look handled."""
Count = Annotated[int, Field(ge=0, exclude_if=operator.not_)]


class HandledUntil(RowPart):
    """Marks of one topic. Each mark has an offset per source partition and the newest timestamp (ms) below it."""

    offsets: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The offset after the last handled event, by partition."""
    newest: Count = 0
    next_offsets: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The mark that becomes valid when the current interval ends."""
    next_newest: Count = 0
    mark: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The valid mark."""
    mark_newest: Count = 0
    since: Count = 0
    """Number of events in the current interval. An interval has half of `ids_kept` events (see `add`)."""

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def has(self, record: Record) -> bool:
        """Return whether a record is below the mark, which means that it was handled before."""
        position = record.position
        return position.offset < self.mark.get(position.partition, 0) and record.timestamp <= self.mark_newest

    def add(self, record: Record, *, now: datetime, ids_kept: int = SEEN_KEPT) -> HandledUntil:
        """Return the marks with one more handled event. The caller has checked that the event is new.

        A new mark becomes valid after half of `ids_kept` events. It is the offset at the end of the previous interval.
        So at most `ids_kept` events are above the mark, and all their ids are still kept.
        """
        partition, offset = record.position.partition, record.position.offset
        offsets, next_offsets, mark = dict(self.offsets), dict(self.next_offsets), dict(self.mark)
        if offset < offsets.get(partition, 0) and record.timestamp > self.newest:  # the topic was created again
            for each in (offsets, next_offsets, mark):
                each.pop(partition, None)
        offsets[partition] = max(offset + 1, offsets.get(partition, 0))
        newest = max(self.newest, min(record.timestamp, int(now.timestamp() * 1000) + CLOCK_AHEAD_MS))
        if self.since + 1 < ids_kept // 2:
            update = {"next_offsets": next_offsets, "mark": mark, "since": self.since + 1}
            return self.model_copy(update={"offsets": offsets, "newest": newest, **update})
        return HandledUntil(
            offsets=offsets,
            newest=newest,
            next_offsets=offsets,
            next_newest=newest,
            mark=next_offsets,
            mark_newest=self.next_newest,
        )

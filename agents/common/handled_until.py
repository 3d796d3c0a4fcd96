"""Marks that recognise redelivered events of a key after their ids are forgotten.

A key's events of one topic partition are handled in the order of their offsets. So every event below a handled one was
handled. A mark follows some hundred events behind: an event at or above it is judged by the list of ids alone. So a log
that lost its tail, where offsets are used again, loses no event through a mark.

A topic may be created again, and its offsets begin at 0. Its records are newer than those that the mark covers. So a
record below a mark that is newer is a new event, and the first such event ends the marks of its partition.
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
"""A record's time counts up to so far ahead of the worker's clock. Otherwise one wrong time would cover the records of
a topic that is created again."""
Count = Annotated[int, Field(ge=0, exclude_if=operator.not_)]


class HandledUntil(RowPart):
    """Marks of one topic. Each mark has an offset for each source partition, and the newest timestamp (ms) below it."""

    offsets: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The offset after the last handled event, by partition."""
    newest: Count = 0
    next_offsets: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The mark that will hold when the present interval ends."""
    next_newest: Count = 0
    mark: dict[int, int] = Field(default_factory=dict, exclude_if=operator.not_)
    """The mark that holds."""
    mark_newest: Count = 0
    since: Count = 0
    """Events of the present interval."""

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def has(self, record: Record) -> bool:
        """Return whether a record is below the mark, so that it was handled before."""
        position = record.position
        return position.offset < self.mark.get(position.partition, 0) and record.timestamp <= self.mark_newest

    def add(self, record: Record, *, now: datetime, ids_kept: int = SEEN_KEPT) -> HandledUntil:
        """Return the marks with one more handled event, which no mark and no id covered.

        A new mark is made after half of `ids_kept` events, and covers no event of the last two intervals. So the ids of
        all events that it does not cover are kept.
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

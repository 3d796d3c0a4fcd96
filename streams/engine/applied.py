"""Knowledge about applied outcomes, and the check whether an outcome was applied; see docs/design/stage.md.

An outcome that is not known to be applied is applied again. A second application changes nothing. So the wrong answer
"not applied" costs only a call of the store, but the wrong answer "applied" loses effects. The current committed offset
alone is no proof: it also moves past records that the log has lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...schemas.outcomes import Source
from ..log.markers import Range
from ..log.port import Position
from .last_keys import LastKeys

TP = tuple[str, int]
Committed = Callable[[str, int], int | None]
"""Function that returns the committed offset (the next offset to read) of a topic and partition, None if unknown."""
KNOWN_ROWS_MAX: Final = 50_000
"""Maximum number of rows that this process remembers as applied, about 200 bytes each."""
LEFT_MAX: Final = 1_000
"""Maximum number of records after a committed offset that can have an outcome after a crash. A worker holds at most
this number of a partition's records. So a hole (missing offsets) after this many received records hides no outcome."""


@dataclass(frozen=True, slots=True)
class Received:
    """The latest contiguous range of offsets that an assignment has received of a partition: `start` to below `end`."""

    start: int
    end: int
    records: int = 0
    """Total number of records that the assignment has received of the partition, also before `start`."""

    def with_record(self, offset: int) -> Received:
        """Return the range with one more record. After a hole a new range begins."""
        start = offset if offset > self.end else self.start
        return Received(start, max(self.end, offset + 1), self.records + 1)


class AppliedOutcomes:
    """One worker's knowledge about outcomes: applied rows, start of the assignment, received offsets.

    `committed` returns the current committed offsets. If `begin` was never called, the consumption of a partition
    counts as begun at the committed offset that the first call of `has` finds, or, without one, at the current event.
    """

    def __init__(self, committed: Committed) -> None:
        self._committed = committed
        self._began: dict[TP, int | None] = {}
        self._has_begun = False
        """True after `begin`. A partition that `begin` did not name then belongs to another worker."""
        self._received: dict[TP, Received] = {}
        self._passed_over: dict[TP, list[Range]] = {}
        self._known = LastKeys[int, int](KNOWN_ROWS_MAX)
        """Hash of the row whose outcome this process has completely applied, by the hash of partition and key."""

    def begin(
        self, committed: Mapping[TP, int | None], passed_over: Mapping[TP, Sequence[Range]] | None = None
    ) -> None:
        """Begin an assignment. `committed`: the group's offsets before the first event, for all assigned partitions.

        `passed_over`: ranges below these offsets whose records were not handled.
        """
        self._began, self._has_begun = dict(committed), True
        self._received = {}
        self._passed_over = {tp: list(ranges) for tp, ranges in (passed_over or {}).items()}

    def receive(self, topic: str, partition: int, offset: int) -> Range | None:
        """Record the offset of a delivered record. Records of a partition come in offset order.

        Return the hole before the record, or None if there is no hole or the hole can hide no outcome. If the log has
        lost records of the hole, the caller must store the lost range durably, and call `pass_over`, before the record
        is committed.
        """
        hole = self.hole_before(topic, partition, offset)
        self._received[topic, partition] = self._received_of((topic, partition)).with_record(offset)
        return hole

    def hole_before(self, topic: str, partition: int, offset: int) -> Range | None:
        """Return the hole between the last received record and an offset. None has the same meaning as in `receive`."""
        before = self._received_of((topic, partition))
        return (before.end, offset) if before.end < offset and before.records < LEFT_MAX else None

    def pass_over(self, topic: str, partition: int, passed_over: Range) -> None:
        """Record a range that the group's offset will pass without handling its records."""
        self._passed_over.setdefault((topic, partition), []).append(passed_over)

    def remember(self, partition: int, key: str, row: bytes) -> None:
        """Record that this process has applied the outcome in a row."""
        self._known.put(hash((partition, key)), hash(row))

    def has(self, source: Source, position: Position, *, key: str, row: bytes | None, moved_below: int | None) -> bool:
        """Return whether an outcome is known to have all of its effects.

        `position`: the position of the current event. `key`, `row`: the row that has the outcome, on the partition of
        the event. `moved_below`: when the topics last got more partitions, all events of the source's partition below
        this offset were applied. For a row that was moved to another partition, only this offset counts.
        """
        partition = position.partition
        if row is not None and self._known.get(hash((partition, key))) == hash(row):
            return True
        if source.partition != partition:
            return moved_below is not None and source.offset < moved_below
        tp = source.topic, source.partition
        began = self._began_at(tp, position)
        if began is None:
            return False
        if any(start <= source.offset < end for start, end in self._passed_over.get(tp, ())):
            return False
        if source.offset < began:
            return True
        received, committed = self._received.get(tp), self._committed(*tp)
        if received is None or committed is None:
            return False
        return received.start <= source.offset < min(received.end, committed)

    def _received_of(self, tp: TP) -> Received:
        began = self._began.get(tp) or 0
        return self._received.get(tp) or Received(began, began)

    def _began_at(self, tp: TP, position: Position) -> int | None:
        if tp not in self._began and not self._has_begun:
            in_hand = position.offset if tp == (position.topic, position.partition) else None
            committed = self._committed(*tp)
            self._began[tp] = in_hand if committed is None else committed
        return self._began.get(tp)

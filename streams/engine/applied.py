"""The answer to "was this outcome applied?"; see docs/design/stage.md.

An outcome that is not known as applied is applied again, which changes nothing. So a wrong "no" costs a call of the
store, and a wrong "yes" loses effects. The committed offset of now is no proof: it also moves past records that the
log lost.
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
"""Return the committed offset (the next one to read) of a topic and partition; None when it is not known."""
KNOWN_ROWS_MAX: Final = 50_000
"""Rows that this process is known to have applied: the last ones, some 200 bytes each."""
LEFT_MAX: Final = 1_000
"""Records behind a committed offset that a crash may leave with an outcome: as many as a worker holds of a partition. A
hole behind so many received records hides no outcome."""


@dataclass(frozen=True, slots=True)
class Received:
    """The offsets that one assignment has received of a partition, without a hole: from `start` to before `end`."""

    start: int
    end: int
    records: int = 0
    """All records of the assignment."""

    def with_record(self, offset: int) -> Received:
        """Return the range with one more record. Behind a hole a new range begins."""
        start = offset if offset > self.end else self.start
        return Received(start, max(self.end, offset + 1), self.records + 1)


class AppliedOutcomes:
    """Facts of one worker about outcomes: what it applied, where its assignment began, what it received since.

    `committed`: the committed offsets of now. Where `begin` was never called, consumption of a partition began at its
    committed offset when it was first asked about, or at the event in hand.
    """

    def __init__(self, committed: Committed) -> None:
        self._committed = committed
        self._began: dict[TP, int | None] = {}
        self._is_told = False
        """Whether `begin` was called: a partition that it did not name is another worker's."""
        self._received: dict[TP, Received] = {}
        self._passed_over: dict[TP, list[Range]] = {}
        self._known = LastKeys[int, int](KNOWN_ROWS_MAX)
        """By hash of partition and key: the hash of the row whose outcome this process has applied in full."""

    def begin(
        self, committed: Mapping[TP, int | None], passed_over: Mapping[TP, Sequence[Range]] | None = None
    ) -> None:
        """Begin an assignment. `committed`: the group's offsets before the first event, of all its partitions.

        `passed_over`: offsets below them whose records were not handled.
        """
        self._began, self._is_told = dict(committed), True
        self._received = {}
        self._passed_over = {tp: list(ranges) for tp, ranges in (passed_over or {}).items()}

    def receive(self, topic: str, partition: int, offset: int) -> Range | None:
        """Note a record that was delivered. Records of a partition come in the order of offsets.

        Return the hole before it, unless no outcome can be hidden there. When the log has lost the records of the hole,
        `pass_over` must be durable before the record is committed.
        """
        hole = self.hole_before(topic, partition, offset)
        self._received[topic, partition] = self._received_of((topic, partition)).with_record(offset)
        return hole

    def hole_before(self, topic: str, partition: int, offset: int) -> Range | None:
        """Return the hole from the last received record up to an offset; None as for `receive`."""
        before = self._received_of((topic, partition))
        return (before.end, offset) if before.end < offset and before.records < LEFT_MAX else None

    def pass_over(self, topic: str, partition: int, passed_over: Range) -> None:
        """Note offsets that the group's offset will pass over without handling their records."""
        self._passed_over.setdefault((topic, partition), []).append(passed_over)

    def remember(self, partition: int, key: str, row: bytes) -> None:
        """Note that this process has applied the outcome in a row."""
        self._known.put(hash((partition, key)), hash(row))

    def has(self, source: Source, position: Position, *, key: str, row: bytes | None, moved_below: int | None) -> bool:
        """Return whether an outcome is known to have all of its effects.

        `position`: of the event in hand. `key`, `row`: where the outcome is kept, on the partition of the event.
        `moved_below`: the offset below which a growth of the topics found the events of the source's partition applied.
        It alone counts for a row that was moved.
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
        if tp not in self._began and not self._is_told:
            in_hand = position.offset if tp == (position.topic, position.partition) else None
            committed = self._committed(*tp)
            self._began[tp] = in_hand if committed is None else committed
        return self._began.get(tp)

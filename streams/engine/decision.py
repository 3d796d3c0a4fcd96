"""A stage's decision, and the raw table that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...schemas.outcomes import Outcome


class Rows(Protocol):
    """The raw table of a stage. `partition` None means the partition of the current event."""

    def row(self, key: str, *, partition: int | None = None) -> bytes | None: ...

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        """Write rows in this order (None deletes). The rows are durable on the changelog when this returns.

        All rows are passed to the producer, and `row` returns them, before the first wait.
        """
        ...

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        """Return the offset of a source partition below which all events were applied at the last growth, or None.

        A growth adds partitions to the topics and moves rows. `partition` is the partition of the moved row. None: no
        growth recorded an offset for this source partition.
        """
        ...

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        """Return the next rows of a partition in key order; their keys begin with `prefix` and are above `after`.

        An empty page means the end. Rows that the changelog has not acknowledged are left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class StageDecision:
    """One outcome, with the rows that store it.

    `row` is the value of `key` and contains the outcome. `before` are rows that are written first. A stage without a
    table leaves all three empty. `covers`: the number of queued events (the next events of the lane) whose effects
    this outcome includes. These events are done when the outcome is applied. If they are delivered again, the stage
    must treat them as handled.
    """

    outcome: Outcome
    key: str = ""
    row: bytes | None = None
    before: Mapping[str, bytes] = field(default_factory=dict)
    covers: int = 0

"""Rows that were sent to the changelog and are not acknowledged yet.

Faust writes a row into the local store first and sends it afterwards (`faust/tables/table.py:83`). A worker that is
killed or frozen in between leaves a row on its disk that the changelog never had. If the partition goes to another
worker and comes back, recovery overwrites only the rows that the other worker wrote. The remaining rows are state that
never was. A soak test showed the effect: an owner's row was overwritten, the row with the session's last turn number
was not. The redelivered turn counted as a duplicate and was never reflected.

So the store gets a row when the changelog has it, together with its offset. Until then the row is kept here, in memory,
for this process and this assignment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class UnackedRow:
    """A row that was sent. `value` None stands for its deletion."""

    partition: int
    key: str
    value: bytes | None
    assignment: int


class UnackedRows:
    """By key the last row that was sent and not acknowledged, or whose sending failed and must be repeated."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], UnackedRow] = {}
        self._assignment = 0

    def add(self, partition: int, key: str, value: bytes | None) -> UnackedRow:
        row = self._rows[partition, key] = UnackedRow(partition, key, value, self._assignment)
        return row

    def find(self, partition: int, key: str) -> UnackedRow | None:
        return self._rows.get((partition, key))

    def acknowledge(self, row: UnackedRow) -> bool:
        """Note that the changelog has a row. Return whether it belongs into the local store.

        The recovery after a rebalance reads the rows from before it from the changelog.
        """
        if self._rows.get((row.partition, row.key)) is row:
            del self._rows[row.partition, row.key]
        return row.assignment == self._assignment

    def start_assignment(self) -> None:
        """Drop all rows: their events are redelivered to the owner of the partition."""
        self._rows.clear()
        self._assignment += 1

    def __len__(self) -> int:
        return len(self._rows)

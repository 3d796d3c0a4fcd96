"""Rows that were sent to the changelog and are not acknowledged yet.

Faust writes a row into the local store first and sends it afterwards (`faust/tables/table.py:83`). A worker that is
killed or frozen in between leaves a row on its disk that the changelog never had. If the partition moves to another
worker and back, recovery overwrites only the rows that the other worker wrote, and the invalid row stays. A soak test
showed the effect: an owner's row was overwritten, but the row with the session's last turn number was not. The
redelivered turn therefore counted as a duplicate and was never reflected.

So a row is written to the local store, together with its offset, only when the changelog has it. Until then this module
keeps the row in memory, for this process and this assignment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class UnackedRow:
    """A row that was sent. A `value` of None means its deletion."""

    partition: int
    key: str
    value: bytes | None
    assignment: int


class UnackedRows:
    """The last unacknowledged row of each key. A row whose sending failed also counts: it must be sent again."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], UnackedRow] = {}
        self._assignment = 0

    def add(self, partition: int, key: str, value: bytes | None) -> UnackedRow:
        row = self._rows[partition, key] = UnackedRow(partition, key, value, self._assignment)
        return row

    def find(self, partition: int, key: str) -> UnackedRow | None:
        return self._rows.get((partition, key))

    def acknowledge(self, row: UnackedRow) -> bool:
        """Record that the changelog has a row. Return whether the row must be written to the local store.

        A row that was sent in an earlier assignment must not be written: recovery reads it from the changelog.
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

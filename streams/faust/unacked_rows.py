"""Rows that were handed to the changelog, until it has answered.

Faust writes a row into the local store first and sends it after that (`faust/tables/table.py:83`). A worker that is
killed or frozen in between leaves rows on its disk which the changelog never had. If its partition goes to another
worker and comes back, recovery overwrites only what the other one wrote; the rest is state that never was. Seen in a
soak: an owner's row was overwritten, the row with the session's last turn number was not, so the turn, when it came
again, was taken for a duplicate and never reflected.

So the store gets a row when the changelog has it, together with its offset. Until then it is here, in memory: for this
process, and for this assignment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class UnackedRow:
    """A row that was sent; `value` None: its deletion."""

    partition: int
    key: str
    value: bytes | None
    assignment: int


class UnackedRows:
    """The last row sent of each key that is not answered, or whose sending failed and has to be repeated."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], UnackedRow] = {}
        self._assignment = 0

    def add(self, partition: int, key: str, value: bytes | None) -> UnackedRow:
        row = self._rows[partition, key] = UnackedRow(partition, key, value, self._assignment)
        return row

    def find(self, partition: int, key: str) -> UnackedRow | None:
        return self._rows.get((partition, key))

    def arrived(self, row: UnackedRow) -> bool:
        """The changelog has it. Whether it belongs into the store: what was sent before the last rebalance is read from
        the changelog by the recovery after it."""
        if self._rows.get((row.partition, row.key)) is row:
            del self._rows[row.partition, row.key]
        return row.assignment == self._assignment

    def rebalanced(self) -> None:
        """What has not arrived never was: its event comes again, to whoever owns the partition now."""
        self._rows.clear()
        self._assignment += 1

    def __len__(self) -> int:
        return len(self._rows)

"""Rows with the handled turns of one owner and session, and the expiry of these rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from ...schemas.turn_number import TurnNumber
from ...streams.engine.decision import Rows
from ...streams.log.port import Record
from .pending_index import INDEX_ROW
from .session_ends import ENDS, SessionEnds, timed_key
from .turn_numbers import HandledTurns

H = TypeVar("H", bound=HandledTurns)
SESSION_SLASHES = 5
"""Number of slashes in the key of a session row: the owner key and the session key have three parts each."""


class HandledSessions(SessionEnds):
    """The session rows of a stage. Their keys are `<owner key>/<session key>`.

    This class deletes expired rows without an event, because no other data depends on them. An event that read the row
    before its deletion writes the row and its index row again (`needs_entry`).
    """

    def added(self, row: H, number: TurnNumber, record: Record) -> H:
        """Return the row with this turn marked as handled."""
        return row.add(number).model_copy(update={"last_at": self.written_at(record, row.last_at)})

    def rows_of(self, row_key: str, row: HandledTurns, changed: HandledTurns) -> dict[str, bytes]:
        """Return the rows to write when `row` becomes `changed`, in write order."""
        return {**self.entry(row_key, row.last_at, changed.last_at), row_key: changed.to_bytes()}

    async def end_rows(self, partition: int, rows: Rows, *, later: Callable[[str], int] = lambda row_key: 0) -> None:
        """Delete old rows. A crash between the two deletions leaves an index row, which the next scan deletes.

        `later(row_key)` returns the time of the session's turns that another row holds, or 0 when there are none. A row
        with such newer turns is kept.
        """

        async def end(entry: str, row_key: str, last_at: int) -> None:
            at = later(row_key)
            if at > last_at and not self.is_old(at, partition):
                await rows.put({timed_key(ENDS, row_key, at): INDEX_ROW, entry: None}, partition=partition)
            else:
                await rows.put({row_key: None, entry: None}, partition=partition)

        await self.look(partition, rows, last_at=lambda raw: HandledTurns.read(raw).last_at, old=end)


def sessions_index(
    other: Callable[[str, bytes], Iterable[str]], now: Callable[[], datetime]
) -> Callable[[str, bytes], Iterable[str]]:
    """Return a function that finds the index rows needed by a row of an earlier version.

    For a session row, the index row has the present time. For all other rows the function calls `other`.
    """
    at = int(now().timestamp())

    def indexed(key: str, raw: bytes) -> Iterable[str]:
        return (timed_key(ENDS, key, at),) if key.count("/") == SESSION_SLASHES else other(key, raw)

    return indexed

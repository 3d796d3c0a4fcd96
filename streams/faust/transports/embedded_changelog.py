"""Reader of changelogs in the log on disk for a bulk load: a separate connection, used in a thread.

A read of 4 MiB takes about ten milliseconds of processor time plus the time of the disk. On the event loop, it would
block the loop for this time, and three stages may restore their tables at the same time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import TracebackType

from faust.types import TP

from ...log import sqlite_tables as sql
from ...log.sqlite_log import SqliteLog
from ...log.sqlite_tables import LogRow
from ..blocking_work import in_thread

READ_RECORDS = 2000
READ_BYTES = 4 << 20
"""Maximum number of records, and maximum bytes, of one read."""


class EmbeddedChangelogReader:
    """`bulk_load.ChangelogSource` within an `async with` block. `parts`: the log's ids of the assigned partitions."""

    def __init__(self, opened: SqliteLog, parts: Mapping[TP, int]) -> None:
        self._log = opened
        self._parts = parts
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> EmbeddedChangelogReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await in_thread(connection.close)

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[LogRow], int]:
        """Read records from `offset` on. Return them with the offset of the next read. Raises Transient, Fatal.

        The call never waits for new records, so `timeout` is not used. A partition that is not assigned has no records.
        """
        part = self._parts.get(tp)
        if part is None:
            return [], offset
        return await in_thread(self._read, part, offset, self._log.end(part))

    def _read(self, part: int, offset: int, end: int) -> tuple[list[LogRow], int]:
        if self._connection is None:
            self._connection = sql.connect(self._log.folder, shared=True)
        try:
            return sql.read(self._connection, part, offset, end, READ_RECORDS, READ_BYTES)
        except sqlite3.Error as error:
            raise sql.translate(error, self._log.folder) from error

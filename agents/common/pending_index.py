"""Index of pending rows: small rows of the same table that name the keys with pending work.

A worker that is assigned a partition sets its timers from the index; it does not read all keys. An index row has the
key `index_key(kind, key)` (schemas/row_keys.py) and no content. The row of `key` decides whether work is pending.

| after a crash there may be | then |
|---|---|
| an index row whose row has no pending work | The next worker reads the row and deletes the index row. |
| a pending row without its index row | Impossible: the index row is written before the row and deleted after it. |

A table of an earlier version has no index. The first worker of a partition builds it in slices. An `IndexMark` row
stores the position of the build, so that an interrupted build continues from this position.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Final

from pydantic import Field

from ...schemas.row_keys import AFTER_INDEX, INDEX_BUILT, INDEX_FENCE, index_key, index_prefix
from ...streams.engine.decision import Rows
from ...streams.engine.row_scan import scan
from .stored_row import EPOCH_VERSION, StoredRow

INDEX_ROW: Final = b"{}"
"""The value of every index row."""
_WRITTEN_AT_ONCE: Final = 256
"""Maximum number of missing index rows that a build collects before it writes them."""
_LOOKED_AT: Final = 2_000
"""Rows that a build scans between two saves of its position. A crash repeats at most this many rows."""


class IndexMark(StoredRow):
    """The build state of a partition's index. Every pending row up to the key `built_to` has its index row.

    Its `row_version` stops workers of earlier versions, which would write rows without index rows.
    """

    row_version: Annotated[int, Field(ge=1)] = EPOCH_VERSION
    partitions: int
    """The table's partition count. After a change of the count, rows have come from other partitions, perhaps without
    their index rows, so the index is built again."""
    built_to: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """The key up to which the index is built, or None when it is complete."""


async def pending_keys(
    rows: Rows, partition: int, kind: str, *, partitions: int, indexed: Callable[[str, bytes], Iterable[str]]
) -> AsyncIterator[str]:
    """Yield the keys that a partition's index lists under `kind`. Build a missing index first.

    `partitions`: the table's partition count. `indexed(row key, value)` returns the index rows that a row needs;
    surplus index rows are harmless. Raises Transient, Relinquished, LaterVersion.
    """
    await _build(rows, partition, partitions=partitions, indexed=indexed)
    prefix = index_prefix(kind)
    async for key, _ in scan(rows, partition, prefix=prefix):
        yield key.removeprefix(prefix)


async def forget(rows: Rows, partition: int, kind: str, key: str) -> None:
    """Delete an index row. The caller has just checked that its row has no pending work."""
    await rows.put({index_key(kind, key): None}, partition=partition)


async def _build(
    rows: Rows, partition: int, *, partitions: int, indexed: Callable[[str, bytes], Iterable[str]]
) -> None:
    """Write the missing index rows of a partition.

    The marks are written first. Their row version stops workers of earlier versions. So no worker adds a row without an
    index row to the part that is already scanned.
    """
    raw = rows.row(INDEX_BUILT, partition=partition)
    mark = None if raw is None else IndexMark.read(raw)
    if mark is None or mark.partitions != partitions or mark.row_version != EPOCH_VERSION:
        mark = IndexMark(partitions=partitions, built_to=AFTER_INDEX)
        await rows.put({INDEX_FENCE: mark.to_bytes(), INDEX_BUILT: mark.to_bytes()}, partition=partition)
    if mark.built_to is None:
        return
    found: dict[str, bytes | None] = {}
    looked_at = 0
    async for key, value in scan(rows, partition, after=mark.built_to):
        missing = [each for each in indexed(key, value) if rows.row(each, partition=partition) is None]
        found |= dict.fromkeys(missing, INDEX_ROW)
        looked_at += 1
        if len(found) >= _WRITTEN_AT_ONCE or looked_at >= _LOOKED_AT:
            place = IndexMark(partitions=partitions, built_to=key).to_bytes()
            await rows.put(found | {INDEX_BUILT: place}, partition=partition)
            found, looked_at = {}, 0
    complete = IndexMark(partitions=partitions).to_bytes()
    await rows.put(found | {INDEX_FENCE: complete, INDEX_BUILT: complete}, partition=partition)

"""Bulk load of a changelog partition: read the entries in batches, and write them directly into the local store.

Faust passes every entry through its conductor, a queue, an event and a buffer. That limits Faust to 8 000 entries a
second and uses a whole CPU. Here a batch is one fetch of the consumer, and no event object is created for an entry. The
load keeps the last value of each key in memory, and writes the values to the store after `HELD_BYTES`. For example, a
session's row has one changelog entry per turn, and the store gets only the last entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from faust.types import TP

from .bulk_writes import Entry

READ_WAIT: Final = 1.0
"""Maximum seconds that one read waits for records. The load then reads again."""
HELD_BYTES: Final = 16 * 1024 * 1024
"""Number of bytes at which the load writes to the store: keys, values and Python objects read since the last write. The
load holds at most `HELD_BYTES` plus one read. During the write, the store holds the same rows twice more."""
ENTRY_BYTES: Final = 200
"""Bytes that Python needs for an entry in addition to its key and value: two objects and a dictionary slot."""
HELD_SECONDS: Final = 1.0
"""Seconds since the last write after which the load writes to the store in any case: with a slow broker, the table
still makes progress."""


class ChangelogSource(Protocol):
    """The reader of a load. Both consumers in `transports/` return one from `changelogs()`."""

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Entry], int]:
        """Read records of a partition from `offset` on. Return them with the offset of the next read.

        If no record arrives within `timeout` seconds, the result has no record. The offset also moves past gaps that
        compaction and transactions leave.
        """
        ...


class LoadTarget(Protocol):
    """The receiver of the rows: `bulk_writes.BulkWrites`, or a receiver in memory in tests."""

    async def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None: ...


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """The range of `tp` to load: from `start` to below `end`."""

    tp: TP
    start: int
    end: int


async def load(
    wanted: BulkLoad,
    *,
    changelog: ChangelogSource,
    target: LoadTarget,
    current: Callable[[], bool],
    loaded: Callable[[int], None],
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Load the range and return the number of entries.

    `current` returns whether this worker still owns the partition. If not, the load ends without another write.
    `loaded` is called after each write with the last offset in the store. After a crash, the next load continues from
    this offset.
    """
    at, count = wanted.start, 0
    rows: dict[bytes, bytes | None] = {}
    held, since = 0, clock()
    while at < wanted.end and current():
        entries, after = await changelog.read(wanted.tp, at, READ_WAIT)
        for entry in entries:
            if entry.key is not None:  # always true in a compacted topic
                rows[entry.key] = entry.value
                held += ENTRY_BYTES + len(entry.key) + len(entry.value or b"")
        if after <= at:
            continue
        at, count = after, count + len(entries)
        if (at >= wanted.end or held >= HELD_BYTES or clock() - since >= HELD_SECONDS) and current():
            await target.put(rows, at - 1)
            loaded(at - 1)
            rows, held, since = {}, 0, clock()
    return count

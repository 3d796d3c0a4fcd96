"""Bulk load of a changelog partition: it is read in batches and written straight into the local store.

Faust passes every entry through its conductor, a queue, an event and a buffer (8 000 entries a second, all CPU). Here a
batch is one fetch of the consumer, and no object is made for an entry. The load keeps the last value of each key and
writes to the store after `HELD_BYTES`. The row of a session has as many entries as the session had turns; the store
gets one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from faust.types import TP

from .bulk_writes import Entry

READ_WAIT: Final = 1.0
"""Seconds that one read waits for records; the load goes on after it."""
HELD_BYTES: Final = 16 * 1024 * 1024
"""Bytes of keys, values and Python objects that were read since the last write to the store. The load holds so much at
most, plus one read; the store has it twice more during the write."""
ENTRY_BYTES: Final = 200
"""Bytes that Python needs for an entry beside its key and value: two objects, and a slot of a dictionary."""
HELD_SECONDS: Final = 1.0
"""Seconds after which the load writes to the store in any case, so that a slow broker shows progress, too."""


class ChangelogSource(Protocol):
    """The reader of a load: `changelogs()` of either consumer in `transports/`."""

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Entry], int]:
        """Read records of a partition from `offset` on, and return them with the offset to read on from.

        After `timeout` seconds there may be none. The offset moves past gaps of compaction and transactions.
        """
        ...


class LoadTarget(Protocol):
    """The receiver of the rows (`bulk_writes.BulkWrites`)."""

    async def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None: ...


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """The range of `tp` to load: from `start` up to, not including, `end`."""

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

    `current` returns whether this worker still owns the partition. If not, the load ends without a further write.
    `loaded` gets the last offset in the store after each write. After a crash the next load goes on from there.
    """
    at, count = wanted.start, 0
    rows: dict[bytes, bytes | None] = {}
    held, since = 0, clock()
    while at < wanted.end and current():
        entries, after = await changelog.read(wanted.tp, at, READ_WAIT)
        for entry in entries:
            if entry.key is not None:  # a compacted topic has no other
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

"""The bulk load: a changelog partition read in batches, straight into the local store.

Faust takes every entry through its conductor, a queue, an event and a buffer (8 000 a second, all CPU). Here a batch
is what the consumer has fetched; no object is made for an entry. Of what was read the last value of each key is held,
and goes to the store when `HELD_BYTES` were read: a session's row has as many entries as the session had turns, and the
store gets one of them.
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
"""Of keys, values and what Python takes for them, read since the store got something. So much is held at most, and a
read; the store has it twice more while it takes it."""
ENTRY_BYTES: Final = 200
"""What Python takes for an entry beside its key and value: two objects, and a place in a dictionary."""
HELD_SECONDS: Final = 1.0
"""After these the store gets what is held, however little it is: a slow broker is progress, too."""


class ChangelogSource(Protocol):
    """What a restore reads with: the consumer's `changelogs()` (`transports/changelog_reader.py`,
    `transports/embedded_consumer.py`)."""

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Entry], int]:
        """Records of a partition from `offset` on, and the offset to read on from. None after `timeout`
        seconds; the offset moves over what compaction and transactions have left out."""
        ...


class LoadTarget(Protocol):
    """Where the rows go (`restore_store.BulkWrites`)."""

    def put(self, rows: Mapping[bytes, bytes | None], offset: int) -> None: ...


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """What is to be loaded of `tp`: from `start` up to, not including, `end`."""

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
    """Read it to its end; how many entries there were.

    `current` says whether the partition is still ours: if not, what was read is not written and the load ends.
    `loaded` is told how far the store is, after each write; a crash between leaves a store that goes on from there.
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
            target.put(rows, at - 1)
            loaded(at - 1)
            rows, held, since = {}, 0, clock()
    return count

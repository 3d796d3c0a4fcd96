"""The bulk load: a changelog partition read in batches, straight into the local store.

Faust takes every entry through its conductor, a queue, an event and a buffer (8 000 a second, all CPU). Here a batch
is what the consumer has fetched; no object is made for an entry. While one is written, the next is fetched: so two
are in memory, and no more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from faust.types import TP

from .restore_store import Entry

T = TypeVar("T")
#: seconds that one read waits for records; the load goes on after it
READ_WAIT = 1.0


class Changelog(Protocol):
    """What a restore reads with: the consumer's `changelogs()` (`transports/changelog_reader.py`,
    `transports/embedded_consumer.py`)."""

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Entry], int]:
        """Records of a partition from `offset` on, and the offset to read on from. None after `timeout`
        seconds; the offset moves over what compaction and transactions have left out."""
        ...


class Target(Protocol):
    """Where the entries go (`restore_store.BulkWrites`)."""

    def put(self, entries: Sequence[Entry], offset: int) -> Awaitable[None]:
        """Begins to write, all or nothing; what it returns is awaited before the next call."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be loaded of `tp`: from `start` up to, not including, `end`."""

    tp: TP
    start: int
    end: int


async def load(
    wanted: Load, *, changelog: Changelog, target: Target, current: Callable[[], bool], loaded: Callable[[int], None]
) -> int:
    """Read it to its end; how many entries there were.

    `current` says whether the partition is still ours: if not, what was just read is not written and the load ends.
    `loaded` is told how far the store is, once a batch is there; a crash leaves a store that goes on from there.
    """
    at, count = wanted.start, 0
    writing: Awaitable[None] | None = None

    async def written() -> None:
        if writing is not None:
            await writing
            if current():
                loaded(at - 1)

    while at < wanted.end and current():
        entries, after = await changelog.read(wanted.tp, at, READ_WAIT)
        await written()
        if not current():
            return count
        writing = target.put(entries, after - 1) if after > at else None
        at, count = max(at, after), count + len(entries)
    await written()
    return count

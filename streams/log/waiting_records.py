"""Records that consumer groups have not handled: their ranges by partition, and reading them in order of time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass

from .port import Log, Record


@dataclass(frozen=True, slots=True)
class WaitingRange:
    """The unhandled offsets of a partition, from `start` to below `end`."""

    start: int
    end: int

    @property
    def records(self) -> int:
        return self.end - self.start


async def waiting_ranges(log: Log, groups: Sequence[str], topic: str) -> dict[int, WaitingRange]:
    """Return, by partition, the range of records that at least one group has not handled.

    Partitions without such records are left out.
    """
    starts, ends = await log.starts(topic), await log.ends(topic)
    committed = [await log.committed(group, topic) for group in groups]
    found: dict[int, WaitingRange] = {}
    for partition, (first, end) in enumerate(zip(starts, ends, strict=True)):
        start = max(first, min((offsets[partition] or 0 for offsets in committed), default=end))
        if start < end and await log.first_at_or_after(topic, partition, start) is not None:
            found[partition] = WaitingRange(start, end)
    return found


async def in_order(log: Log, topic: str, ranges: Mapping[int, WaitingRange]) -> AsyncGenerator[Record]:
    """Yield the records of these ranges by timestamp. Records of one partition keep their order in the log."""
    async with AsyncExitStack() as stack:
        readers: dict[int, AsyncGenerator[Record]] = {}
        heads: dict[int, Record] = {}
        for partition, each in ranges.items():
            reader = log.read(topic, start={partition: each.start})
            readers[partition] = await stack.enter_async_context(aclosing(reader))
            await _advance(readers, heads, partition, each.end)
        while heads:
            partition = min(heads, key=lambda each: (heads[each].timestamp, each))
            yield heads.pop(partition)
            await _advance(readers, heads, partition, ranges[partition].end)


async def _advance(
    readers: Mapping[int, AsyncGenerator[Record]], heads: dict[int, Record], partition: int, end: int
) -> None:
    record = await anext(readers[partition], None)
    if record is not None and record.position.offset < end:
        heads[partition] = record

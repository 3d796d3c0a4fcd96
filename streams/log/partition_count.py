"""Check of the current partition count, made before an event is treated as misplaced.

A worker reads the count at its start. When partitions are added while the worker runs, producers choose partitions by
the new count, and valid events look misplaced to the worker. The worker then ends, because its table has the earlier
count.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from ...schemas.errors import Fatal
from .partitioner import partition_for
from .port import Log, Record


class CountChanged(Fatal):
    """The topics have another partition count than this worker or its table. Nothing was handled."""


def grow_advice(partitions: int) -> str:
    """Return the remedy for partition counts that differ."""
    return (
        f"stop all workers and run `memstream topics grow --partitions {partitions}`, which moves every row to the "
        f"partition of its key; then start them with MEMSTREAM_PARTITIONS={partitions}"
    )


@dataclass(slots=True)
class _Answers:
    begun: int = 0
    partitions: int | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class CountCheck:
    """Comparison of the topics' partition count with the count that the worker read at its start (`partitions`)."""

    def __init__(self, log: Log, *, partitions: int) -> None:
        self._log = log
        self._partitions = partitions
        self._answers: defaultdict[str, _Answers] = defaultdict(_Answers)

    def misplaces(self, record: Record, key: bytes) -> bool:
        """Return whether a record is not on the partition of its key, calculated with the known count."""
        return partition_for(key, self._partitions) != record.position.partition

    async def confirm(self, *topics: str) -> None:
        """Read the count of these topics from the log and compare it with the known count.

        Raises:
            CountChanged: a topic now has another count.
            Transient: the log does not answer.
        """
        for topic in topics:
            found = await self._ask(topic)
            if found is not None and found != self._partitions:
                raise CountChanged(
                    f"{topic} has {found} partitions, and this worker was started with {self._partitions}: "
                    + grow_advice(max(found, self._partitions))
                )

    async def _ask(self, topic: str) -> int | None:
        """Return the partition count, from a request that began after this call. Concurrent calls share one request."""
        answers = self._answers[topic]
        came = answers.begun
        async with answers.lock:
            if answers.begun == came:
                answers.begun += 1
                answers.partitions = await self._log.partitions(topic)
            return answers.partitions

"""The partition count of now. An event that seems misplaced is judged by it, before anything follows from that.

A worker learns its count at the start. When somebody adds partitions while it runs, producers choose partitions by the
new count, and good events look misplaced to the worker. It then ends: its table lies by the earlier count.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from ...schemas.errors import Fatal
from .partitioner import partition_for
from .port import Log, Record


class CountChanged(Fatal):
    """The topics have another partition count than this worker, or than a table lies by. Nothing was handled."""


def grow_advice(partitions: int) -> str:
    """Return what to do about counts that differ."""
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
    """Checks the count of a worker whose topics have `partitions` partitions, as it knows."""

    def __init__(self, log: Log, *, partitions: int) -> None:
        self._log = log
        self._partitions = partitions
        self._answers: defaultdict[str, _Answers] = defaultdict(_Answers)

    def misplaces(self, record: Record, key: bytes) -> bool:
        """Whether a record of this key lies on another partition than the known count says."""
        return partition_for(key, self._partitions) != record.position.partition

    async def confirm(self, *topics: str) -> None:
        """Ask the log for the count of these topics, and compare.

        Raises:
            CountChanged: a topic has another count by now.
            Transient: the log does not answer.
        """
        for topic in topics:
            found = await self._ask(topic)
            if found is not None and found != self._partitions:
                raise CountChanged(
                    f"{topic} has {found} partitions, and this worker works by {self._partitions}: "
                    + grow_advice(max(found, self._partitions))
                )

    async def _ask(self, topic: str) -> int | None:
        """Return the count as it was after the call. Calls that wait at the same time share a question."""
        answers = self._answers[topic]
        came = answers.begun
        async with answers.lock:
            if answers.begun == came:
                answers.begun += 1
                answers.partitions = await self._log.partitions(topic)
            return answers.partitions

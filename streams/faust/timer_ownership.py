"""Which partitions a stage has its timers of, from one assignment to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from ...schemas.errors import Relinquished, Transient
from ..engine.error_boundary import failure_of
from ..engine.handler import Rows, Stage

log = structlog.get_logger(__name__)
PAUSE: Final = 1.0
"""Seconds until a partition is looked at again when the log or the group did not answer."""


class TimerOwnership:
    """Lets a stage find what waits in each partition that is new, and drop the timers of those that are lost.

    A partition that stays here through every assignment is not looked at again. One that was given away in between is,
    because another worker has written to it. The work is a task, which ends before another worker can have the
    partition.
    """

    def __init__(
        self,
        stage: Stage[Any],
        rows: Rows,
        *,
        crash: Callable[[BaseException], Awaitable[None]],
        pause: float = PAUSE,
    ) -> None:
        self._stage = stage
        self._rows = rows
        self._crash = crash
        self._pause = pause
        self._known: set[int] = set()
        """The partitions whose timers are complete."""
        self._taken: frozenset[int] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def assigned(self, partitions: frozenset[int]) -> None:
        """Note an assignment, before its tables are recovered: all other partitions are given away."""
        self._known &= partitions

    def stop(self) -> None:
        """End the search: partitions are revoked, or the worker stops."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def take(self, partitions: frozenset[int]) -> None:
        """Take over these partitions, whose tables are recovered. Called again and again."""
        if self._task is not None and self._task.done():
            self._task = None
        if partitions != self._taken:
            self.stop()
            self._taken = partitions
            self._known &= partitions
            self._stage.retain(partitions)
        new = partitions - self._known
        if new and self._task is None:
            self._task = asyncio.create_task(self._find(sorted(new)))

    async def _find(self, partitions: list[int]) -> None:
        failure = await failure_of(self._find_in(partitions))
        if failure is not None:
            await self._crash(failure)

    async def _find_in(self, partitions: list[int]) -> None:
        for partition in partitions:
            while True:
                try:
                    await self._stage.rediscover(partition, self._rows)
                    break
                except (Transient, Relinquished) as error:
                    log.warning("timers_not_set", partition=partition, why=str(error))
                    await asyncio.sleep(self._pause)
            self._known.add(partition)

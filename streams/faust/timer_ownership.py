"""Ownership of timers: the partitions for which a stage has set its timers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import structlog

from ...schemas.errors import Relinquished, Transient
from ..engine.decision import Rows
from ..engine.error_boundary import exception_of
from ..engine.handler import Stage

log = structlog.get_logger(__name__)
PAUSE: Final = 1.0
"""Seconds until the search in a partition is tried again when the log or the group did not answer."""
ENDS_PAUSE: Final = 1.0
"""Seconds between two calls of `Stage.end_rows`. The stage itself may check less often."""


class TimerOwnership:
    """Owner of a stage's timers: it finds waiting work in new partitions, and drops the timers of lost partitions.

    A partition that this worker keeps through all assignments is searched only once. A partition that another worker
    owned in the meantime is searched again, because that worker has written to it. The search is a task that ends
    before another worker can get the partition. When all partitions are searched, a similar task calls
    `Stage.end_rows` periodically.
    """

    def __init__(
        self,
        stage: Stage[Any],
        rows: Rows,
        *,
        crash: Callable[[BaseException], Awaitable[None]],
        pause: float = PAUSE,
        ends_pause: float = ENDS_PAUSE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stage = stage
        self._rows = rows
        self._crash = crash
        self._pause = pause
        self._ends_pause = ends_pause
        self._monotonic = monotonic
        self._end_at = 0.0
        self._known: set[int] = set()
        """The partitions whose timers are complete."""
        self._taken: frozenset[int] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def assigned(self, partitions: frozenset[int]) -> None:
        """Record a new assignment, before its tables are recovered. Partitions outside it must be searched again."""
        self._known &= partitions

    def stop(self) -> None:
        """Cancel the task: partitions are revoked, or the worker stops."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def take(self, partitions: frozenset[int]) -> None:
        """Search new partitions, and drop the timers of lost partitions.

        Called periodically with the partitions that this worker owns. Their tables must be recovered.
        """
        if self._task is not None and self._task.done():
            self._task = None
        if partitions != self._taken:
            self.stop()
            self._taken = partitions
            self._known &= partitions
            self._stage.retain(partitions)
        new = partitions - self._known
        if new and self._task is None:
            self._task = asyncio.create_task(self._run(self._find_in(sorted(new))))
        if self._task is None and self._known and self._monotonic() >= self._end_at:
            self._end_at = self._monotonic() + self._ends_pause
            self._task = asyncio.create_task(self._run(self._end_rows(sorted(self._known))))

    async def _run(self, work: Coroutine[None, None, None]) -> None:
        failure = await exception_of(work)
        if failure is not None:
            await self._crash(failure)

    async def _end_rows(self, partitions: list[int]) -> None:
        for partition in partitions:
            try:
                await self._stage.end_rows(partition, self._rows)
            except (Transient, Relinquished) as error:
                log.warning("rows_not_ended", partition=partition, why=str(error))
                return

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

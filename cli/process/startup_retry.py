"""Retries while a worker connects to its servers at its start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from ...schemas.errors import AccessRefused, Transient
from ..errors import CommandFailed, Exit, unreachable

log = structlog.get_logger(__name__)
T = TypeVar("T")
WORKER_SECONDS = 60.0
PAUSE = 1.0


@dataclass(slots=True)
class StartupRetry:
    """Retries with one deadline for all servers.

    A server that refuses this process ends the start immediately (exit 3).
    After the deadline, CommandFailed (exit 3) names the unavailable server and the remedy.
    """

    seconds: float = WORKER_SECONDS
    pause: float = PAUSE
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    async def __call__(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat `attempt()` until it does not raise `Transient`, and return its result."""
        last: Transient | None = None
        while True:
            try:
                async with asyncio.timeout(max(0.0, self._until - time.monotonic())):
                    return await attempt()
            except TimeoutError:
                raise self._given_up(what, last) from None
            except AccessRefused as refused:
                raise unreachable(refused) from refused  # another attempt with the same credentials changes nothing
            except Transient as error:
                last = error
                log.warning("server_away", what=what, why=str(error), remedy=error.remedy)
            if time.monotonic() + self.pause >= self._until:
                raise self._given_up(what, last) from last
            await asyncio.sleep(self.pause)

    def _given_up(self, what: str, last: Transient | None) -> CommandFailed:
        why = f": {last}" if last is not None else ""
        remedy = f" ({last.remedy})" if last is not None and last.remedy else ""
        return CommandFailed(Exit.UNREACHABLE, f"{what} was not reached within {self.seconds:.0f} s{why}{remedy}")

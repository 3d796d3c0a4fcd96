"""Erasures that a server runs in the background. A server that starts continues the open erasures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

import structlog
from pydantic import BaseModel, ConfigDict

from ...adapters.ports import VectorStore
from ...schemas.base import describe
from ...schemas.erasures import ErasureMarker, ErasureReceipt
from ...schemas.errors import StageError
from ...streams.log.port import Log
from .eraser import ErasureStalled, UserEraser, read_erased_users, read_marker, read_receipt

log = structlog.get_logger(__name__)
PAUSE: Final = 30.0
"""Seconds until a run that failed is tried again."""
TOGETHER: Final = 2
"""Maximum number of runs at a time. A scan reads all records of its tenant, and remembers the keys of tables."""


class ErasureState(BaseModel):
    """State of an erasure. `receipt`: None while it is open."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    erasure_id: str
    tenant_id: str
    state: Literal["open", "closed"]
    why: str = ""
    """Reason why an open erasure does not proceed; empty if it proceeds, or if another process runs it."""
    receipt: ErasureReceipt | None = None


class ErasurePort(Protocol):
    """Start and follow erasures."""

    async def begin(self, tenant_id: str, user_id: str, *, issued_by: str) -> ErasureState:
        """Make the marker durable, and erase in the background. Raises Transient."""
        ...

    async def state(self, erasure_id: str) -> ErasureState | None:
        """Return the state of an erasure, or None if there is none. Raises Transient."""
        ...


@dataclass(slots=True, kw_only=True)
class ErasureRuns:
    """`ErasurePort` over the log and the store of this process."""

    store: VectorStore
    log: Log
    now: Callable[[], datetime]
    pause: float = PAUSE
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _why: dict[str, str] = field(default_factory=dict)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TOGETHER))

    async def begin(self, tenant_id: str, user_id: str, *, issued_by: str) -> ErasureState:
        eraser = self._eraser(tenant_id, user_id, issued_by)
        marker = await eraser.begin()
        self._start(eraser, marker)
        return ErasureState(erasure_id=marker.erasure_id, tenant_id=tenant_id, state="open")

    async def state(self, erasure_id: str) -> ErasureState | None:
        marker = await read_marker(self.log, erasure_id)
        if marker is not None and marker.state == "open":
            why, tenant_id = self._why.get(erasure_id, ""), marker.tenant_id or ""
            return ErasureState(erasure_id=erasure_id, tenant_id=tenant_id, state="open", why=why)
        receipt = await read_receipt(self.log, erasure_id)
        if receipt is None:
            return None
        return ErasureState(erasure_id=erasure_id, tenant_id=receipt.tenant_id, state="closed", receipt=receipt)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Continue the open erasures, and run new ones, until the block ends. Unfinished erasures stay open."""
        resuming = asyncio.create_task(self._resume())
        try:
            yield
        finally:
            tasks = (resuming, *self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _resume(self) -> None:
        while True:
            try:
                for marker in (await read_erased_users(self.log)).open():
                    if marker.tenant_id is not None and marker.user_id is not None:
                        self._start(self._eraser(marker.tenant_id, marker.user_id, "serve"), marker)
                return
            except Exception as error:  # noqa: BLE001 - every failure is shown, and tried again
                log.warning("erasures_not_resumed", why=_why(error))
            await asyncio.sleep(self.pause)

    def _eraser(self, tenant_id: str, user_id: str, issued_by: str) -> UserEraser:
        return UserEraser(
            store=self.store,
            log=self.log,
            now=self.now,
            tenant_id=tenant_id,
            user_id=user_id,
            issued_by=issued_by[:128],
        )

    def _start(self, eraser: UserEraser, marker: ErasureMarker) -> None:
        if marker.erasure_id not in self._tasks:
            self._tasks[marker.erasure_id] = asyncio.create_task(self._run(eraser, marker))

    async def _run(self, eraser: UserEraser, marker: ErasureMarker) -> None:
        """Run an erasure, again after each failure, until it is closed."""
        while True:
            try:
                async with self._places:
                    await eraser.finish(marker)
                self._why.pop(marker.erasure_id, None)
                self._tasks.pop(marker.erasure_id, None)
                return
            except Exception as error:  # noqa: BLE001 - the marker promises the erasure
                self._why[marker.erasure_id] = _why(error)
                log.warning("erasure_waits", erasure_id=marker.erasure_id, why=_why(error))
            await asyncio.sleep(self.pause)


def _why(error: Exception) -> str:
    """Describe why a run does not proceed, and what to do."""
    if isinstance(error, ErasureStalled):
        return str(error)
    if not isinstance(error, StageError):
        return f"{describe(error)}: report it as a bug; it is tried again"
    return f"{error}: {error.remedy}" if error.remedy else f"{error}: it is tried again"

"""The health of a worker as its orchestrator sees it: /livez and /readyz, read again and again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx

from tests.support.polling import wait_for

from .kafka import free_port

LOOK_EVERY = 0.2
ANSWER_WITHIN = 5.0
"""Seconds; the time-out of an orchestrator. On a busy machine an event loop with work may need one."""


@dataclass(frozen=True, slots=True)
class Look:
    """One reading of the health. `why`: the reason of each part that is not ready; `notes`: remarks of ready
    parts.
    """

    at: float
    alive: bool
    ready: bool
    why: dict[str, str]
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Watched:
    """The readings since the worker first answered. `port` is for its MEMSTREAM_HEALTH_PORT."""

    port: int
    looks: list[Look] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {"MEMSTREAM_HEALTH_PORT": str(self.port)}

    @property
    def last(self) -> Look | None:
        return self.looks[-1] if self.looks else None

    async def becomes(self, ready: bool, *, part: str = "", why: str = "", deadline: float = 30.0) -> Look:
        """Wait for a look from now on with this readiness; if not ready, with this part and this text in its reason."""
        began = time.monotonic()

        def matches(look: Look | None) -> bool:
            if look is None or look.at < began or look.ready != ready:
                return False
            return ready or not part or why in look.why.get(part, "\0")

        what = "the worker to be ready" if ready else f"the worker not to be ready ({part} {why})"
        found = await wait_for(lambda: self.last, what, until=matches, deadline=deadline, pause=LOOK_EVERY / 2)
        assert found is not None
        return found

    def always_alive(self) -> None:
        """Check that every reading of /livez was 200."""
        assert self.looks
        dead = [look for look in self.looks if not look.alive]
        assert not dead, dead[:3]


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    """Read the health of a worker that is about to start, while the block runs."""
    found = Watched(free_port())
    looking = asyncio.create_task(_look(found))
    try:
        yield found
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


async def _look(found: Watched) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{found.port}", timeout=ANSWER_WITHIN) as client:
        while True:
            try:
                alive, ready = await client.get("/livez"), await client.get("/readyz")
            except httpx.HTTPError:
                if found.looks:
                    found.looks.append(Look(time.monotonic(), False, False, {}))
            else:
                parts = ready.json()["parts"]
                why = {name: part["why"] for name, part in parts.items() if not part["ready"]}
                assert (ready.status_code, ready.json()["ready"]) == ((503, False) if why else (200, True))
                notes = {name: part["why"] for name, part in parts.items() if part["ready"] and part["why"]}
                found.looks.append(Look(time.monotonic(), alive.status_code == 200, not why, why, notes))
            await asyncio.sleep(LOOK_EVERY)

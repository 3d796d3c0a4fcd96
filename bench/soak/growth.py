"""The growth of a soak: in the middle of the load every topic gets more partitions, as docs/how-to/grow-partitions.md
says. The command is killed once and called again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bench.soak.world import World

log = structlog.get_logger(__name__)

WAITS, WORKERS = 1, 2
"""Exit codes of `topics grow`: something waits to be observed; the group still has members."""
TRIES = 20
KILLED_AFTER = (1.0, 6.0)
"""Seconds after which the first call is killed; it starts within about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What a growth took. `began` and `ended` in seconds since the soak began."""

    partitions: tuple[int, int]
    began: float
    ended: float
    calls: int
    """Calls of the command, the killed one and those that found something waiting included."""
    killed: bool
    """Whether a call was killed in the middle. One that is quicker is not."""
    took: float
    """Seconds of the last call."""


async def grow(world: World, partitions: int, *, drain: Callable[[], Awaitable[None]]) -> Grown:
    """Give all topics `partitions`, with the workers stopped; return when the next workers have been started.

    The traffic has to rest. Where turns still wait, workers are started again; `drain` waits until they have no lag.
    Raises RuntimeError if the command fails, or something still waits after `TRIES` calls.
    """
    began, before = world.now(), world.partitions
    kill_after: float | None = random.Random(f"growth/{world.seed}").uniform(*KILLED_AFTER)
    for calls in range(1, TRIES + 1):
        await world.stop_workers()
        world.leave_seats()
        at = time.monotonic()
        code, out = await world.command("topics", "grow", "--partitions", str(partitions), killed_after=kill_after)
        took = time.monotonic() - at
        log.info("growth_called", exit=code, took=round(took, 1))
        if code == 0:
            world.partitions = partitions
            world.fill_seats()
            return Grown(
                partitions=(before, partitions),
                began=began,
                ended=world.now(),
                calls=calls,
                killed=kill_after is None,
                took=round(took, 1),
            )
        if code == WAITS:
            world.fill_seats()
            await drain()
        elif code == WORKERS:  # a static member that was stopped counts until its session time-out
            await asyncio.sleep(1.0)
        elif code < 0:
            kill_after = None
        else:
            raise RuntimeError(f"memstream topics grow: exit {code}\n{out}")
    raise RuntimeError(f"memstream topics grow: something still waits after {TRIES} calls\n{out}")

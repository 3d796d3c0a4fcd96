"""The growth in a soak: in the middle of the load, every topic gets more partitions (docs/how-to/grow-partitions.md).

The command is killed once and called again.
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
"""Exit codes of `topics grow`: turns wait to be observed; the group still has members."""
TRIES = 20
KILLED_AFTER = (1.0, 6.0)
"""Range of seconds after which the first call is killed. Its start takes about one second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The result of a growth. `began` and `ended` in seconds since the soak began."""

    partitions: tuple[int, int]
    began: float
    ended: float
    calls: int
    """Number of calls of the command, including the killed call and calls that were refused because turns waited."""
    killed: bool
    """True when a call was killed while it ran. A fast call may end before."""
    took: float
    """Duration of the last call in seconds."""


async def grow(world: World, partitions: int, *, drain: Callable[[], Awaitable[None]]) -> Grown:
    """Stop the workers, grow all topics to `partitions`, and start new workers.

    There must be no traffic meanwhile. If turns still wait, workers are started again, and `drain` waits until they
    have no lag. Raises RuntimeError if the command fails, or if turns still wait after `TRIES` calls.
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
        elif code == WORKERS:  # a stopped static member counts until its session time-out
            await asyncio.sleep(1.0)
        elif code < 0:
            kill_after = None
        else:
            raise RuntimeError(f"memstream topics grow: exit {code}\n{out}")
    raise RuntimeError(f"memstream topics grow: something still waits after {TRIES} calls\n{out}")

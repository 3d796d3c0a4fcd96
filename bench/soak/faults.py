"""Application of the faults of a soak to a running world, with a log of the applied faults."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from bench.soak.model import AWAYS
from bench.soak.schedule import Fault
from bench.soak.workers import Seat
from bench.soak.world import World
from memstream.schemas.topics import STAGES

log = structlog.get_logger(__name__)

TRIES = 10
"""Number of attempts to restart a server. On a busy machine a server may not answer within its thirty seconds."""


@dataclass(slots=True)
class Struck:
    """An applied fault: start and end in seconds since the soak began, and its target."""

    kind: str
    whom: str
    began: float
    ended: float | None = None


async def strike(world: World, plan: Sequence[Fault], done: list[Struck]) -> None:
    """Apply each fault of the plan at its time. Return when the last fault is over."""
    async with asyncio.TaskGroup() as group:
        for fault in plan:
            group.create_task(_one(world, fault, done))


async def _one(world: World, fault: Fault, done: list[Struck]) -> None:
    await asyncio.sleep(fault.at - world.now())
    struck = Struck(fault.kind, "", world.now())
    done.append(struck)
    match fault.kind:
        case "kill -9" | "SIGTERM":
            seat = _victim(world, fault)
            struck.whom = seat.name
            seat.signal(signal.SIGKILL if fault.kind == "kill -9" else signal.SIGTERM)
        case "SIGSTOP":
            seat = _victim(world, fault)
            struck.whom = seat.name
            seat.signal(signal.SIGSTOP)
            await asyncio.sleep(fault.lasts)
            seat.signal(signal.SIGCONT)
        case "worker added":
            seat = world.add_seat(STAGES[int(fault.pick * len(STAGES))])
            struck.whom = seat.name
            await asyncio.sleep(fault.lasts)
            await world.remove_seat(seat)
        case "broker restarted" | "broker killed":
            await _broker(world, fault)
        case "store away":
            await _store(world, fault)
        case "model away":
            how = AWAYS[int(fault.pick * len(AWAYS))]
            struck.whom = how
            await world.model_away(how)
            await asyncio.sleep(fault.lasts)
            await world.model_back()
    struck.ended = world.now()
    log.info("struck", kind=struck.kind, whom=struck.whom, at=round(struck.began, 1), until=round(struck.ended, 1))


def _victim(world: World, fault: Fault) -> Seat:
    """Choose a worker that is not spared and was not added during the soak."""
    may = [seat for seat in world.seats if not seat.spared and "added" not in seat.name]
    return may[int(fault.pick * len(may))]


async def _broker(world: World, fault: Fault) -> None:
    assert world.broker is not None
    async with world.broker_lock:  # two overlapping faults run one after the other
        await asyncio.to_thread(world.broker.kill if fault.kind == "broker killed" else world.broker.stop)
        await asyncio.sleep(fault.lasts)
        await _started(world.broker.start)


async def _started(start: Callable[[], None]) -> None:
    """Start a server. Repeat the start on a busy machine; the fault then lasts longer."""
    for attempt in range(1, TRIES + 1):
        try:
            await asyncio.to_thread(start)
            return
        except RuntimeError as error:
            if attempt == TRIES:
                raise
            log.warning("not_started", attempt=attempt, why=str(error)[:200])


async def _store(world: World, fault: Fault) -> None:
    assert world.store is not None
    async with world.store_lock:
        await asyncio.to_thread(world.store.kill if fault.pick < 0.5 else world.store.stop)
        await asyncio.sleep(fault.lasts)
        await _started(world.store.start)

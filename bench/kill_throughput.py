"""R8: throughput with a worker killed every 10 s ÷ throughput without, and the model calls that each kill repeats.

One run under a backlog has slots of 10 s: quiet, kill, kill, quiet … At the beginning of a `kill` slot, one worker is
killed with SIGKILL and restarted immediately, as a supervisor does. The slot includes the whole cost.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from memstream.schemas.topics import OBSERVATIONS

from .report import Figure
from .turns import Speakers, produce, turn_of
from .world import Worker, World

TARGET = 0.8
TOGETHER = {"MEMSTREAM_OBSERVE_TOGETHER": "1"}


@dataclass(frozen=True, slots=True)
class Load:
    workers: int
    """Workers on Kafka; a folder has one."""
    in_flight: int
    """Turns in flight per worker."""
    latency: float
    pairs: int
    slot: float
    """Length of a slot in seconds."""
    warm_up: float
    sessions: int


FULL = Load(workers=3, in_flight=32, latency=1.0, pairs=5, slot=10.0, warm_up=4.0, sessions=1_000)
QUICK = Load(workers=2, in_flight=4, latency=0.05, pairs=1, slot=3.0, warm_up=1.0, sessions=20)


async def measure(world: World, load: Load) -> list[Figure]:
    workers = load.workers if world.kind == "kafka" else 1
    seconds = load.warm_up + 2 * load.pairs * load.slot
    turns = int(workers * load.in_flight / load.latency * seconds * 1.2)
    since = await world.log.ends(OBSERVATIONS.name)
    await world.model.reset(latency=load.latency)
    await produce(world.log, Speakers(f"r8-{world.kind}", load.sessions).turns(turns))
    names = [f"r8-{n}" for n in range(workers)]
    running = {name: _start(world, name, load) for name in names}
    await world.grown(OBSERVATIONS.name, since, workers * load.in_flight)
    await asyncio.sleep(load.warm_up)
    slots = await _slots(world, load, running)
    asked = Counter(mark for marks, _, _ in await world.model.each_call() for mark in marks)
    await world.model.reset(latency=0.0)
    await world.settled("observer")
    await world.stop()
    rates = await _rates(world, since, slots)
    kills = sum(killed for _, _, killed in slots)
    quiet = median(rate for killed, rate in rates if not killed)
    hit = median(rate for killed, rate in rates if killed)
    return [
        Figure(
            ratio="R8",
            what=f"throughput, one of {workers} workers killed every {load.slot:g} s ÷ none",
            on=world.kind,
            value=hit / quiet,
            target=TARGET,
            detail={"turns/s without": quiet, "with": hit},
        ),
        Figure(
            ratio="R8",
            what="model calls repeated a kill",
            on=world.kind,
            value=sum(count - 1 for count in asked.values()) / kills,
            target=float(load.in_flight),
            better="lower",
            detail={"kills": kills, "in flight": load.in_flight},
        ),
    ]


def _start(world: World, name: str, load: Load) -> Worker:
    return world.worker("observer", in_flight=load.in_flight, name=name, **TOGETHER)


async def _slots(world: World, load: Load, running: dict[str, Worker]) -> list[tuple[float, float, bool]]:
    """Return start and end (seconds since 1970) of each slot, and whether a worker was killed at its start."""
    slots = []
    names = list(running)
    begin = time.time()
    for slot in range(2 * load.pairs):
        killed = slot % 4 in (1, 2)  # A/B/B/A
        if killed:
            name = names[slot % len(names)]
            running[name].kill()
            world.workers.remove(running[name])
            running[name] = _start(world, name, load)
        end = begin + load.slot
        await asyncio.sleep(max(0.0, end - time.time()))
        slots.append((begin, end, killed))
        begin = end
    return slots


async def _rates(
    world: World, since: Sequence[int], slots: Sequence[tuple[float, float, bool]]
) -> list[tuple[bool, float]]:
    """Return, for each slot, whether a worker was killed, and the turns per second.

    A turn counts at its first output.
    """
    first: dict[str, float] = {}
    async for record in world.log.read(OBSERVATIONS.name, start=dict(enumerate(since))):
        mark, at = turn_of(record), record.timestamp / 1_000
        first[mark] = min(at, first.get(mark, at))
    return [(killed, sum(begin <= at < end for at in first.values()) / (end - begin)) for begin, end, killed in slots]

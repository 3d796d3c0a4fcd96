"""Samples taken every second: memory and CPU of each process, lag of each stage, metrics of workers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
import psutil

from bench.soak.workers import Seat
from bench.soak.world import World
from memstream.schemas.errors import Transient
from memstream.schemas.topics import STAGES, StageName, group_of, read_by
from memstream.streams.log.port import Log

EVERY = 1.0
LAG_EVERY = 2.0
ASKED_WITHIN = 2.0
"""Time-out in seconds of a request for a worker's metrics."""
GAUGES = ("held", "in_flight")
WAITING = re.compile(r'^memstream_waiting_turns\{tenant="[^"]*"\} ([\d.e+]+)$', re.MULTILINE)
GAUGE = re.compile(r'^memstream_(\w+)\{stage="(\w+)"\} ([\d.e+]+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Used:
    """A sample of one process. `rss` in MB (10⁶ bytes), `cpu` in seconds since its start."""

    at: float
    name: str
    pid: int
    rss: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Behind:
    """A sample of the lag by stage, in records over all topics that the stage reads; empty while the broker is away."""

    at: float
    by_stage: dict[str, int]


@dataclass(frozen=True, slots=True)
class Said:
    """A worker's answers on /metrics and /readyz."""

    at: float
    name: str
    ready: bool
    held: int
    in_flight: int


@dataclass(slots=True)
class Samples:
    used: list[Used] = field(default_factory=list)
    behind: list[Behind] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)


async def sample(world: World, samples: Samples) -> None:
    """Take samples until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_every(EVERY, lambda: _processes(world, samples)))
        group.create_task(_lags(world, samples))
        group.create_task(_workers(world, samples))


async def _every(seconds: float, look: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    at = clock()
    while True:
        await look()
        at = max(at + seconds, clock())
        await asyncio.sleep(at - clock())


async def _processes(world: World, samples: Samples) -> None:
    now = world.now()
    pids = {seat.name: seat.pid for seat in world.seats} | dict(world.pids())
    for name, pid in pids.items():
        if pid is None:
            continue
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                times = process.cpu_times()
                samples.used.append(Used(now, name, pid, process.memory_info().rss / 1e6, times.user + times.system))
        except psutil.NoSuchProcess:
            continue


async def lag(log: Log, stage: StageName) -> int:
    """Return the number of records that the stage has not committed yet. Raises Transient."""
    total = 0
    for topic in read_by(stage):
        ends, committed = await asyncio.gather(log.ends(topic.name), log.committed(group_of(stage), topic.name))
        total += sum(end - (at or 0) for end, at in zip(ends, committed, strict=True))
    return total


async def lags(log: Log) -> dict[str, int]:
    return {stage: await lag(log, stage) for stage in STAGES}


async def waiting_turns(http: aiohttp.ClientSession, world: World) -> int:
    """Return the number of turns that wait to be observed. They are committed, so they are no lag. Raises
    aiohttp.ClientError while a worker is away."""
    total = 0
    for seat in [each for each in world.seats if each.pid is not None]:
        async with http.get(f"http://127.0.0.1:{seat.health_port}/metrics") as answer:
            total += waiting_in(await answer.text())
    return total


def waiting_in(metrics: str) -> int:
    """Return the number of turns that wait, over all tenants, in the metrics of a worker."""
    return int(sum(map(float, WAITING.findall(metrics))))


async def _lags(world: World, samples: Samples) -> None:
    log = world.log(timeout=5.0)
    await log.start()
    try:

        async def look() -> None:
            try:
                found = await lags(log)
            except (Transient, ValueError):  # the broker is away or not fully back
                found = {}
            samples.behind.append(Behind(world.now(), found))

        await _every(LAG_EVERY, look)
    finally:
        await log.close()


async def _workers(world: World, samples: Samples) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASKED_WITHIN)) as http:

        async def ask(seat: Seat) -> None:
            now = world.now()
            url = f"http://127.0.0.1:{seat.health_port}"
            try:
                async with http.get(f"{url}/readyz") as answer:
                    ready = answer.status == 200
                async with http.get(f"{url}/metrics") as answer:
                    gauges = GAUGE.findall(await answer.text())
            except (aiohttp.ClientError, TimeoutError):
                samples.said.append(Said(now, seat.name, False, 0, 0))
                return
            told = {wanted: sum(float(value) for name, _, value in gauges if name == wanted) for wanted in GAUGES}
            samples.said.append(Said(now, seat.name, ready, int(told["held"]), int(told["in_flight"])))

        async def look() -> None:
            await asyncio.gather(*(ask(seat) for seat in world.seats if seat.pid is not None))

        await _every(LAG_EVERY, look)

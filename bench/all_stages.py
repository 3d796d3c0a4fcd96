"""All four stages on one machine: turns per second until no group has any lag, and the cost of a turn in each stage.

Turns of many sessions wait when the workers, one process per stage, are released (SIGCONT). The workers are warm: they
have handled other turns before. Broker, store, model and workers share the machine, so a request that a stage avoids
saves time twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import httpx

from memstream.schemas.topics import STAGES

from .report import Figure
from .turns import Speakers, produce
from .world import Worker, World

HELD_TIMEOUT = 40.0
"""Session time-out in seconds of the workers that are stopped while all turns are produced."""
LOOK_SECONDS = 0.5
"""Time between two checks of the lag. A check every 50 ms takes a tenth of a core here, and as much in the broker."""
WARM_UP_SECONDS = 600.0
"""Time in which four workers must start, on a machine that may be busy."""
REFERENCE = 219.0
"""Turns per second of a plain aiokafka loop with the same guarantees, on the machine of these figures."""
TARGET = 0.8
REQUESTS = re.compile(r'^rest_responses_total\{[^}]*endpoint="([^"]*)"[^}]*\} (\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Load:
    rounds: int
    turns: int
    sessions: int
    latency: float
    warm_up: int
    """Number of turns before the first round, each in a separate session."""


FULL = Load(rounds=2, turns=3_000, sessions=1_000, latency=0.1, warm_up=200)
QUICK = Load(rounds=1, turns=9, sessions=3, latency=0.01, warm_up=2)


@dataclass(frozen=True, slots=True)
class Counted:
    """Cumulative counts of the work so far."""

    cpu: Mapping[str, float]
    requests: Mapping[str, int]
    """Requests to the store by endpoint; empty if the store does not count them."""
    records: int

    def since(self, before: Counted, turns: int) -> dict[str, float]:
        """Return the work per turn since `before`."""
        spent = {f"{name} ms": (self.cpu[name] - before.cpu[name]) / turns * 1e3 for name in self.cpu}
        asked = sum(self.requests.values()) - sum(before.requests.values())
        told = {"requests to the store": asked / turns} if self.requests else {}
        return {**spent, **told, "records": (self.records - before.records) / turns}


async def measure(world: World, load: Load) -> list[Figure]:
    await world.model.reset(latency=load.latency)
    kinds = [(stage,) for stage in STAGES] if world.kind == "kafka" else [STAGES]
    timeout = {"MEMSTREAM_SESSION_TIMEOUT": f"{HELD_TIMEOUT:g}"}
    name = f"all-{time.time_ns():x}"  # unique, because a server keeps the data of earlier runs
    workers = {"+".join(stages): world.worker(*stages, **timeout) for stages in kinds}
    await produce(world.log, Speakers(f"{name}-warm-up", load.warm_up).turns(load.warm_up))
    await world.settled(*STAGES, within=WARM_UP_SECONDS)
    rates, details = [], []
    for n in range(load.rounds):
        said = Speakers(f"{name}-{n}", load.sessions).turns(load.turns)
        before = await _counted(world, workers)
        with ExitStack() as held:
            for worker in workers.values():
                held.enter_context(worker.held())
            await produce(world.log, said)
        began = time.monotonic()
        await world.settled(*STAGES, within=load.turns, pause=LOOK_SECONDS)
        rates.append(load.turns / (time.monotonic() - began))
        details.append((await _counted(world, workers)).since(before, load.turns))
    await world.stop()
    what = f"turns/s of all stages, {load.turns} turns of {load.sessions} sessions, model {load.latency * 1e3:g} ms"
    detail = {name: median(each[name] for each in details) for name in details[0]}
    rate = median(rates)
    on_kafka = world.kind == "kafka"
    return [
        Figure(
            ratio="all stages",
            what=f"{what}, ÷ a plain loop's {REFERENCE:g}" if on_kafka else what,
            on=world.kind,
            value=rate / REFERENCE if on_kafka else rate,
            target=TARGET if on_kafka else None,
            detail={"turns/s": rate, **detail},
        )
    ]


async def _counted(world: World, workers: Mapping[str, Worker]) -> Counted:
    topics = await world.log.topics()
    ends = [await world.log.ends(topic) for topic in topics if not topic.startswith("__")]
    return Counted(
        cpu={name: worker.cpu_seconds() for name, worker in workers.items()},
        requests=await _requests(world),
        records=sum(map(sum, ends)),
    )


async def _requests(world: World) -> dict[str, int]:
    """Return the number of requests that the store has answered, by endpoint. Only a real server counts them."""
    if world.server is not None or world.kind != "kafka":
        return {}
    async with httpx.AsyncClient(base_url=world.stores["MEMSTREAM_QDRANT"]) as client:
        told = (await client.get("/metrics")).raise_for_status().text
    requests = dict.fromkeys((name for name, _ in REQUESTS.findall(told)), 0)
    for name, count in REQUESTS.findall(told):
        requests[name] += int(count)
    return requests

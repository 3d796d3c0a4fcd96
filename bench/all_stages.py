"""All four stages on the machine at once: turns a second until no group has any lag, and what a turn costs each stage.

Turns of many sessions wait when the workers, one process a stage, are let go (SIGCONT). They are warm: they have done
other turns before. Broker, store, model and workers share the machine, so a request that a stage does not make counts
twice.
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
"""The session time-out of workers that are held while all turns are produced, in seconds."""
LOOK_SECONDS = 0.5
"""Between two looks at the lag. A look every 50 ms takes a tenth of a core here, and as much of the broker."""
WARM_UP_SECONDS = 600.0
"""In which four workers have to start, on a machine that may be busy."""
REFERENCE = 219.0
"""Turns a second that a loop in plain aiokafka with the same promises does on the machine of these figures."""
TARGET = 0.8
REQUESTS = re.compile(r'^rest_responses_total\{[^}]*endpoint="([^"]*)"[^}]*\} (\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Load:
    rounds: int
    turns: int
    sessions: int
    latency: float
    warm_up: int
    """Turns before the first round, each of a session of its own."""


FULL = Load(rounds=2, turns=3_000, sessions=1_000, latency=0.1, warm_up=200)
QUICK = Load(rounds=1, turns=9, sessions=3, latency=0.01, warm_up=2)


@dataclass(frozen=True, slots=True)
class Counted:
    """What has been done so far, as counts that only grow."""

    cpu: Mapping[str, float]
    requests: Mapping[str, int]
    """Of the store, by endpoint; empty when it does not tell."""
    records: int

    def since(self, before: Counted, turns: int) -> dict[str, float]:
        """Return what was done since then, a turn."""
        spent = {f"{name} ms": (self.cpu[name] - before.cpu[name]) / turns * 1e3 for name in self.cpu}
        asked = sum(self.requests.values()) - sum(before.requests.values())
        told = {"requests to the store": asked / turns} if self.requests else {}
        return {**spent, **told, "records": (self.records - before.records) / turns}


async def measure(world: World, load: Load) -> list[Figure]:
    await world.model.reset(latency=load.latency)
    kinds = [(stage,) for stage in STAGES] if world.kind == "kafka" else [STAGES]
    timeout = {"MEMSTREAM_SESSION_TIMEOUT": f"{HELD_TIMEOUT:g}"}
    name = f"all-{time.time_ns():x}"  # a server keeps what an earlier run has told it
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
    """Return how many requests the store has answered, by endpoint. Only a real server counts them."""
    if world.server is not None or world.kind != "kafka":
        return {}
    async with httpx.AsyncClient(base_url=world.stores["MEMSTREAM_QDRANT"]) as client:
        told = (await client.get("/metrics")).raise_for_status().text
    requests = dict.fromkeys((name for name, _ in REQUESTS.findall(told)), 0)
    for name, count in REQUESTS.findall(told):
        requests[name] += int(count)
    return requests

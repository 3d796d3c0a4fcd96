"""R3′: processor time of a turn in each stage ÷ processor time of the same calls in a plain loop (bench/floor.py).

First, all four stages handle one turn through a proxy that records their requests. Then turns wait, each of a separate
session, so that no two of them are decided together. The stages are released one after the other; the floor of a stage
has the same backlog.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from statistics import median

from memstream.schemas.topics import (
    EPISODES_RECORDED,
    OBSERVATIONS,
    STAGES,
    TOPICS,
    TURNS,
    StageName,
    Topic,
    changelog_of,
    group_of,
)
from memstream.streams.log.port import Record

from . import floor
from .report import Figure
from .request_proxy import RequestProxy, proxy_of
from .turns import Speakers, produce
from .world import ROOT, NotMeasured, Worker, World

TARGET = 2.0
ABSOLUTE: Mapping[StageName, float] = {"recorder": 1.5, "observer": 3.5, "reflector": 4.0, "consolidation": 2.0}
"""Milliseconds per turn on the machine of these figures, with a real server."""
SOURCES: Mapping[StageName, Topic] = {
    "recorder": TURNS,
    "observer": TURNS,
    "reflector": OBSERVATIONS,
    "consolidation": EPISODES_RECORDED,
}
"""The topic with one record per turn, by stage."""
HELD_SECONDS = 40.0
"""Session time-out of workers that are stopped while others work."""
IN_FLIGHT = 64
READS = ("/points/query/batch", "/points/scroll", "/points/query")
WRITES = ("/points", "/points/payload", "/points/vectors")
MODEL = ("/chat/completions",)


@dataclass(frozen=True, slots=True)
class Load:
    rounds: int
    turns: int
    warm_up: int


FULL = Load(rounds=3, turns=400, warm_up=200)
QUICK = Load(rounds=1, turns=floor.WARM_UP + 5, warm_up=2)


@dataclass(frozen=True, slots=True)
class Sample:
    """The requests and records that a stage sent for one turn."""

    requests: Sequence[floor.Request]
    sent: Sequence[floor.Sent]


async def measure(world: World, load: Load) -> list[Figure]:
    store = world.stores["MEMSTREAM_QDRANT"]
    if world.kind != "kafka" or world.server is not None:
        raise NotMeasured("R3′ needs Kafka and a Qdrant server (MEMSTREAM_TEST_QDRANT)")
    await world.model.reset(latency=0.0)
    name = f"floors-{time.time_ns():x}"
    async with AsyncExitStack() as stack:
        stores = {stage: await stack.enter_async_context(proxy_of(store)) for stage in STAGES}
        models = {stage: await stack.enter_async_context(proxy_of(_model(world))) for stage in STAGES}
        workers = {stage: _worker(world, stage, stores[stage], models[stage]) for stage in STAGES}
        await produce(world.log, Speakers(f"{name}-warm-up", load.warm_up).turns(load.warm_up))
        await world.settled(*STAGES, within=600.0)
        samples = await _samples(world, stores, models, Speakers(f"{name}-sample", 1))
        spent: dict[StageName, list[float]] = {stage: [] for stage in STAGES}
        floors: dict[StageName, list[float]] = {stage: [] for stage in STAGES}
        for number in range(load.rounds):
            with ExitStack() as held:
                for worker in workers.values():
                    held.enter_context(worker.held())
                await produce(world.log, Speakers(f"{name}-{number}", load.turns).turns(load.turns))
                for stage in STAGES:
                    source = SOURCES[stage]
                    start = await _committed(world, stage, source)
                    spent[stage].append(await _let_go(world, workers[stage], stage, load.turns))
                    floors[stage].append(await _floor(world, samples[stage], source, start, load.turns))
        await world.stop()
    return [_figure(stage, spent[stage], floors[stage], samples[stage]) for stage in STAGES]


def _figure(stage: StageName, spent: Sequence[float], floors: Sequence[float], sample: Sample) -> Figure:
    return Figure(
        ratio="R3′",
        what=f"CPU a turn ÷ the same calls in a plain loop, {stage}",
        on="kafka",
        value=median(one / other for one, other in zip(spent, floors, strict=True)),
        target=TARGET,
        better="lower",
        detail={
            "ms": median(spent),
            "target ms": ABSOLUTE[stage],
            "plain ms": median(floors),
            "requests of the plain loop": len(sample.requests),
            "records": len(sample.sent),
        },
    )


def _model(world: World) -> str:
    return world.model.environment["OPENAI_BASE_URL"].removesuffix("/v1")


def _worker(world: World, stage: StageName, store: RequestProxy, model: RequestProxy) -> Worker:
    return world.worker(
        stage,
        in_flight=IN_FLIGHT,
        MEMSTREAM_QDRANT=store.url,
        OPENAI_BASE_URL=f"{model.url}/v1",
        MEMSTREAM_SESSION_TIMEOUT=f"{HELD_SECONDS:g}",
    )


# ------------------------------------------------------------------------------------------------ one turn
async def _samples(
    world: World, stores: Mapping[StageName, RequestProxy], models: Mapping[StageName, RequestProxy], who: Speakers
) -> dict[StageName, Sample]:
    """Let all stages handle one turn. Return the requests and records of each stage."""
    topics = [topic for topic in await world.log.topics() if not topic.startswith("__")]
    before = {topic: await world.log.ends(topic) for topic in topics}
    with ExitStack() as noting:
        stored = {stage: noting.enter_context(proxy.noting()) for stage, proxy in stores.items()}
        asked = {stage: noting.enter_context(proxy.noting()) for stage, proxy in models.items()}
        await produce(world.log, who.turns(1))
        await world.settled(*STAGES)
    written = {topic: await _since(world, topic, ends) for topic, ends in before.items()}
    return {
        stage: Sample(
            [*_largest(asked[stage], MODEL), *_largest(stored[stage], READS), *_largest(stored[stage], WRITES)],
            [
                floor.Sent((each.key or b"").decode("latin-1"), (each.value or b"").decode("latin-1"))
                for topic, records in written.items()
                if stage in _writers(topic)
                for each in records
            ],
        )
        for stage in STAGES
    }


def _largest(noted: Sequence[floor.Request], ends: Sequence[str]) -> list[floor.Request]:
    """Return the largest request whose path has one of these ends, if any: several requests could be one."""
    kind = [each for each in noted if each.url.partition("?")[0].endswith(tuple(ends))]
    return sorted(kind, key=lambda each: len(each.body))[-1:]


def _writers(topic: str) -> list[StageName]:
    """Return the stages that write this topic; none for memory.turns, because that record is the turn itself."""
    written = [each for each in TOPICS if each.name == topic and each is not TURNS]
    tables = [stage for stage in STAGES if (log := changelog_of(stage)) is not None and log.name == topic]
    return [*tables, *(stage for each in written for stage in STAGES if stage in each.written_by)]


async def _since(world: World, topic: str, ends: Sequence[int]) -> list[Record]:
    start = dict(enumerate(ends))
    return [record async for record in world.log.read(topic, start=start)]


# ------------------------------------------------------------------------------------------------ many turns
async def _committed(world: World, stage: StageName, source: Topic) -> list[int]:
    return [at or 0 for at in await world.log.committed(group_of(stage), source.name)]


async def _let_go(world: World, worker: Worker, stage: StageName, turns: int) -> float:
    """Let a stopped stage handle its backlog. Return the processor time per turn in ms."""
    before = worker.cpu_seconds()
    worker.let_go()
    try:
        await world.settled(stage, within=600.0, pause=0.25)
    finally:
        worker.hold()
    return (worker.cpu_seconds() - before) / turns * 1e3


async def _floor(world: World, sample: Sample, source: Topic, start: Sequence[int], turns: int) -> float:
    [sink] = await world.fresh_topics("floor")
    options = floor.Options(
        name=sink,
        servers=world.broker.removeprefix("kafka://"),
        source=source.name,
        sink=sink,
        start=start,
        records=turns,
        in_flight=IN_FLIGHT,
        requests=sample.requests,
        sent=sample.sent,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.floor", cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate(floor.OPTIONS.dump_json(options))
    if process.returncode:
        raise NotMeasured("the plain loop failed")
    return float(out)

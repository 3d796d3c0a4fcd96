"""R3: CPU time per turn and stage ÷ CPU time of a plain aiokafka consume → produce → commit of the same bytes.

Both processes run all the time and get bursts of the same turns alternately: stage, plain, plain, stage. Only the CPU
time of a process during its own burst counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from memstream.schemas.topics import STAGES, StageName

from . import baseline, overhead
from .report import Figure
from .turns import Speakers, produce
from .world import Worker, World

TARGETS = {False: 25.0, True: 45.0}
"""Targets of the two stages, without and with a table."""
WITH_TABLE: dict[StageName, bool] = {"recorder": False, "observer": True, "reflector": True, "consolidation": True}


@dataclass(frozen=True, slots=True)
class Load:
    pairs: int
    records: int
    turns: int
    """Number of turns in a burst for the real stages."""
    sessions: int


FULL = Load(pairs=5, records=1_500, turns=200, sessions=200)
QUICK = Load(pairs=1, records=20, turns=10, sessions=5)


async def measure(world: World, load: Load, *, plain_us: float | None = None) -> list[Figure]:
    """Measure R3. A folder has no aiokafka, so its plain cost is taken from the broker's run."""
    figures = []
    for table in (False, True):
        stage, base = await _machinery(world, load, table=table)
        plain_us = base if base is not None else plain_us
        figures.append(_figure(world, f"machinery {'with' if table else 'without'} a table", stage, plain_us, table))
    spent = await _real(world, load)
    for name, seconds in spent.items():
        figures.append(_figure(world, name, seconds, plain_us, WITH_TABLE.get(name, True)))  # type: ignore[call-overload]
    return figures


def plain_of(figures: Sequence[Figure]) -> float | None:
    """Return the µs of the plain process, if measured."""
    return next((figure.detail["plain µs"] for figure in figures if "plain µs" in figure.detail), None)


def _figure(world: World, who: str, stage_us: float, plain_us: float | None, table: bool) -> Figure:
    if not plain_us:  # nothing to compare with in this run
        return Figure(ratio="R3", what=f"CPU a turn, {who}", on=world.kind, value=stage_us, unit="µs")
    return Figure(
        ratio="R3",
        what=f"CPU a turn ÷ plain aiokafka, {who}",
        on=world.kind,
        value=stage_us / plain_us,
        target=TARGETS[table],
        better="lower",
        detail={"µs": stage_us, "plain µs": plain_us},
    )


async def _machinery(world: World, load: Load, *, table: bool) -> tuple[float, float | None]:
    """Return the median µs per record of the stage, and of the plain process (Kafka only)."""
    source, sink, plain_source, plain_sink = await world.fresh_topics("in", "out", "plain-in", "plain-out")
    speakers = Speakers(source, load.sessions)
    stage = await overhead.start(
        world,
        overhead.Options(
            name=source,
            broker=world.broker,
            folder=str(world.folder),
            source=source,
            sink=sink,
            partitions=world.partitions,
            table=table,
        ),
    )
    bare = None
    if world.kind == "kafka":
        servers = world.broker.removeprefix("kafka://")
        bare = baseline.start(
            world, baseline.Options(name=plain_source, servers=servers, source=plain_source, sink=plain_sink)
        )

    async def burst(worker: Worker, source: str, sink: str) -> float:
        return await _burst(world, worker, speakers, load.records, source, sink)

    await burst(stage, source, sink)  # warm up
    if bare is not None:
        await burst(bare, plain_source, plain_sink)
    stages: list[float] = []
    plains: list[float] = []
    for pair in range(load.pairs):
        if bare is not None and pair % 2:
            plains.append(await burst(bare, plain_source, plain_sink))
        stages.append(await burst(stage, source, sink))
        if bare is not None and not pair % 2:
            plains.append(await burst(bare, plain_source, plain_sink))
    await world.stop()
    return median(stages), median(plains) if plains else None


async def _burst(world: World, worker: Worker, speakers: Speakers, records: int, source: str, sink: str) -> float:
    """Return the µs per record of one burst."""
    said = speakers.turns(records)
    since, before = await world.log.ends(sink), worker.cpu_seconds()
    with worker.held():  # so that both find a backlog, however fast this process produces
        await produce(world.log, said, topic=source)
    await world.grown(sink, since, records)
    return (worker.cpu_seconds() - before) / records * 1e6


async def _real(world: World, load: Load) -> dict[str, float]:
    """Return the median µs per turn of each stage's process, or of the one process with all stages."""
    await world.model.reset(latency=0.0)
    if world.kind == "kafka":
        workers: dict[str, Worker] = {stage: world.worker(stage) for stage in STAGES}
    else:
        workers = {"all four stages in one process, a stage": world.worker(*STAGES)}
    share = 1 if world.kind == "kafka" else len(STAGES)
    speakers = Speakers(f"r3-{time.time_ns():x}", load.sessions)  # unique, because a server keeps earlier data
    spent: dict[str, list[float]] = {name: [] for name in workers}
    for burst in range(load.pairs + 1):
        before = {name: worker.cpu_seconds() for name, worker in workers.items()}
        await produce(world.log, speakers.turns(load.turns))
        await world.settled(*STAGES)
        if burst:  # the first one warms up
            for name, worker in workers.items():
                spent[name].append((worker.cpu_seconds() - before[name]) / load.turns / share * 1e6)
    await world.stop()
    return {name: median(each) for name, each in spent.items()}

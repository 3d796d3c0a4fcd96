"""R1: turns per second ÷ (in flight ÷ model latency), with more turns waiting than are in flight.

The rate is computed from the timestamps of the output, over whole waves of `in_flight` turns. The first two waves do
not count, and neither does the end, when fewer sessions than slots are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from memstream.schemas.topics import OBSERVATIONS, group_of

from . import overhead
from .report import Figure
from .turns import Speakers, produce
from .world import World

TARGET = 0.97
SKIPPED_WAVES = 2
WORKERS = 2
"""One worker is one process and uses at most one core. Two workers show the effect of a second core."""
TURNS_A_SESSION = (1, 10)
"""Range of turns per session in a backlog with default settings: a session waits for more turns while it is read."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load of `waves` x `in_flight` turns, of which `kept` waves are measured."""

    in_flight: int
    latency: float
    sessions: int
    waves: int
    kept: int

    @property
    def turns(self) -> int:
        return self.in_flight * self.waves

    @property
    def told(self) -> str:
        return f"{self.in_flight} in flight at {self.latency:g} s"


FULL = (Load(256, 1.0, 1_024, 11, 6), Load(100, 0.1, 1_000, 32, 20))
QUICK = (Load(8, 0.05, 32, 12, 4),)


def rate(stamps: Sequence[int], load: Load) -> float:
    """Return the turns per second from the output timestamps (ms since 1970).

    Turns that are observed together have one timestamp. A duration below a millisecond counts as one millisecond.
    """
    ordered = sorted(stamps)
    first = SKIPPED_WAVES * load.in_flight
    # A wave comes out together, so its middle is used as its time.
    middles = [
        median(ordered[first + wave * load.in_flight : first + (wave + 1) * load.in_flight])
        for wave in range(load.kept + 1)
    ]
    return load.kept * load.in_flight * 1_000 / max(1.0, middles[-1] - middles[0])


async def measure(world: World, loads: Sequence[Load]) -> list[Figure]:
    figures = []
    for load in loads:
        figures.append(_figure(world, load, "machinery alone", await _machinery(world, load)))
        if world.kind == "kafka":  # a folder has one process
            two = await _machinery(world, load, workers=WORKERS)
            figures.append(_figure(world, load, f"machinery alone, {WORKERS} workers", two))
        alone = await _observer(world, load, load.sessions, MEMSTREAM_OBSERVE_TOGETHER="1")
        figures.append(_figure(world, load, "observer over the wire", alone))
    for turns in TURNS_A_SESSION:
        who = f"observer with its defaults, backlog of {turns} turns a session"
        figures.append(_figure(world, loads[0], who, await _observer(world, loads[0], loads[0].turns // turns)))
    return figures


def _figure(world: World, load: Load, who: str, turns_per_second: float) -> Figure:
    return Figure(
        ratio="R1",
        what=f"turns/s ÷ ({load.told}), {who}",
        on=world.kind,
        value=turns_per_second / (load.in_flight / load.latency),
        target=TARGET,
        detail={"turns/s": turns_per_second},
    )


async def _machinery(world: World, load: Load, *, workers: int = 1) -> float:
    """Return the rate of `workers` processes that share the turns in flight.

    The load is produced after all of them have handled a record, while they are stopped.
    """
    source, sink = await world.fresh_topics("in", "out")
    running = [
        await overhead.start(
            world,
            overhead.Options(
                name=source,
                broker=world.broker,
                folder=str(world.folder / str(number)),
                source=source,
                sink=sink,
                partitions=world.partitions,
                in_flight=load.in_flight // workers,
                table=True,
                pause=load.latency,
            ),
        )
        for number in range(workers)
    ]
    speakers, nothing = Speakers(source, load.sessions), await world.log.ends(sink)
    await world.until(lambda: _joined(world, source, workers), f"{workers} workers in the group")
    await produce(world.log, speakers.turns(load.in_flight), topic=source)
    await world.grown(sink, nothing, load.in_flight)
    with ExitStack() as held:
        for worker in running:
            held.enter_context(worker.held())
        await produce(world.log, speakers.turns(load.turns), topic=source)
    await world.grown(sink, nothing, load.in_flight + load.turns)
    await world.stop()
    return rate([record.timestamp async for record in world.log.read(sink)], load)


async def _joined(world: World, name: str, workers: int) -> bool:
    return await world.log.members(group_of(name)) == workers


async def _observer(world: World, load: Load, sessions: int, **env: str) -> float:
    since = await world.log.ends(OBSERVATIONS.name)
    await world.model.reset(latency=load.latency)
    await produce(world.log, Speakers(f"r1-{load.in_flight}-{sessions}", sessions).turns(load.turns))
    world.worker("observer", in_flight=load.in_flight, **env)
    await world.grown(OBSERVATIONS.name, since, load.turns)
    await world.stop()
    start = dict(enumerate(since))
    return rate([record.timestamp async for record in world.log.read(OBSERVATIONS.name, start=start)], load)

"""R2: latency that a stage adds to a turn at half load.

The time counts from the moment at which the turn is on the log until its output is seen there, minus the model's time
for that call.
"""

from __future__ import annotations

from dataclasses import dataclass

from memstream.schemas.topics import OBSERVATIONS
from memstream.streams.log.port import Record

from . import overhead
from .report import Figure
from .turns import Arrivals, Speakers, percentile, produce_evenly, watched
from .world import World

P50_TARGET, P99_TARGET = 15.0, 100.0
"""Milliseconds."""
WARM_UP = 50
WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """Half of the load that `in_flight` slots with a model of this latency can handle."""

    in_flight: int
    latency: float
    sessions: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.in_flight / self.latency / 2


FULL = Load(256, 1.0, 1_024, 10.0)
QUICK = Load(8, 0.05, 32, 1.0)


async def measure(world: World, load: Load) -> list[Figure]:
    return [
        *_figures(world, load, "machinery alone", await _machinery(world, load)),
        *_figures(world, load, "observer over the wire", await _observer(world, load)),
    ]


def _figures(world: World, load: Load, who: str, milliseconds: list[float]) -> list[Figure]:
    return [
        Figure(
            ratio="R2",
            what=f"added latency at {load.rate:g} turns/s, p{share:.0%}, {who}".replace("%", ""),
            on=world.kind,
            value=percentile(milliseconds, share),
            unit="ms",
            target=target,
            better="lower",
            detail={"turns": len(milliseconds), "most": max(milliseconds)},
        )
        for share, target in ((0.5, P50_TARGET), (0.99, P99_TARGET))
    ]


def _slept(record: Record) -> float:
    return float(dict(record.headers)[overhead.SLEPT])


async def _machinery(world: World, load: Load) -> list[float]:
    source, sink = await world.fresh_topics("in", "out")
    await overhead.start(
        world,
        overhead.Options(
            name=source,
            broker=world.broker,
            folder=str(world.folder),
            source=source,
            sink=sink,
            partitions=world.partitions,
            in_flight=load.in_flight,
            table=True,
            pause=load.latency,
        ),
    )
    async with watched(world.log, sink) as arrivals:
        sent = await _played(world, load, arrivals, source)
    await world.stop()
    return [
        1_000 * (arrivals.at[mark] - durable - _slept(arrivals.records[mark])) for mark, (_, durable) in sent.items()
    ]


async def _observer(world: World, load: Load) -> list[float]:
    await world.model.reset(latency=load.latency)
    world.worker("observer", in_flight=load.in_flight)
    async with watched(world.log, OBSERVATIONS.name) as arrivals:
        sent = await _played(world, load, arrivals)
    await world.settled("observer")
    await world.stop()
    took = {mark: seconds for marks, _, seconds in await world.model.each_call() for mark in marks}
    return [1_000 * (arrivals.at[mark] - durable - took[mark]) for mark, (_, durable) in sent.items()]


async def _played(
    world: World, load: Load, arrivals: Arrivals, topic: str | None = None
) -> dict[str, tuple[float, float]]:
    """Warm up, then produce the load. Return the times at which each turn was sent and durable, by mark."""
    speakers = Speakers(f"r2-{world.kind}", load.sessions)
    place = {} if topic is None else {"topic": topic}
    warm = speakers.turns(WARM_UP)
    await produce_evenly(world.log, warm, rate=load.rate, **place)
    await arrivals.all_of((each.mark for each in warm), within=WITHIN)
    sent = await produce_evenly(world.log, speakers.turns(int(load.rate * load.seconds)), rate=load.rate, **place)
    await arrivals.all_of(sent, within=WITHIN)
    return sent

"""R7: model calls and tokens per turn, without and with a backlog; `--mem0` compares the tokens (bench/mem0.py).

The targets are for the observer, which calls the model once per turn without a backlog. Consolidation's calls depend on
the number of a user's turns, not on the backlog. The table shows all calls, and tokens include all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .freshness import STAGES, start_all
from .report import Figure
from .turns import Speakers, produce, produce_evenly
from .world import World

NO_BACKLOG, BACKLOG = 1.0, 0.3


@dataclass(frozen=True, slots=True)
class Load:
    turns: int
    sessions: int
    rate: float
    latency: float
    in_flight: int


FULL = Load(turns=480, sessions=24, rate=25.0, latency=0.2, in_flight=16)
QUICK = Load(turns=20, sessions=2, rate=20.0, latency=0.02, in_flight=2)


async def measure(world: World, load: Load) -> list[Figure]:
    """Measure with all stages running; count consolidation's calls separately."""
    start_all(world)
    speakers = Speakers(f"r7-{world.kind}", sessions=load.turns)
    warm = speakers.turns(load.in_flight)
    await produce(world.log, warm)
    await world.settled(*STAGES)
    await world.model.reset(latency=load.latency)
    even = speakers.turns(load.turns // 3)
    await produce_evenly(world.log, even, rate=load.rate)
    await world.settled(*STAGES)
    without = await world.model.calls()
    await world.stop()

    await world.model.reset(latency=load.latency)
    await produce(world.log, Speakers(f"r7b-{world.kind}", load.sessions).turns(load.turns))
    start_all(world, MEMSTREAM_IN_FLIGHT=str(load.in_flight))
    await world.settled(*STAGES)
    under = await world.model.calls()
    await world.stop()
    return [
        Figure(
            ratio="R7",
            what=f"model calls a turn, {told}",
            on=world.kind,
            value=calls.observing / turns,
            target=target,
            better="lower",
            detail={
                "turns": turns,
                "observer's calls": calls.observing,
                "all calls": calls.chats,
                "all calls a turn": calls.chats / turns,
                "tokens a turn": calls.tokens / turns,
            },
        )
        for told, calls, turns, target in (
            (f"no backlog ({load.rate:g} turns/s)", without, len(even), NO_BACKLOG),
            (f"backlog ({load.turns} turns of {load.sessions} sessions wait)", under, load.turns, BACKLOG),
        )
    ]

"""R11: how much longer one tenant's turn takes while another tenant sends large turns as fast as a core handles them.

The ratio of two p95s of the calm tenant: with the flood, and alone. Once until the observation, with the observer
alone; once until the fact, with all stages in two processes.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstream.schemas import ids
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS, StageName
from memstream.streams.engine.turn_sender import user_turn
from memstream.streams.log.port import Record

from .report import Figure
from .turns import Said, percentile, produce, produce_evenly, turn_of, watched
from .world import World

TARGET = 3.0
WITHIN = 300.0
FLOOD_AHEAD = 2.0
"""Seconds of the flood before the calm tenant's first measured turn."""
WORDS = [
    "the",
    "meeting",
    "about",
    "our",
    "new",
    "garden",
    "moved",
    "to",
    "next",
    "week",
    "because",
    "my",
    "colleague",
    "has",
    "a",
    "cold",
    "and",
    "nobody",
    "else",
    "knows",
    "which",
    "plants",
    "we",
    "ordered",
    "from",
    "the",
    "shop",
    "in",
    "the",
    "old",
    "town",
    "where",
    "I",
    "used",
    "to",
    "buy",
    "bread",
    "when",
    "I",
    "lived",
    "there",
    "with",
    "my",
    "brother",
]


@dataclass(frozen=True, slots=True)
class Load:
    calm_rate: float
    flood_rate: float
    flood_bytes: int
    seconds: float
    latency: float


FULL = Load(calm_rate=2.0, flood_rate=200.0, flood_bytes=20_000, seconds=20.0, latency=0.1)
QUICK = Load(calm_rate=5.0, flood_rate=20.0, flood_bytes=2_000, seconds=1.0, latency=0.02)
Mark = Callable[[Record], str]


async def measure(world: World, load: Load) -> list[Figure]:
    processes: list[tuple[str, str, Mark, list[tuple[StageName, ...]]]] = [
        ("observer alone, until observed", OBSERVATIONS.name, turn_of, [("observer",)]),
    ]
    if world.kind == "kafka":
        two: list[tuple[StageName, ...]] = [("recorder", "observer", "reflector", "consolidation")] * 2
        processes.append(("all stages in two processes, until the fact", FACTS_UPDATED.name, _mark_of_fact, two))
    return [await _ratio(world, load, *each) for each in processes]


async def _ratio(
    world: World, load: Load, what: str, topic: str, mark: Mark, processes: list[tuple[StageName, ...]]
) -> Figure:
    await world.model.reset(latency=load.latency)
    for number, stages in enumerate(processes):
        world.worker(*stages, name=f"{number}" if len(processes) > 1 else None)
    calm = Tenant("calm", sessions=10, size=0)
    flood = Tenant("flood", sessions=100, size=load.flood_bytes)
    count = round(load.calm_rate * load.seconds)
    async with watched(world.log, topic, mark) as arrivals:

        async def times(turns: list[Said]) -> list[float]:
            sent = await produce_evenly(world.log, turns, rate=load.calm_rate)
            await arrivals.all_of(sent, within=WITHIN)
            return [arrivals.at[each] - durable for each, (_, durable) in sent.items()]

        warm = calm.turns(10)
        await produce(world.log, warm)
        await arrivals.all_of((each.mark for each in warm), within=WITHIN)
        alone = await times(calm.turns(count))
        async with _flooding(world, flood, load):
            await asyncio.sleep(FLOOD_AHEAD)
            beside = await times(calm.turns(count))
        done = sum(each.startswith("flood") for each in arrivals.at)
    world.kill()
    return Figure(
        ratio="R11",
        what=f"p95 beside {load.flood_rate:g} turns/s of {load.flood_bytes / 1000:g} KB ÷ alone, {what}",
        on=world.kind,
        value=percentile(beside, 0.95) / percentile(alone, 0.95),
        unit="",
        target=TARGET,
        better="lower",
        detail={
            "alone p95": percentile(alone, 0.95),
            "beside p50": percentile(beside, 0.5),
            "beside p95": percentile(beside, 0.95),
            "turns": count,
            "flood done": done,
        },
    )


@asynccontextmanager
async def _flooding(world: World, flood: Tenant, load: Load):  # type: ignore[no-untyped-def]
    """Send the flood during the block, whatever happens to it."""
    turns = flood.turns(round(load.flood_rate * (load.seconds + FLOOD_AHEAD + 5)))
    sending = asyncio.create_task(produce_evenly(world.log, turns, rate=load.flood_rate))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


@dataclass(slots=True)
class Tenant:
    """The turns of a tenant. `size`: bytes of talk in each."""

    name: str
    sessions: int
    size: int
    made: int = 0

    def turns(self, count: int) -> list[Said]:
        return [self._turn() for _ in range(count)]

    def _turn(self) -> Said:
        n, self.made = self.made, self.made + 1
        who, mark = f"{self.name}-{n % self.sessions}", f"{self.name}x{n}"
        choose = random.Random(n)
        talk = ". ".join(" ".join(choose.choices(WORDS, k=12)) for _ in range(self.size // 70))
        text = f"I have a cat named Cat{mark}. {talk}"
        value = user_turn(tenant_id=self.name, user_id=who, session_id=who, turn_id=mark, text=text)
        return Said(mark, ids.session_key(self.name, who, who).encode(), value)


def _mark_of_fact(record: Record) -> str:
    return str(json.loads(record.value or b"{}")["fact"]["content"]).rpartition("Cat")[2]

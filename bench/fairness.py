"""R11: delay of one tenant's records while another tenant sends large records as fast as a core can handle them.

The figure is the ratio of two p95s of the calm tenant: with the flood ÷ alone.

- observer alone: turns, until they are observed;
- reflector alone: observations, until the fact;
- consolidation alone: commands, until their result;
- all stages: turns, until the fact; on Kafka in two processes, on a folder in one.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.schemas.observations import Observation, Observed
from memstream.schemas.topics import (
    COMMANDS,
    FACTS_UPDATED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TURNS,
    StageName,
)
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Record
from memstream.streams.senders.turns import user_turn

from .report import Figure
from .turns import Said, percentile, produce, produce_evenly, turn_of, watched
from .world import World

TARGET = 3.0
WITHIN = 300.0
FLOOD_AHEAD = 2.0
"""Seconds between the start of the flood and the calm tenant's first measured record."""
TALK = (
    "the meeting about our new garden moved to next week because my colleague has a cold and nobody else knows which "
    "plants we ordered from the shop in the old town where I used to buy bread when I lived there with my brother"
)
STATEMENT_BYTES = 1_900
STEP_BYTES, STEPS_MAX = 480, 20


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Records of one kind, and the topic that shows their effect."""

    what: str
    source: str
    made: Callable[[str, str, str, int], tuple[bytes, bytes]]
    """Function that returns key and value of a record, from tenant, user, mark and bytes."""
    effects: str
    mark: Mark
    stages: tuple[StageName, ...]
    """The stages of each process."""
    processes: int = 1
    """Number of processes on Kafka. In a folder there is one."""


async def measure(world: World, load: Load, name: str) -> list[Figure]:
    """Measure one of `CASES`. The records that its flood leaves would delay a second case in the same world."""
    return [await _ratio(world, load, CASES[name])]


async def _ratio(world: World, load: Load, case: Case) -> Figure:
    await world.model.reset(latency=load.latency)
    count = case.processes if world.kind == "kafka" else 1
    for place in range(count):
        world.worker(*case.stages, name=f"{place}" if count > 1 else None)
    calm = Tenant("calm", case, sessions=10, size=0)
    flood = Tenant("flood", case, sessions=100, size=load.flood_bytes)
    measured = round(load.calm_rate * load.seconds)
    async with watched(world.log, case.effects, case.mark) as arrivals:

        async def times(records: list[Said]) -> list[float]:
            sent = await produce_evenly(world.log, records, rate=load.calm_rate, topic=case.source)
            await arrivals.all_of(sent, within=WITHIN)
            return [arrivals.at[each] - durable for each, (_, durable) in sent.items()]

        warm = calm.records(10)
        await produce(world.log, warm, topic=case.source)
        await arrivals.all_of((each.mark for each in warm), within=WITHIN)
        alone = await times(calm.records(measured))
        async with _flooding(world, flood, load):
            await asyncio.sleep(FLOOD_AHEAD)
            beside = await times(calm.records(measured))
        done = sum(each.startswith(flood.name) for each in arrivals.at)
    world.kill()
    return Figure(
        ratio="R11",
        what=f"p95 beside {load.flood_rate:g} records/s of {load.flood_bytes / 1000:g} KB ÷ alone, {case.what}",
        on=world.kind,
        value=percentile(beside, 0.95) / percentile(alone, 0.95),
        unit="",
        target=TARGET,
        better="lower",
        detail={
            "alone p95": percentile(alone, 0.95),
            "beside p50": percentile(beside, 0.5),
            "beside p95": percentile(beside, 0.95),
            "records": measured,
            "flood done": done,
        },
    )


@asynccontextmanager
async def _flooding(world: World, flood: Tenant, load: Load):  # type: ignore[no-untyped-def]
    """Send the flood during the block, independent of its handling."""
    records = flood.records(round(load.flood_rate * (load.seconds + FLOOD_AHEAD + 5)))
    sending = asyncio.create_task(produce_evenly(world.log, records, rate=load.flood_rate, topic=flood.case.source))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


@dataclass(slots=True)
class Tenant:
    """The records of a tenant. `size`: bytes of text in each record."""

    name: str
    case: Case
    sessions: int
    size: int
    made: int = 0

    def records(self, count: int) -> list[Said]:
        return [self._record() for _ in range(count)]

    def _record(self) -> Said:
        n, self.made = self.made, self.made + 1
        mark = f"{self.name}x{n}"
        key, value = self.case.made(self.name, f"{self.name}-{n % self.sessions}", mark, self.size)
        return Said(mark, key, value)


def _talk(mark: str, size: int) -> str:
    choose = random.Random(mark)
    words = TALK.split()
    return ". ".join(" ".join(choose.choices(words, k=12)) for _ in range(size // 70))


def _turn(tenant: str, user: str, mark: str, size: int) -> tuple[bytes, bytes]:
    text = f"I have a cat named Cat{mark}. {_talk(mark, size)}"
    value = user_turn(tenant_id=tenant, user_id=user, session_id=user, turn_id=mark, text=text)
    return ids.session_key(tenant, user, user).encode(), value


def _observed(tenant: str, user: str, mark: str, size: int) -> tuple[bytes, bytes]:
    """Return an observed turn: statements of two thousand characters; the last statement names the cat."""
    session, at, owner = ids.session_key(tenant, user, user), datetime.now(UTC), Owner(scope="user", id=user)
    talk = [_talk(f"{mark}/{n}", STATEMENT_BYTES) for n in range(size // (STATEMENT_BYTES + 500))]
    observed = Observed(
        tenant_id=tenant,
        owner=owner,
        user_id=user,
        session_id=user,
        turn_id=mark,
        turn_number=int(mark.rpartition("x")[2]) + 1,
        occurred_at=at,
        observations=tuple(
            Observation(
                observation_id=(each := ids.observation_id(session, mark, "user", content)),
                entry_id=each,
                subject="user",
                content=content,
                importance=0.8,
                durability="persistent",
                category="preference",
                evidence=content[:400],
            )
            for content in (*talk, f"Has a cat named Cat{mark}")
        ),
    )
    return owner.key(tenant).encode(), observed.to_bytes()


def _command(tenant: str, user: str, mark: str, size: int) -> tuple[bytes, bytes]:
    steps = [_talk(f"{mark}/{n}", 2 * STEP_BYTES)[:STEP_BYTES] for n in range(min(size // STEP_BYTES, STEPS_MAX))]
    command = Command(
        command_id=mark,
        kind="procedures.define",
        tenant_id=tenant,
        owner=Owner(scope="user", id=user),
        args={"name": f"Cat {mark.rpartition('x')[2]}"[:60], "trigger": "now", "steps": [f"Feed {mark}", *steps[1:]]},
        issued_by="bench",
        issued_at=datetime.now(UTC),
    )
    return command.key.encode(), command.to_bytes()


def _mark_of_fact(record: Record) -> str:
    return str(json.loads(record.value or b"{}")["fact"]["content"]).rpartition("Cat")[2]


def _mark_of_result(record: Record) -> str:
    return str(json.loads(record.value or b"{}")["command_id"])


CASES = {
    "observer": Case(
        what="observer alone, until observed",
        source=TURNS.name,
        made=_turn,
        effects=OBSERVATIONS.name,
        mark=turn_of,
        stages=("observer",),
    ),
    "reflector": Case(
        what="reflector alone, from the observation until the fact",
        source=OBSERVATIONS.name,
        made=_observed,
        effects=FACTS_UPDATED.name,
        mark=_mark_of_fact,
        stages=("reflector",),
    ),
    "consolidation": Case(
        what="consolidation alone, from the command until its result",
        source=COMMANDS.name,
        made=_command,
        effects=RESULTS.name,
        mark=_mark_of_result,
        stages=("consolidation",),
    ),
    "all stages": Case(
        what="all stages, until the fact",
        source=TURNS.name,
        made=_turn,
        effects=FACTS_UPDATED.name,
        mark=_mark_of_fact,
        stages=STAGES,
        processes=2,
    ),
}

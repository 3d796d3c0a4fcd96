"""R9: time until a turn can be found verbatim, and time until its fact is published, without the time of the model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstream.adapters.ports import EmbedderIdentity, VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.schemas import ids
from memstream.schemas.collections import TURNS
from memstream.schemas.errors import Transient
from memstream.schemas.topics import FACTS_UPDATED, StageName
from memstream.streams.log.port import Record

from .report import Figure
from .turns import TENANT, Said, Speakers, percentile, produce_evenly, watched
from .world import World

STAGES: tuple[StageName, ...] = ("recorder", "observer", "reflector", "consolidation")
FOUND_TARGET, TOLD_TARGET = 150.0, 400.0
"""Targets: milliseconds, p95."""
LOOK_SECONDS = 0.01
WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    rate: float
    turns: int
    latency: float
    warm_up: int


FULL = Load(rate=10.0, turns=120, latency=0.2, warm_up=20)
QUICK = Load(rate=10.0, turns=5, latency=0.02, warm_up=2)


async def measure(world: World, load: Load) -> list[Figure]:
    await world.model.reset(latency=load.latency)
    start_all(world)
    async with opened_store(world) as store, watched(world.log, FACTS_UPDATED.name, _mark_of_fact) as told:
        speakers = Speakers(f"r9-{time.time_ns():x}", sessions=1_000_000)  # unique: a server keeps earlier data
        warm = speakers.turns(load.warm_up)
        await produce_evenly(world.log, warm, rate=load.rate)
        await told.all_of((each.mark for each in warm), within=WITHIN)
        said = speakers.turns(load.turns)
        due = {each.mark: n / load.rate for n, each in enumerate(said)}
        looking = {each.mark: asyncio.create_task(_found_at(store, each, after=due[each.mark])) for each in said}
        sent = await produce_evenly(world.log, said, rate=load.rate)
        await told.all_of(sent, within=WITHIN)
        found = {mark: await task for mark, task in looking.items()}
    took = {mark: seconds for marks, _, seconds in await world.model.each_call() for mark in marks}
    await world.settled(*STAGES)
    await world.stop()
    return [
        _figure(
            world, load, "turn produced → found verbatim", FOUND_TARGET, [found[m] - at for m, (at, _) in sent.items()]
        ),
        _figure(
            world,
            load,
            "turn produced → fact told, less the model",
            TOLD_TARGET,
            [told.at[m] - at - took[m] for m, (at, _) in sent.items()],
        ),
    ]


def start_all(world: World, **env: str) -> None:
    """Start one process per stage, as on a cluster; in a folder, one process for all."""
    processes: Sequence[tuple[StageName, ...]] = [(stage,) for stage in STAGES] if world.kind == "kafka" else [STAGES]
    for stages in processes:
        world.worker(*stages, **env)


def _figure(world: World, load: Load, what: str, target: float, seconds: list[float]) -> Figure:
    return Figure(
        ratio="R9",
        what=f"{what}, p95 at {load.rate:g} turns/s",
        on=world.kind,
        value=1_000 * percentile(seconds, 0.95),
        unit="ms",
        target=target,
        better="lower",
        detail={"p50": 1_000 * percentile(seconds, 0.5), "turns": len(seconds)},
    )


def _mark_of_fact(record: Record) -> str:
    return str(json.loads(record.value or b"{}")["fact"]["content"]).rpartition("Cat")[2]


@asynccontextmanager
async def opened_store(world: World) -> AsyncIterator[VectorStore]:
    """Open the store for reading, and retry until a worker serves it (a folder)."""
    end = time.monotonic() + WITHIN
    while True:
        try:
            store = await open_store(
                world.stores["MEMSTREAM_QDRANT"],
                embedder=EmbedderIdentity(name="hashing", dimension=0),
                api_key=world.stores.get("QDRANT_API_KEY"),
                holds_folder=False,
            )
            break
        except Transient as error:  # no worker serves it yet
            if time.monotonic() > end:
                raise TimeoutError(f"no store within {WITHIN:.0f} s") from error
            await asyncio.sleep(0.2)
    try:
        yield store
    finally:
        await store.close()


async def _found_at(store: VectorStore, said: Said, *, after: float) -> float:
    """Return the time at which the turn's message was first found.

    The search starts `after` seconds, when the turn is due: a hundred concurrent searches would keep the server busy.
    """
    await asyncio.sleep(after)
    session = said.key.decode()
    point = ids.message_id(session, said.mark, 0)
    while point not in await store.get(TURNS, tenant_id=TENANT, ids=[point]):  # noqa: ASYNC110 - there is no signal
        await asyncio.sleep(LOOK_SECONDS)
    return time.time()

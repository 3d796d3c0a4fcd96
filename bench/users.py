"""R5, second half: CPU time of a turn with 100 000 users ÷ CPU time with few users: `python -m bench.users`.

Each of two worlds has its own broker or folder, store and workers of all four stages. In both, ten users send a turn
through the pipeline. Then one world is filled, while no worker runs: the rows and points of these ten users are copied
for other users into the changelogs and the engine. The other world gets only the users that will send turns. Then ten
users send ten turns each at an even rate, with different users in each round; first in one world, then in the other,
then in reverse order. The figure is the CPU time of the stages' processes. All these users have the same history, so
only the number of other users differs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

import click
from qdrant_client import models
from rich.console import Console

from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.engine import EngineRow
from memstream.cli.output import logs
from memstream.schemas import ids
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS, STAGES, StageName, changelog_of
from memstream.streams.log.partitioner import partition_for
from memstream.streams.senders.turns import user_turn

from .model import Model
from .report import Figure, as_json, as_table, machine
from .run import OUT, WORLDS, Found
from .turns import Said, produce_evenly
from .world import NotMeasured, Worker, World

TARGET: Final = 1.3
AT_ONCE: Final = 10
"""Number of users that send turns in one round, and of users whose memory is copied for others."""
OF_TENANT: Final = 100
"""Number of users per tenant. It is so small that no vector graph of a tenant is built during the run."""
BATCH: Final = 200
UUID_TEXT: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
PATIENT: Final = "30"
"""Session time-out in seconds."""
OWN_PARTS: Final = 3
"""Number of parts of a row's key that form the session's or owner's key. They decide its partition."""
SOURCE: Final = re.compile(r'("source":\{"topic":"[^"]*"),"partition":\d+,"offset":\d+')
"""Position of the event of a row's outcome. A copy gets a position in its own partition, before all new events.
Otherwise the stage would treat the row as moved, and send its outcome again."""


@dataclass(frozen=True, slots=True)
class Load:
    users: int
    rounds: int
    turns_each: int
    rate: float
    """Turns per second."""

    @property
    def few(self) -> int:
        """Number of users in the other world: the first ten, and the users that send turns, each in one round."""
        return AT_ONCE * (self.rounds + 2)

    def speakers(self, users: int) -> Iterator[Sequence[User]]:
        """Yield the users that send turns in each round; the first round warms up."""
        apart = (users - AT_ONCE) // AT_ONCE
        for number in range(self.rounds + 1):
            yield [User(AT_ONCE + place * apart + number) for place in range(AT_ONCE)]


FULL: Final = Load(users=100_000, rounds=6, turns_each=10, rate=10.0)
QUICK: Final = Load(users=100, rounds=1, turns_each=2, rate=10.0)


@dataclass(frozen=True, slots=True)
class User:
    """One of many users. Names have the same length and occur in no other text, so they can be replaced in records."""

    number: int

    @property
    def tenant(self) -> str:
        return f"tenant{self.number // OF_TENANT:06}"

    @property
    def name(self) -> str:
        return f"person{self.number:08}"

    @property
    def like(self) -> User:
        """Return the user whose memory is copied for this user."""
        return User(self.number % AT_ONCE)

    def turn(self, n: int) -> Said:
        mark = f"{self.name}x{n}"
        value = user_turn(
            tenant_id=self.tenant,
            user_id=self.name,
            session_id=self.name,
            turn_id=mark,
            text=f"I have a cat named Cat{mark}.",
        )
        return Said(mark, ids.session_key(self.tenant, self.name, self.name).encode(), value)

    def instead_of(self, other: User, text: str) -> str:
        """Return another user's stored record with this user's names, and the ids derived from them."""
        text = text.replace(other.name, self.name).replace(other.tenant, self.tenant)
        return UUID_TEXT.sub(lambda found: self.id_for(found.group()), text)

    def id_for(self, identity: str) -> str:
        return str(uuid5(UUID(identity), self.name))


FIRST: Final = tuple(User(number) for number in range(AT_ONCE))


# ------------------------------------------------------------------------------------------------ filling up
async def fill(world: World, users: Sequence[User]) -> float:
    """Copy the first users' memory for these users while no worker runs. Return the seconds."""
    began = time.monotonic()
    for topic in filter(None, map(changelog_of, STAGES)):
        await _fill_table(world, topic.name, users)
    async with world.engine_folder() as folder:
        await _fill_engine(folder, users)
    return time.monotonic() - began


async def _fill_table(world: World, changelog: str, users: Sequence[User]) -> None:
    rows: dict[str, str] = {}
    async for record in world.log.read(changelog):
        if record.key is not None and record.value is not None:  # nothing was deleted yet
            rows[record.key.decode()] = record.value.decode()
    of = [[row for row in rows.items() if user.name in row[0]] for user in FIRST]

    async def write(user: User, key: str, value: str) -> None:
        key = user.instead_of(user.like, key)
        own = "/".join(key.split("/")[:OWN_PARTS])
        partition = partition_for(own.encode(), world.partitions)
        told = SOURCE.sub(rf'\1,"partition":{partition},"offset":-1', user.instead_of(user.like, value))
        await world.log.append(changelog, key=key.encode(), value=told.encode(), partition=partition)

    for some in _batched(users):
        await asyncio.gather(*(write(user, *row) for user in some for row in of[user.like.number]))


async def _fill_engine(folder: Path, users: Sequence[User]) -> None:
    engine = EdgeEngine(folder=folder)
    try:
        for name, _ in engine.collections():
            of = await _points(engine, name)
            for some in _batched(users):
                copies = [_copy(point, user) for user in some for point in of[user.like.number]]
                if copies:
                    await engine.upsert(name, copies)
    finally:
        await engine.close()


async def _points(engine: EdgeEngine, collection: str) -> list[list[EngineRow]]:
    """Return the points of a collection, grouped by the first users that own them."""
    found, _ = await engine.scroll(collection, limit=10_000, with_vectors=True)
    return [[each for each in found if user.name in json.dumps(each.payload)] for user in FIRST]


def _copy(point: EngineRow, user: User) -> models.PointStruct:
    payload = user.instead_of(user.like, json.dumps(point.payload))
    return models.PointStruct(id=user.id_for(str(point.id)), vector=point.vector, payload=json.loads(payload))


def _batched(users: Sequence[User]) -> Iterator[Sequence[User]]:
    return (users[at : at + BATCH] for at in range(0, len(users), BATCH))


# ------------------------------------------------------------------------------------------------ measuring
@dataclass(slots=True)
class Side:
    """One of the two worlds."""

    world: World
    speaking: Iterator[Sequence[User]]
    """The users that send turns in each round."""
    processes: dict[str, Worker]
    filled: float
    """Seconds that filling took."""


async def measure(kind: str, folder: Path, model: Model, load: Load, *, tell: Callable[[str], None]) -> list[Figure]:
    """Measure both worlds. Raises NotMeasured."""
    async with AsyncExitStack() as stack:
        worlds: dict[int, World] = {}
        for users in (load.few, load.users):
            place = folder / f"{kind}-{users}"
            place.mkdir()
            worlds[users] = await stack.enter_async_context(WORLDS[kind](place, model))
        if len({world.broker for world in worlds.values()}) < len(worlds):
            raise NotMeasured("each world needs a broker of its own: unset MEMSTREAM_TEST_KAFKA")
        sides = []
        for users, world in worlds.items():
            sides.append(await opened(world, users, load))
            tell(f"{kind}: {users} users, filled in {sides[-1].filled:.0f} s")
        few, many = sides
        spent: dict[str, list[tuple[float, float]]] = {}
        for number in range(load.rounds + 1):
            order = (few, many) if number % 2 else (many, few)
            of = {id(side): await spoken(side, load) for side in order}
            for name, seconds in of[id(few)].items():
                if number:  # the first round warms up
                    spent.setdefault(name, []).append((seconds, of[id(many)][name]))
        for side in sides:
            await side.world.stop()
    return [_figure(kind, name, pairs, many.filled, load) for name, pairs in spent.items()]


async def opened(world: World, users: int, load: Load) -> Side:
    """Open a world with this number of users, and start its workers."""
    await world.model.reset(latency=0.0)
    _start(world)
    await produce_evenly(world.log, [user.turn(0) for user in FIRST], rate=load.rate)
    await world.settled(*STAGES)
    await world.stop()
    filled = await fill(world, [User(number) for number in range(AT_ONCE, users)])
    return Side(world, load.speakers(users), _start(world), filled)


def _start(world: World) -> dict[str, Worker]:
    """Start one process per stage; in a folder, one process for all stages.

    A worker observes one turn of a session at a time, so that no turns are observed together. The session time-out is
    long, so that no worker is removed from its group while it restores gigabytes.
    """

    def worker(*stages: StageName) -> Worker:
        return world.worker(*stages, MEMSTREAM_OBSERVE_TOGETHER="1", MEMSTREAM_SESSION_TIMEOUT=PATIENT)

    if world.kind == "kafka":
        return {stage: worker(stage) for stage in STAGES}
    return {"all four stages in one process": worker(*STAGES)}


async def spoken(side: Side, load: Load) -> dict[str, float]:
    """Send the turns; return the CPU seconds per turn of each process.

    Raises NotMeasured when a turn resulted in no fact, or did not follow the user's earlier turns: then the worlds
    cannot be compared.
    """
    users = next(side.speaking)
    said = [user.turn(n) for n in range(1, load.turns_each + 1) for user in users]
    await side.world.settled(*STAGES)
    log = side.world.log
    told, observed = await log.ends(FACTS_UPDATED.name), dict(enumerate(await log.ends(OBSERVATIONS.name)))
    before = {name: process.cpu_seconds() for name, process in side.processes.items()}
    await produce_evenly(log, said, rate=load.rate)
    await side.world.grown(FACTS_UPDATED.name, told, len(said))
    await side.world.settled(*STAGES)
    spent = {name: (process.cpu_seconds() - before[name]) / len(said) for name, process in side.processes.items()}
    numbers = Counter(
        [
            json.loads(record.value or b"{}")["turn_number"]
            async for record in log.read(OBSERVATIONS.name, start=observed)
        ]
    )
    if numbers != dict.fromkeys(range(2, load.turns_each + 2), len(users)):
        raise NotMeasured(f"{side.world.kind}: users did not go on from their first turn: {dict(numbers)}")
    return spent


def _figure(kind: str, name: str, pairs: Sequence[tuple[float, float]], filled: float, load: Load) -> Figure:
    return Figure(
        ratio="R5",
        what=f"CPU a turn at {load.users} users ÷ at {load.few}, {name}",
        on=kind,
        value=statistics.median(many / few for few, many in pairs),
        target=TARGET,
        better="lower",
        detail={
            "many ms": 1_000 * statistics.median(many for _, many in pairs),
            "few ms": 1_000 * statistics.median(few for few, _ in pairs),
            "filled in s": filled,
        },
    )


# ------------------------------------------------------------------------------------------------ command
async def _measured(kinds: Sequence[str], load: Load, *, folder: Path | None, tell: Callable[[str], None]) -> Found:
    found, model = Found(), Model()
    try:
        for kind in kinds:
            with tempfile.TemporaryDirectory(
                prefix="memstream-bench-", dir=folder, ignore_cleanup_errors=True
            ) as place:
                try:
                    found.figures += await measure(kind, Path(place), model, load, tell=tell)
                except NotMeasured as error:
                    found.missing[f"R5 on {kind}"] = str(error)
                    tell(f"R5 on {kind}: not measured: {error}")
    finally:
        await model.close()
    return found


@click.command()
@click.option("--users", type=click.IntRange(min=FULL.few), default=FULL.users, show_default=True)
@click.option("--on", "kinds", multiple=True, type=click.Choice(tuple(WORLDS)), help="Default: both.")
@click.option("--quick", is_flag=True, help="Tiny numbers: shows that everything works and measures nothing.")
@click.option(
    "--folder", type=click.Path(file_okay=False, exists=True, path_type=Path), help="Parent folder of the worlds."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT, help="Folder for the JSON.")
def main(users: int, kinds: tuple[str, ...], quick: bool, folder: Path | None, out: Path) -> None:
    """Measure the CPU time of a turn with many users. 100 000 users need 10 GB and about twenty minutes per
    world.
    """
    logs.configure(level=logging.ERROR)
    console, facts, began = Console(), machine(), time.monotonic()
    load = QUICK if quick else replace(FULL, users=users)
    found = asyncio.run(_measured(kinds or tuple(WORLDS), load, folder=folder, tell=console.log))
    out.mkdir(parents=True, exist_ok=True)
    report = as_json(facts, found.figures, missing=found.missing, seconds=time.monotonic() - began)
    (out / "users.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    console.print(as_table(found.figures))
    if found.missing:
        raise click.ClickException(f"not measured: {', '.join(found.missing)}")


if __name__ == "__main__":
    main()

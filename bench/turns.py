"""Turns as a chat service produces them, and the times at which their results arrive."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from memstream.schemas import ids
from memstream.schemas.topics import TURNS
from memstream.streams.log.port import Log, Record
from memstream.streams.senders.turns import user_turn
from tests.support.polling import wait_for

TENANT = "bench"


@dataclass(frozen=True, slots=True)
class Said:
    """One record to produce. `mark` is its turn id, which is also in the text for the model."""

    mark: str
    key: bytes
    value: bytes


@dataclass(slots=True)
class Speakers:
    """Builder of turns of `sessions` sessions in rotation, each with its own user. All turns of a process differ."""

    name: str
    sessions: int
    _made: int = 0

    def turns(self, count: int) -> list[Said]:
        return [self.turn() for _ in range(count)]

    def turn(self) -> Said:
        n, self._made = self._made, self._made + 1
        who = f"{self.name}-{n % self.sessions}"
        mark = f"{self.name}x{n}"
        value = user_turn(
            tenant_id=TENANT, user_id=who, session_id=who, turn_id=mark, text=f"I have a cat named Cat{mark}."
        )
        return Said(mark, ids.session_key(TENANT, who, who).encode(), value)


async def produce(log: Log, said: Iterable[Said], *, topic: str = TURNS.name) -> None:
    """Produce all records without pauses. Return when they are durable."""
    await asyncio.gather(*(log.append(topic, key=each.key, value=each.value) for each in said))


async def produce_evenly(
    log: Log, said: Sequence[Said], *, rate: float, topic: str = TURNS.name
) -> dict[str, tuple[float, float]]:
    """Produce `rate` turns per second, independent of their handling.

    Return the times at which each turn was sent and durable, by mark.
    """
    times: dict[str, tuple[float, float]] = {}

    async def one(each: Said) -> None:
        sent = time.time()
        await log.append(topic, key=each.key, value=each.value)
        times[each.mark] = (sent, time.time())

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for n, each in enumerate(said):
            await asyncio.sleep(max(0.0, began + n / rate - time.monotonic()))
            group.create_task(one(each))
    return times


@dataclass(slots=True)
class Arrivals:
    """The records of a topic by mark, each with the time at which it was first seen."""

    at: dict[str, float] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)

    async def all_of(self, marks: Iterable[str], *, within: float) -> None:
        wanted = set(marks)
        what = f"all of {len(wanted)} records"
        await wait_for(
            lambda: len(wanted - self.at.keys()), what, until=lambda left: left == 0, deadline=within, pause=0.02
        )


def turn_of(record: Record) -> str:
    """Return the mark of an observation."""
    return str(json.loads(record.value or b"{}")["turn_id"])


@asynccontextmanager
async def watched(log: Log, topic: str, mark: Callable[[Record], str] = turn_of) -> AsyncIterator[Arrivals]:
    """Watch the topic from its current end on."""
    arrivals = Arrivals()
    start = dict(enumerate(await log.ends(topic)))

    async def follow() -> None:
        async for record in log.read(topic, start=start, follow=True):
            name = mark(record)
            arrivals.at.setdefault(name, time.time())
            arrivals.records.setdefault(name, record)

    task = asyncio.create_task(follow())
    try:
        yield arrivals
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

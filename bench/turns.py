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
from memstream.streams.engine.turn_sender import user_turn
from memstream.streams.log.port import Log, Record
from tests.support.polling import wait_for

TENANT = "bench"


@dataclass(frozen=True, slots=True)
class Said:
    """One record to produce. `mark` is its turn id, which the model finds in the text."""

    mark: str
    key: bytes
    value: bytes


@dataclass(slots=True)
class Speakers:
    """Builds turns of `sessions` sessions in turn, each of its own user. No two turns of a process are equal."""

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
    """Produce all at once; return when they are durable."""
    await asyncio.gather(*(log.append(topic, key=each.key, value=each.value) for each in said))


async def produce_evenly(
    log: Log, said: Sequence[Said], *, rate: float, topic: str = TURNS.name
) -> dict[str, tuple[float, float]]:
    """Produce `rate` turns per second, whatever happens to them. Return by mark when each was sent and when it
    was durable.
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
    """The records of a topic by mark: first sight and record."""

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
    """Watch the topic from now on."""
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
    """Return the smallest value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

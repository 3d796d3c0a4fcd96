"""Feed of one user's new events (observations, episodes, changes of facts), which `demo` and `chat` print."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import ValidationError

from ...schemas.episodes import EpisodesRecorded
from ...schemas.errors import StageError
from ...schemas.facts import FactUpdated
from ...schemas.observations import Observed
from ...schemas.topics import EPISODES_RECORDED, FACTS_UPDATED, OBSERVATIONS, STAGES, Topic, group_of, read_by
from ...streams.log.port import Log

Seen = Observed | EpisodesRecorded | FactUpdated
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Person:
    """The user whose events a feed shows."""

    tenant_id: str
    user_id: str


@dataclass(slots=True)
class Feed:
    """New records about a person. `show` gets each record in order of arrival."""

    log: Log
    person: Person
    show: Callable[[Seen], None]
    observed: int = 0
    """Number of observed turns."""
    _seen: asyncio.Queue[Seen | StageError] = field(default_factory=asyncio.Queue)
    _events: set[str] = field(default_factory=set)

    async def turn_done(self, session_id: str, turn_id: str, *, within: float) -> bool:
        """Show events until the turn's episodes and changes of facts have arrived, and return True.

        Also return True when the stages are idle, because a duplicate turn causes no record. Return False after
        `within` seconds.
        """
        until = time.monotonic() + within
        missing: set[str] | None = None
        while missing is None or missing:
            if time.monotonic() > until:
                return False
            seen = await self._next(LOOK_SECONDS)
            if seen is None:
                if await nothing_left(self.log):
                    return True
                continue
            if isinstance(seen, EpisodesRecorded) and (seen.session_id, seen.turn_id) == (session_id, turn_id):
                missing = set(seen.fact_ids) - self._events
            elif isinstance(seen, FactUpdated):
                self._events.add(seen.fact.fact_id)
                if missing:
                    missing.discard(seen.fact.fact_id)
        self._events.clear()
        return True

    async def all_done(self, *, within: float, quiet: float = 1.0) -> bool:
        """Show events until the stages are idle and no event came for `quiet` seconds, and return True.

        Return False after `within` seconds.
        """
        until = time.monotonic() + within
        since = time.monotonic()
        while time.monotonic() < until:
            if await self._next(LOOK_SECONDS) is not None or not await nothing_left(self.log):
                since = time.monotonic()
            elif time.monotonic() - since >= quiet:
                return True
        return False

    async def show_for_ever(self) -> None:
        """Show events until cancelled."""
        while True:
            await self._next(None)

    async def _next(self, timeout: float | None) -> Seen | None:
        try:
            seen = await asyncio.wait_for(self._seen.get(), timeout)
        except TimeoutError:
            return None
        if isinstance(seen, StageError):
            raise seen
        self.observed += isinstance(seen, Observed)
        self.show(seen)
        return seen

    async def follow(self, topic: Topic, contract: type[Seen], start: Mapping[int, int]) -> None:
        """Put the person's records from a topic into the queue."""
        try:
            async for record in self.log.read(topic.name, start=start, follow=True):
                try:
                    seen = contract.read(record.value or b"")
                except ValidationError:
                    continue  # a record that no stage wrote
                if _whose(seen) == self.person:
                    self._seen.put_nowait(seen)
        except StageError as error:
            self._seen.put_nowait(error)


@asynccontextmanager
async def fed(log: Log, person: Person, show: Callable[[Seen], None]) -> AsyncIterator[Feed]:
    """Open a feed that starts at the present end of the topics and stops with the block."""
    feed = Feed(log, person, show)
    followed: tuple[tuple[Topic, type[Seen]], ...] = (
        (OBSERVATIONS, Observed),
        (FACTS_UPDATED, FactUpdated),
        (EPISODES_RECORDED, EpisodesRecorded),
    )
    tasks = []
    for topic, contract in followed:
        start = dict(enumerate(await log.ends(topic.name)))
        tasks.append(asyncio.create_task(feed.follow(topic, contract, start)))
    try:
        yield feed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _whose(seen: Seen) -> Person | None:
    if isinstance(seen, FactUpdated):
        return Person(seen.tenant_id, seen.owner.id) if seen.owner.scope == "user" else None
    return Person(seen.tenant_id, seen.user_id)


async def nothing_left(log: Log) -> bool:
    """Return whether every stage has committed every record of its topics."""
    for stage in STAGES:
        for topic in read_by(stage):
            ends = await log.ends(topic.name)
            starts = await log.starts(topic.name)
            done = await log.committed(group_of(stage), topic.name)
            if any((at or start) < end for at, start, end in zip(done, starts, ends, strict=True)):
                return False
    return True

"""Redrive of dead letters: put each letter back on its topic at most once (docs/design/dead-letters.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from ..schemas.errors import Poison
from ..schemas.topics import DEAD_LETTER_SUFFIX
from ..streams.engine.redrive import NotRedrivable, Redrive, redrive_of, redriven_letter
from ..streams.log.port import Log, Record

Action = Literal["put_back", "would_put_back", "failed"]
SECOND = 1.0


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Filter of the letters to put back. A field that is None matches every letter."""

    reason: str | None = None
    key: str | None = None
    tenant: str | None = None

    def takes(self, letter: Record) -> bool:
        headers = {name: value.decode("utf-8", "replace") for name, value in letter.headers}
        return (
            self.reason in (None, headers.get("memstream-reason"))
            and self.tenant in (None, headers.get("memstream-tenant"))
            and (self.key is None or letter.key == self.key.encode())
        )


@dataclass(frozen=True, slots=True)
class RedriveStep:
    """Outcome of one letter."""

    letter: Record
    action: Action
    redrive: Redrive | None = None
    why: str = ""
    """Reason of a failure."""


@dataclass(slots=True)
class Redriver:
    """Reader of dead letters that puts them back, at most `limit` letters and `rate` letters per second."""

    log: Log
    chosen: LetterFilter
    rate: float
    limit: int | None = None
    dry_run: bool = False
    already: int = 0
    """Number of letters that an earlier run put back."""
    put_back: int = 0
    progress: Callable[[str], None] = lambda text: None
    _next_send: float = field(default=0.0, init=False)

    async def run(self, topics: Sequence[str]) -> AsyncGenerator[RedriveStep]:
        """Put back every chosen letter of these topics that was not put back before. Yield a step after each letter."""
        for topic in topics:
            if self._is_done():
                return
            if await self.log.partitions(topic) is None:
                continue
            known = await self._put_back_before(topic)
            async with aclosing(self.log.read(topic)) as letters:
                async for letter in letters:
                    if self._is_done():
                        break
                    if self.chosen.takes(letter) and (step := await self._step(letter, known)) is not None:
                        yield step

    def _is_done(self) -> bool:
        return self.limit is not None and self.put_back >= self.limit

    async def _put_back_before(self, topic: str) -> frozenset[str]:
        """Return the names of the letters that are already on the original topic."""
        original = topic.removesuffix(DEAD_LETTER_SUFFIX)
        partitions = await self.log.partitions(original)
        start: dict[int, int] = {}
        async with aclosing(self.log.read(topic)) as letters:
            async for letter in letters:
                if partitions is None or not self.chosen.takes(letter):
                    continue
                try:
                    places = redrive_of(letter).look_from(partitions)
                except NotRedrivable:
                    continue
                for partition, offset in places.items():
                    start[partition] = min(offset, start.get(partition, offset))
        if not start:
            return frozenset()
        self.progress(f"{original}: looking for letters that were put back before")
        found = set()
        async with aclosing(self.log.read(original, start=start)) as records:
            async for record in records:
                name = redriven_letter(record)
                if name is not None:
                    found.add(name)
        return frozenset(found)

    async def _step(self, letter: Record, known: frozenset[str]) -> RedriveStep | None:
        try:
            redrive = redrive_of(letter)
        except NotRedrivable as error:
            return RedriveStep(letter, "failed", why=str(error))
        if redrive.letter in known:
            self.already += 1
            return None
        if await self.log.partitions(redrive.topic) is None:
            return RedriveStep(letter, "failed", redrive, f"there is no topic {redrive.topic}")
        if self.dry_run:
            self.put_back += 1
            return RedriveStep(letter, "would_put_back", redrive)
        await self._pace()
        try:
            await self.log.append(
                redrive.topic,
                key=redrive.key,
                value=redrive.value,
                headers=redrive.headers,
                timestamp=min(redrive.timestamp, time.time_ns() // 1_000_000),  # a log refuses future timestamps
            )
        except Poison as poison:
            return RedriveStep(letter, "failed", redrive, str(poison))
        self.put_back += 1
        return RedriveStep(letter, "put_back", redrive)

    async def _pace(self) -> None:
        """Wait until the next record may be sent."""
        now = asyncio.get_running_loop().time()
        if now < self._next_send:
            await asyncio.sleep(self._next_send - now)
        self._next_send = max(now, self._next_send) + SECOND / self.rate

"""Redrive of dead letters: put each letter back on its topic at most once (docs/design/dead-letters.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Literal

from ...schemas.errors import Poison
from ...schemas.topics import DEAD_LETTER_SUFFIX
from ...streams.engine.redrive import NotRedrivable, Redrive, letter_name, redrive_of, redriven_letter
from ...streams.log.port import Log, Record
from ..audit import audit
from .letters import LetterFilter, letter_of

Action = Literal["put_back", "would_put_back", "was_put_back", "failed"]
AUDITED: Final[Mapping[Action, str]] = {"put_back": "written", "was_put_back": "nothing", "failed": "refused"}
"""Result in the audit trail, by action. `would_put_back` is no action."""
SECOND = 1.0


@dataclass(frozen=True, slots=True)
class RedriveStep:
    """Outcome of one letter."""

    letter: Record
    action: Action
    redrive: Redrive | None = None
    why: str = ""
    """Reason of a failure."""


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Limits on a search for earlier redrives. None: no limit."""

    records: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class FoundRedrives:
    """Names of letters that are on their original topic again."""

    letters: frozenset[str]
    whole: bool = True
    """False if a limit ended the search."""


@dataclass(slots=True)
class RedriveSearch:
    """Search of the original topics for earlier redrives of letters."""

    log: Log
    _starts: dict[str, dict[int, int]] = field(default_factory=dict, init=False)
    _partitions: dict[str, int | None] = field(default_factory=dict, init=False)

    async def add(self, redrive: Redrive) -> None:
        """Search for this redrive, too. Raises Transient."""
        topic = redrive.topic
        if topic not in self._partitions:
            self._partitions[topic] = await self.log.partitions(topic)
        count = self._partitions[topic]
        start = self._starts.setdefault(topic, {})
        for partition, offset in redrive.look_from(count).items() if count else ():
            start[partition] = min(offset, start.get(partition, offset))

    async def run(self, bounds: SearchBounds) -> FoundRedrives:
        """Return the names of all letters that were put back, as far as this read finds them. Raises Transient."""
        found: set[str] = set()
        left = bounds.records
        try:
            async with asyncio.timeout(bounds.seconds):
                for topic, start in self._starts.items():
                    async with aclosing(self.log.read(topic, start=start)) as records:
                        async for record in records:
                            if left == 0:
                                return FoundRedrives(frozenset(found), whole=False)
                            left = None if left is None else left - 1
                            name = redriven_letter(record)
                            if name is not None:
                                found.add(name)
        except TimeoutError:
            return FoundRedrives(frozenset(found), whole=False)
        return FoundRedrives(frozenset(found))


async def append_redrive(log: Log, letter: Record, redrive: Redrive) -> RedriveStep:
    """Append the record of a letter to its topic. Return when the record is durable. Raises Transient."""
    if await log.partitions(redrive.topic) is None:
        return RedriveStep(letter, "failed", redrive, f"there is no topic {redrive.topic}")
    try:
        await log.append(
            redrive.topic,
            key=redrive.key,
            value=redrive.value,
            headers=redrive.headers,
            timestamp=min(redrive.timestamp, time.time_ns() // 1_000_000),  # a log refuses future timestamps
        )
    except Poison as poison:
        return RedriveStep(letter, "failed", redrive, str(poison))
    return RedriveStep(letter, "put_back", redrive)


def audit_redrive(letter: Record, result: str, *, who: str) -> None:
    """Write the audit record of a redrive."""
    about = letter_of(letter)
    audit(
        "dead-letters.redrive",
        who=who,
        tenant_id=about.tenant_id,
        owner=next(iter(about.owners), None),
        result=result,
        session_id=about.session_id,
        turn_id=about.turn_id,
        letter=letter_name(letter.position),
    )


@dataclass(slots=True)
class LetterRedrives:
    """Redrive of single letters. A second redrive of a letter is refused while the first one runs."""

    log: Log
    bounds: SearchBounds = field(default=SearchBounds(records=200_000, seconds=15.0))
    _running: set[str] = field(default_factory=set, init=False)

    async def put_back(self, letter: Record, *, who: str) -> RedriveStep:
        """Put a letter back, unless an earlier redrive did. `who`: the caller, for the audit trail. Raises
        Transient."""
        name = letter_name(letter.position)
        if name in self._running:
            return RedriveStep(letter, "failed", why="another request puts it back now")
        self._running.add(name)
        result = "failed"
        try:
            step = await self._put_back(letter)
            result = AUDITED[step.action]
            return step
        finally:
            self._running.discard(name)
            audit_redrive(letter, result, who=who)

    async def _put_back(self, letter: Record) -> RedriveStep:
        try:
            redrive = redrive_of(letter)
        except NotRedrivable as error:
            return RedriveStep(letter, "failed", why=str(error))
        search = RedriveSearch(self.log)
        await search.add(redrive)
        earlier = await search.run(self.bounds)
        if redrive.letter in earlier.letters:
            return RedriveStep(letter, "was_put_back", redrive)
        if not earlier.whole:
            why = (
                f"{redrive.topic} has too many newer records to see whether the letter was put back before; use "
                "`memstream dlq redrive`"
            )
            return RedriveStep(letter, "failed", redrive, why)
        return await append_redrive(self.log, letter, redrive)


@dataclass(slots=True)
class Redriver:
    """Reader of dead letters that puts them back, at most `limit` letters and `rate` letters per second."""

    log: Log
    chosen: LetterFilter
    rate: float
    who: str
    """The caller, for the audit trail."""
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
        search = RedriveSearch(self.log)
        chosen = 0
        async with aclosing(self.log.read(topic)) as letters:
            async for letter in letters:
                if self.chosen.takes(letter):
                    try:
                        await search.add(redrive_of(letter))
                    except NotRedrivable:
                        continue
                    chosen += 1
        if not chosen:
            return frozenset()
        self.progress(f"{topic.removesuffix(DEAD_LETTER_SUFFIX)}: looking for letters that were put back before")
        return (await search.run(SearchBounds())).letters

    async def _step(self, letter: Record, known: frozenset[str]) -> RedriveStep | None:
        try:
            redrive = redrive_of(letter)
        except NotRedrivable as error:
            return RedriveStep(letter, "failed", why=str(error))
        if redrive.letter in known:
            self.already += 1
            return None
        if self.dry_run:
            self.put_back += 1
            return RedriveStep(letter, "would_put_back", redrive)
        await self._pace()
        result = "failed"
        try:
            step = await append_redrive(self.log, letter, redrive)
            result = AUDITED[step.action]
        finally:
            audit_redrive(letter, result, who=self.who)
        self.put_back += step.action == "put_back"
        return step

    async def _pace(self) -> None:
        """Wait until the next record may be sent."""
        now = asyncio.get_running_loop().time()
        if now < self._next_send:
            await asyncio.sleep(self._next_send - now)
        self._next_send = max(now, self._next_send) + SECOND / self.rate

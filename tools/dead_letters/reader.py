"""Pages of dead letters, newest first, and of parked keys. Each page has limits (docs/design/dead-letters.md)."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from ...memory.erasures import ErasedUsers
from ...recall.deadline import UnansweredPart
from ...recall.paging import Page
from ...schemas import ids
from ...schemas.base import Instant
from ...schemas.errors import Transient
from ...schemas.row_keys import partition_key
from ...schemas.topics import PARKED
from ...schemas.turns import Owner
from ...streams.engine.parking import read_parked_keys
from ...streams.engine.redrive import NotRedrivable, Redrive, letter_name, redrive_of
from ...streams.log.offsets import Offsets
from ...streams.log.port import Log, Position, Record
from ..erasure.eraser import read_erased_users
from .letters import DeadLetter, letter_of
from .redriver import RedriveSearch, SearchBounds

STRETCH, STRETCH_GROWTH, STRETCH_MAX = 16, 4, 1_024
"""Letters of the first stretch of a partition, growth of the next stretch, and its maximum."""
STRETCH_BYTES: Final = 1024 * 1024
"""After a stretch of more bytes, the next one is short again."""
LETTER_CURSOR_MAX: Final = 4_096
NOT_A_CURSOR: Final = "is not a cursor of this list"
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ListedLetter(DeadLetter):
    """A letter of a list."""

    put_back: bool | None
    """True if the record is in its topic again; null if that is not known."""


class ParkedEntry(BaseModel):
    """A parked key: a session or owner whose last outcome cannot be applied."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str
    key: str
    """Key of the row with the outcome."""
    tenant_id: str
    owner: Owner
    session_id: str | None
    topic: str
    """Topic of the outcome's event. `partition`, `offset` and `event_id` describe the same event."""
    partition: int
    offset: int
    event_id: str
    parked_at: Instant
    error: str


@dataclass(frozen=True, slots=True)
class LetterBounds:
    """Limits of one page: letters that are read, seconds, and the search for earlier redrives."""

    letters: int = 5_000
    seconds: float = 8.0
    search: SearchBounds = field(default=SearchBounds(records=10_000, seconds=3.0))


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Letters, newest first. `next` continues with older letters."""

    items: tuple[ListedLetter, ...]
    next: str | None
    missing: tuple[UnansweredPart, ...] = ()


@dataclass(slots=True)
class DeadLetterReader:
    """Reader of dead letters and parked keys. Letters of erased users are left out."""

    log: Log
    bounds: LetterBounds = field(default=LetterBounds())

    async def page(
        self,
        topics: Sequence[str],
        takes: Callable[[DeadLetter], bool],
        *,
        limit: int,
        cursor: str | None = None,
    ) -> LetterPage:
        """Return the next letters of these topics that `takes` accepts. A topic that does not answer is in `missing`.

        A page may have fewer letters than `limit`, and a `next`. Raises ValueError for a wrong cursor, and Transient.
        """
        before = _read_cursor(cursor, len(topics))
        missing: list[UnansweredPart] = []
        merge = _Newest(self.log, takes, await read_erased_users(self.log), missing)
        for topic, below in zip(topics, before, strict=True):
            await merge.add(topic, below)
        found = await merge.take(limit, self.bounds)
        known = await self._put_back(found, missing)
        items = tuple(ListedLetter(**dict(each.letter), put_back=known.get(_name_of(each.letter))) for each in found)
        return LetterPage(items, merge.cursor(topics, before), tuple(missing))

    async def _put_back(self, found: Sequence[_Found], missing: list[UnansweredPart]) -> dict[str, bool | None]:
        """Return for each letter whether it was put back, by name. None, or no entry: that is not known."""
        states: dict[str, bool | None] = {}
        redrives = [each.redrive for each in found if each.redrive is not None]
        for topic in dict.fromkeys(each.topic for each in redrives):
            search = RedriveSearch(self.log)
            mine = [each for each in redrives if each.topic == topic]
            try:
                for each in mine:
                    await search.add(each)
                earlier = await search.run(self.bounds.search)
            except Transient as away:
                missing.append(UnansweredPart(topic, _said(away)))
                continue
            for each in mine:
                states[each.letter] = True if each.letter in earlier.letters else False if earlier.whole else None
        return states

    async def record(self, topic: str, partition: int, offset: int) -> Record | None:
        """Return the record at a position of a dead-letter topic, or None. Raises Transient."""
        count = await self.log.partitions(topic)
        if count is None or partition >= count:
            return None
        if await self.log.first_at_or_after(topic, partition, offset) != offset:
            return None
        async with aclosing(self.log.read(topic, start={partition: offset})) as records:
            async for record in records:
                return record
        return None

    async def letter(self, topic: str, partition: int, offset: int) -> tuple[Record, DeadLetter] | None:
        """Return the letter at a position; None if there is none, or if its user is erased. Raises Transient."""
        record = await self.record(topic, partition, offset)
        if record is None:
            return None
        letter = letter_of(record)
        return None if _is_erased(letter, await read_erased_users(self.log)) else (record, letter)

    async def parked(
        self, takes: Callable[[ParkedEntry], bool], *, limit: int, cursor: str | None = None
    ) -> Page[ParkedEntry]:
        """Return parked keys, in the order of stage and key. Raises ValueError for a wrong cursor, and Transient."""
        after = None if cursor is None else _read_key(cursor)
        try:
            async with asyncio.timeout(self.bounds.seconds):
                known = await read_parked_keys(self.log)
        except TimeoutError:
            raise Transient("broker", f"{PARKED.name} was not read within {self.bounds.seconds:g} s") from None
        entries: list[tuple[bytes, ParkedEntry]] = []
        for key in sorted(known):
            parked = known[key]
            lane = partition_key(parked.key)
            if lane is None or (after is not None and key <= after):
                continue
            tenant_id, second, third = ids.split(lane)
            of_session = parked.stage == "observer"
            owner = Owner.model_validate(
                {"scope": "user", "id": second} if of_session else {"scope": second, "id": third}
            )
            entry = ParkedEntry(
                tenant_id=tenant_id, owner=owner, session_id=third if of_session else None, **dict(parked)
            )
            if takes(entry):
                entries.append((key, entry))
        page = entries[:limit]
        more = len(entries) > limit
        return Page(tuple(entry for _, entry in page), _key_cursor(page[-1][0]) if more else None)


def _is_erased(letter: DeadLetter, erased: ErasedUsers) -> bool:
    times = (letter.written_at, _moment(letter.original_timestamp))
    return letter.tenant_id is not None and any(
        owner.scope == "user" and erased.ignores(letter.tenant_id, owner.id, times) for owner in letter.owners
    )


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else Record(Position("", 0, 0), None, None, timestamp=millis).written_at


def _name_of(letter: DeadLetter) -> str:
    return letter_name(Position(letter.topic, letter.partition, letter.offset))


# ------------------------------------------------------------------------------------------------ newest first
@dataclass(frozen=True, slots=True)
class _Found:
    """An accepted letter, and its redrive without the record's content."""

    letter: DeadLetter
    redrive: Redrive | None


@dataclass(slots=True)
class _Partition:
    """Letters of one partition, read backwards in stretches."""

    topic: str
    partition: int
    first: int
    unread: int
    """Letters below this offset are not read."""
    stretch: int = STRETCH
    found: list[_Found] = field(default_factory=list)
    """Accepted letters that are not on the page, oldest first."""
    away: bool = False

    @property
    def is_needed(self) -> bool:
        """True while the partition's newest accepted letter is not known."""
        return not self.found and self.unread > self.first and not self.away

    @property
    def below(self) -> int:
        """Offset below which the next page begins."""
        return self.found[-1].letter.offset + 1 if self.found else self.unread


@dataclass(slots=True)
class _Newest:
    """Merge of partitions by the time of their letters."""

    log: Log
    takes: Callable[[DeadLetter], bool]
    erased: ErasedUsers
    missing: list[UnansweredPart]
    _parts: list[_Partition] = field(default_factory=list)

    async def add(self, topic: str, below: Offsets | None) -> None:
        """Add the partitions of a topic, below these offsets. None: from the end."""
        try:
            if await self.log.partitions(topic) is None:
                return
            starts, ends = await self.log.starts(topic), await self.log.ends(topic)
        except Transient as away:
            self.missing.append(UnansweredPart(topic, _said(away)))
            return
        for partition, (first, end) in enumerate(zip(starts, ends, strict=True)):
            unread = end if below is None else min(end, below.of(partition))
            self._parts.append(_Partition(topic, partition, first, unread))

    async def take(self, limit: int, bounds: LetterBounds) -> list[_Found]:
        """Return the newest letters. At a limit of the read, letters that were found fill the page."""
        taken: list[_Found] = []
        left = bounds.letters
        try:
            async with asyncio.timeout(bounds.seconds):
                while len(taken) < limit:
                    for part in self._parts:
                        while part.is_needed and left > 0:
                            left -= await self._read(part)
                    if any(part.is_needed for part in self._parts) or not self._pop(taken):
                        break
        except TimeoutError:
            pass
        while len(taken) < limit and self._pop(taken):
            continue
        return taken

    def _pop(self, taken: list[_Found]) -> bool:
        """Move the newest letter that was found to the page. Return False if there is none."""
        ready = [part for part in self._parts if part.found]
        if not ready:
            return False
        newest = max(ready, key=lambda part: part.found[-1].letter.written_at or _LONG_AGO)
        taken.append(newest.found.pop())
        return True

    async def _read(self, part: _Partition) -> int:
        """Read one stretch. Return its number of letters, at least 1."""
        low = max(part.first, part.unread - part.stretch)
        found: list[_Found] = []
        count = size = 0
        try:
            async with aclosing(self.log.read(part.topic, start={part.partition: low})) as records:
                async for record in records:
                    if record.position.offset >= part.unread:
                        break
                    count, size = count + 1, size + record.size()
                    letter = letter_of(record)
                    if self.takes(letter) and not _is_erased(letter, self.erased):
                        found.append(_Found(letter, _without_content(record)))
        except Transient as away:
            part.away = True
            self.missing.append(UnansweredPart(part.topic, _said(away)))
            return 1
        part.found, part.unread = found, low
        part.stretch = min(part.stretch * STRETCH_GROWTH, STRETCH_MAX) if size < STRETCH_BYTES else STRETCH
        return max(count, 1)

    def cursor(self, topics: Sequence[str], before: Sequence[Offsets | None]) -> str | None:
        """Return the cursor of the next page; None if every letter was read."""
        if all(part.below <= part.first for part in self._parts):
            return None
        tokens = []
        for topic, below in zip(topics, before, strict=True):
            mine = tuple(part.below for part in self._parts if part.topic == topic)
            kept = Offsets(mine) if mine else below
            tokens.append("" if kept is None else kept.token())
        return ",".join(tokens)


def _without_content(record: Record) -> Redrive | None:
    try:
        return replace(redrive_of(record), value=None, headers=())
    except NotRedrivable:
        return None


def _said(away: Transient) -> str:
    return f"{away} ({away.remedy})" if away.remedy else str(away)


# ------------------------------------------------------------------------------------------------ cursors
def _read_cursor(cursor: str | None, topics: int) -> list[Offsets | None]:
    if cursor is None:
        return [None] * topics
    tokens = cursor.split(",")
    if len(cursor) > LETTER_CURSOR_MAX or len(tokens) != topics:
        raise ValueError(NOT_A_CURSOR)
    return [Offsets.read(each) if each else None for each in tokens]


def _key_cursor(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


def _read_key(cursor: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cursor.encode())
    except (binascii.Error, ValueError):
        raise ValueError(NOT_A_CURSOR) from None

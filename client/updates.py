"""The changes of facts, read from the log: typed, each once, from a position that the caller keeps.

The guarantee, for one subscriber: nothing is missing of what it asked for, nothing comes twice, and the versions of a
fact rise; also when it starts again from the position of the last update that it handled, and when the broker was away.

Why it holds: offsets of a partition are read without holes. A record that a worker sent again is known by (fact_id,
version). Who resumes first reads LOOK_BACK records before its position, without telling them, to know what was told. A
worker sends a turn's changes again only while it has not acknowledged that turn, and so within this many records.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from pydantic import ValidationError

from ..schemas.errors import Transient
from ..schemas.facts import Fact, FactUpdated
from ..schemas.topics import FACTS, FACTS_UPDATED
from ..schemas.turns import Owner
from ..streams.ports import Log, Record
from .errors import Misconfigured, PositionLost, translated

STATE, BEGINNING, NOW = "state", "beginning", "now"
"""Where one may begin without a position: with every fact as it stands (memory.facts), with all that
memory.facts.updated still holds, or with what comes next."""
LOOK_BACK = 2_000
"""Records of a partition. A worker has at most 1 000 turns and 1 000 commands of a partition that it has published and
not acknowledged (streams/lanes.py), and most of them change no fact or one."""
SEEN_MAX = 1_000_000
"""Facts whose version is remembered, those seen last (at most 150 MB)."""
BACKOFF_FIRST, BACKOFF_MAX = 0.1, 10.0
"""Seconds between two tries while the broker is away; doubled, with full jitter."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Update:
    """A fact as it is after a change; `event` tells the change, None in the state at the beginning."""

    fact: Fact
    event: FactUpdated | None
    position: str | None
    """To be kept once this update is handled: what follows it is read after a restart. None while the state at the
    beginning is told, which begins anew when it was cut off; its last one has a position."""


class Updates(Protocol):
    """A way to the changes of facts."""

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        """On and on, those of one owner in their order; `after` is STATE, BEGINNING, NOW or a position. See the
        guarantee above. Raises PositionLost; Unavailable when the log cannot be reached at the beginning. Who breaks
        off closes it (contextlib.aclosing)."""
        ...


@dataclass(slots=True)
class Seen:
    """The highest version told of each fact."""

    limit: int = SEEN_MAX
    _versions: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def is_new(self, fact: Fact) -> bool:
        """Whether this version is higher than all before; from now on it is not."""
        if fact.version <= self._versions.get(fact.fact_id, 0):
            return False
        self._versions[fact.fact_id] = fact.version
        self._versions.move_to_end(fact.fact_id)
        if len(self._versions) > self.limit:
            self._versions.popitem(last=False)
        return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose facts."""

    tenant_id: str | None
    owner: Owner | None

    def takes(self, fact: Fact) -> bool:
        owner = self.owner
        mine = owner is None or (owner.scope, owner.id) == (fact.owner.scope, fact.owner.id)
        return mine and self.tenant_id in (None, fact.tenant_id)

    def event(self, record: Record) -> FactUpdated | None:
        """The change in a record; None: another's, or none that this version can read, which is logged."""
        try:
            event = FactUpdated.model_validate_json(record.value or b"", extra="allow")
        except ValidationError:
            log.warning("update_unreadable", partition=record.position.partition, offset=record.position.offset)
            return None
        return event if self.takes(event.fact) else None

    def state(self, record: Record) -> Fact | None:
        try:
            fact = Fact.model_validate_json(record.value, extra="allow") if record.value else None  # else: erased
        except ValidationError:
            log.warning("fact_unreadable", partition=record.position.partition, offset=record.position.offset)
            return None
        return fact if fact is not None and self.takes(fact) else None


class LogUpdates:
    """`Updates` from the log itself. No consumer group: any number may read, and nobody else keeps the position."""

    def __init__(self, *, log: Log, look_back: int = LOOK_BACK) -> None:
        self._log = log
        self._look_back = look_back

    async def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        wanted, seen = Wanted(tenant_id, owner), Seen()
        with translated():
            offsets = await self._offsets(after)
            if after == STATE:
                told: Update | None = None
                async with aclosing(self._state(wanted, seen, offsets)) as state:
                    async for update in state:
                        if told is not None:
                            yield told
                        told = update
                if told is not None:
                    yield Update(told.fact, told.event, to_position(offsets))
            else:
                async with aclosing(self._before(offsets)) as records:
                    async for record in records:
                        if (event := wanted.event(record)) is not None:
                            seen.is_new(event.fact)
            async with aclosing(self._following(offsets)) as records:
                async for record in records:
                    event = wanted.event(record)
                    if event is not None and seen.is_new(event.fact):
                        yield Update(event.fact, event, to_position(offsets))

    async def _state(self, wanted: Wanted, seen: Seen, offsets: list[int]) -> AsyncGenerator[Update]:
        """Every fact as it stands (what is not compacted yet comes before it, in rising versions), then the changes
        before `offsets` that it did not show yet: a worker tells the change first and the state after it."""
        async with aclosing(_closable(self._log.read(FACTS.name))) as records:
            async for record in records:
                fact = wanted.state(record)
                if fact is not None and seen.is_new(fact):
                    yield Update(fact, None, None)
        async with aclosing(self._before(offsets)) as records:
            async for record in records:
                event = wanted.event(record)
                if event is not None and seen.is_new(event.fact):
                    yield Update(event.fact, event, None)

    async def _before(self, offsets: list[int]) -> AsyncGenerator[Record]:
        """The last records before these offsets, each partition in order."""
        begin = {p: max(0, offset - self._look_back) for p, offset in enumerate(offsets) if offset > 0}
        async with aclosing(_closable(self._log.read(FACTS_UPDATED.name, start=begin))) as records:
            async for record in records:
                if record.position.offset < offsets[record.position.partition]:
                    yield record

    async def _following(self, offsets: list[int]) -> AsyncGenerator[Record]:
        """Records from these offsets on, for ever. `offsets` move past a record before it is handed out."""
        wait = BACKOFF_FIRST
        while True:
            try:
                _check(offsets, await self._log.starts(FACTS_UPDATED.name))
                following = self._log.read(FACTS_UPDATED.name, start=dict(enumerate(offsets)), follow=True)
                async with aclosing(_closable(following)) as records:
                    async for record in records:
                        wait = BACKOFF_FIRST
                        offsets[record.position.partition] = record.position.offset + 1
                        yield record
            except Transient as error:
                log.warning("updates_away", error=str(error))
            await asyncio.sleep(random.uniform(0, wait))
            wait = min(2 * wait, BACKOFF_MAX)

    async def _offsets(self, after: str) -> list[int]:
        """Where to begin: per partition the next offset."""
        ends = list(await self._log.ends(FACTS_UPDATED.name))
        if not ends:
            raise Misconfigured(f"there is no topic {FACTS_UPDATED.name}: run `memstream topics create`")
        if after in (STATE, NOW):
            return ends
        starts = list(await self._log.starts(FACTS_UPDATED.name))
        if after == BEGINNING:
            return starts
        offsets = from_position(after)
        offsets += starts[len(offsets) :]  # the topic has more partitions now
        if any(offset > end for offset, end in zip(offsets, ends, strict=False)) or len(offsets) > len(ends):
            raise PositionLost(f"{FACTS_UPDATED.name} ends before the position: was it made anew? Begin with STATE")
        return offsets


def _check(offsets: list[int], starts: tuple[int, ...]) -> None:
    for p, (offset, first) in enumerate(zip(offsets, starts, strict=False)):
        if offset < first:
            raise PositionLost(f"{FACTS_UPDATED.name}:{p} begins at {first} now, after {offset}: begin with STATE")


def _closable(records: AsyncIterator[Record]) -> AsyncGenerator[Record]:
    """A read holds a connection: whoever ends early closes it. Every `Log` reads by a generator."""
    assert isinstance(records, AsyncGenerator)
    return records


def to_position(offsets: list[int]) -> str:
    """Opaque to callers: the next offset of each partition."""
    return "1-" + ".".join(map(str, offsets))


def from_position(position: str) -> list[int]:
    version, _, offsets = position.partition("-")
    if version != "1" or not all(part.isascii() and part.isdigit() for part in offsets.split(".")):
        raise Misconfigured(f"{position[:80]!r} is no position; one is told with each update, or begin with STATE")
    return [int(part) for part in offsets.split(".")]

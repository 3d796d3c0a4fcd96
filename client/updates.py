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
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog
from pydantic import ValidationError

from ..schemas.errors import Transient
from ..schemas.facts import Fact, FactUpdated
from ..schemas.topics import FACTS, FACTS_UPDATED
from ..schemas.turns import Owner
from ..streams.log.fanout import Offsets, PositionedRecord
from ..streams.log.port import Log
from .errors import Misconfigured, PositionLost, translated

STATE, BEGINNING, NOW = "state", "beginning", "now"
"""Where one may begin without a position: with every fact as it stands (memory.facts), with all that
memory.facts.updated still holds, or with what comes next."""
LOOK_BACK = 2_000
"""Records of a partition. A worker has at most 1 000 turns and 1 000 commands of a partition that it has published and
not acknowledged (streams/engine/lanes.py), and most of them change no fact or one."""
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


Handler = Callable[[Update], Awaitable[None]]


class Group(Protocol):
    """A member of a consumer group."""

    async def run(self, handler: Handler, *, tenant_id: str | None = None, owner: Owner | None = None) -> None:
        """On and on, one after the other; an update counts as handled when the handler returns. Ends with what the
        handler raises, and then that update comes again. Raises PositionLost; Unavailable when the group cannot be
        joined in time."""
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
class UpdateFilter:
    """Whose facts."""

    tenant_id: str | None
    owner: Owner | None

    def takes(self, fact: Fact) -> bool:
        owner = self.owner
        mine = owner is None or (owner.scope, owner.id) == (fact.owner.scope, fact.owner.id)
        return mine and self.tenant_id in (None, fact.tenant_id)

    def event(self, value: bytes | None, *, where: object) -> FactUpdated | None:
        """The change; None: another's, or none that this version can read, which is logged."""
        try:
            event = FactUpdated.model_validate_json(value or b"", extra="allow")
        except ValidationError:
            log.warning("update_unreadable", where=str(where))
            return None
        return event if self.takes(event.fact) else None

    def state(self, value: bytes, *, where: object) -> Fact | None:
        try:
            fact = Fact.model_validate_json(value, extra="allow")
        except ValidationError:
            log.warning("fact_unreadable", where=str(where))
            return None
        return fact if self.takes(fact) else None


class LogUpdates:
    """`Updates` from the log itself. No consumer group: any number may read, and nobody else keeps the position."""

    def __init__(self, *, log: Log, look_back: int = LOOK_BACK) -> None:
        self._log = log
        self._look_back = look_back

    async def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        wanted, seen = UpdateFilter(tenant_id, owner), Seen()
        with translated():
            begun = await self._begin(after)
            known_from = looked_back(begun, self._look_back)
            if after == STATE:
                held: Update | None = None
                async with aclosing(self._facts(wanted)) as facts:
                    async for fact in facts:
                        if seen.is_new(fact):
                            if held is not None:
                                yield held
                            held = Update(fact, None, None)
                begun = await self._begin(NOW)  # behind every change that the state shows: it was told first
                async with aclosing(self._between(known_from, begun, wanted)) as events:
                    async for event in events:
                        if seen.is_new(event.fact):
                            if held is not None:
                                yield held
                            held = Update(event.fact, event, None)
                if held is not None:
                    yield replace(held, position=begun.token())
            else:
                async with aclosing(self._between(known_from, begun, wanted)) as events:
                    async for event in events:
                        seen.is_new(event.fact)
            async with aclosing(self._following(begun)) as following:
                async for told in following:
                    change = wanted.event(told.record.value, where=told.record.position)
                    if change is not None and seen.is_new(change.fact):
                        yield Update(change.fact, change, told.places.token())

    async def _facts(self, wanted: UpdateFilter) -> AsyncGenerator[Fact]:
        """Every fact as it stands; what is not compacted yet comes before it, in rising versions."""
        async with aclosing(self._log.read(FACTS.name)) as records:
            async for record in records:
                if record.value is None:
                    continue  # erased
                fact = wanted.state(record.value, where=record.position)
                if fact is not None:
                    yield fact

    async def _between(self, start: Offsets, end: Offsets, wanted: UpdateFilter) -> AsyncGenerator[FactUpdated]:
        async with aclosing(self._log.read(FACTS_UPDATED.name, start=dict(enumerate(start.offsets)))) as records:
            async for record in records:
                if record.position.offset < end.of(record.position.partition):
                    event = wanted.event(record.value, where=record.position)
                    if event is not None:
                        yield event

    async def _following(self, places: Offsets) -> AsyncGenerator[PositionedRecord]:
        """Records from this place on, for ever."""
        wait = BACKOFF_FIRST
        while True:
            try:
                starts = Offsets(await self._log.starts(FACTS_UPDATED.name))
                if places.behind(starts):
                    raise PositionLost(f"{FACTS_UPDATED.name} does not hold what follows any more: begin with STATE")
                start = dict(enumerate(places.offsets))
                async with aclosing(self._log.read(FACTS_UPDATED.name, start=start, follow=True)) as records:
                    async for record in records:
                        wait, places = BACKOFF_FIRST, places.after(record.position)
                        yield PositionedRecord(record, places)
            except Transient as error:
                if wait == BACKOFF_FIRST:
                    log.warning("updates_away", error=str(error))
            await asyncio.sleep(random.uniform(0, wait))
            wait = min(2 * wait, BACKOFF_MAX)

    async def _begin(self, after: str) -> Offsets:
        ends = Offsets(await self._log.ends(FACTS_UPDATED.name))
        if not ends.offsets:
            raise Misconfigured(f"there is no topic {FACTS_UPDATED.name}: run `memstream topics create`")
        if after in (STATE, NOW):
            return ends
        if after == BEGINNING:
            return Offsets(await self._log.starts(FACTS_UPDATED.name))
        places = from_position(after)
        if ends.behind(places):
            raise PositionLost(f"{FACTS_UPDATED.name} ends before the position: was it made anew? Begin with STATE")
        return places.at_least(dict.fromkeys(range(len(ends.offsets)), 0))


def looked_back(places: Offsets, records: int) -> Offsets:
    return Offsets(tuple(max(0, offset - records) for offset in places.offsets))


def from_position(position: str) -> Offsets:
    try:
        return Offsets.read(position)
    except ValueError:
        raise Misconfigured("this is no position; one is told with each update, or begin with STATE") from None

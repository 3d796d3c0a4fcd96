"""Changes of facts, read from the log: typed, each once, from a position that the caller stores.

Guarantee for one subscriber: no selected change is missing, none is delivered twice, and the versions of a fact rise.
This also holds if the subscriber restarts from the position of the last handled update, and after an outage of the
broker.

Reason: offsets of a partition are read without gaps. The pair (fact_id, version) identifies a record that a worker sent
again. A subscriber that resumes first reads the LOOK_BACK records before its position, to learn which versions it has
received. A worker repeats the changes of a turn only until it has acknowledged the turn, so a repeated record is within
LOOK_BACK records of the first one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import ValidationError

from ..schemas.errors import Transient
from ..schemas.facts import Fact, FactUpdated
from ..schemas.topics import FACTS, FACTS_UPDATED
from ..schemas.turns import Owner
from ..streams.log.offsets import Offsets, PositionedRecord
from ..streams.log.port import Log
from .errors import Misconfigured, PositionLost, translate_errors

STATE, BEGINNING, NOW = "state", "beginning", "now"
"""Starting points without a position. STATE: all current facts (memory.facts), then changes. BEGINNING: all changes
that are still in memory.facts.updated. NOW: only new changes."""
LOOK_BACK = 2_000
"""Number of records per partition to read before a position. A worker has at most 1 000 turns and 1 000 commands of a
partition published but not acknowledged (streams/engine/lanes.py), and most of them change one fact or none."""
SEEN_MAX = 1_000_000
"""Maximum number of facts whose version a subscriber remembers; the most recent facts stay (at most 150 MB)."""
BACKOFF_FIRST, BACKOFF_MAX = 0.1, 10.0
"""Seconds between two attempts while the broker is unavailable, doubled each time, with full jitter."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Update:
    """Fact after a change. `event` describes the change; it is None for facts of the initial state."""

    fact: Fact
    event: FactUpdated | None
    position: str | None
    """Position to store after this update is handled; a restart continues after this position. The position is None
    inside the initial state, which must be read again after an interruption. The last fact of the state has a
    position."""


class Updates(Protocol):
    """Source of changes of facts."""

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        """Yield changes without end, with the guarantee that the docstring of this module gives. Changes of one owner
        keep their order.

        `after` is STATE, BEGINNING, NOW or a position. A caller that stops early must close the generator
        (contextlib.aclosing). Raises PositionLost, and Unavailable if the log does not answer at the start.
        """
        ...


Handler = Callable[[Update], Awaitable[None]]


class Group(Protocol):
    """Member of a consumer group."""

    async def run(self, handler: Handler, *, tenant_id: str | None = None, owner: Owner | None = None) -> None:
        """Call `handler` with one change after another, without end.

        An update counts as handled when the handler returns. If the handler raises, `run` raises the same exception,
        and the update is delivered again later. Raises PositionLost, and Unavailable if joining the group takes too
        long.
        """
        ...


@dataclass(slots=True)
class Seen:
    """Highest version of each fact that the subscriber has received."""

    limit: int = SEEN_MAX
    _versions: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def is_new(self, fact: Fact) -> bool:
        """Return whether this version is higher than every earlier version of the fact, and remember it."""
        if fact.version <= self._versions.get(fact.fact_id, 0):
            return False
        self._versions[fact.fact_id] = fact.version
        self._versions.move_to_end(fact.fact_id)
        if len(self._versions) > self.limit:
            self._versions.popitem(last=False)
        return True


@dataclass(frozen=True, slots=True)
class UpdateFilter:
    """Selection of facts by tenant and owner; None selects all."""

    tenant_id: str | None
    owner: Owner | None

    def accepts(self, fact: Fact) -> bool:
        owner = self.owner
        owned = owner is None or (owner.scope, owner.id) == (fact.owner.scope, fact.owner.id)
        return owned and self.tenant_id in (None, fact.tenant_id)

    def event(self, value: bytes | None, *, where: object) -> FactUpdated | None:
        """Decode a change. Return None if the filter excludes the change. Log a warning and return None if the change
        cannot be decoded."""
        try:
            event = FactUpdated.model_validate_json(value or b"", extra="allow")
        except ValidationError:
            logger.warning("update_unreadable: %s", where)
            return None
        return event if self.accepts(event.fact) else None

    def state(self, value: bytes, *, where: object) -> Fact | None:
        """Decode a fact of the state. Return None in the same cases as `event`."""
        try:
            fact = Fact.model_validate_json(value, extra="allow")
        except ValidationError:
            logger.warning("fact_unreadable: %s", where)
            return None
        return fact if self.accepts(fact) else None


class LogUpdates:
    """`Updates` that reads directly from the log, without a consumer group. The caller stores the position."""

    def __init__(self, *, log: Log, look_back: int = LOOK_BACK) -> None:
        self._log = log
        self._look_back = look_back

    async def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        selection, seen = UpdateFilter(tenant_id, owner), Seen()
        with translate_errors():
            begun = await self._begin(after)
            known_from = step_back(begun, self._look_back)
            if after == STATE:
                held: Update | None = None
                async with aclosing(self._facts(selection)) as facts:
                    async for fact in facts:
                        if seen.is_new(fact):
                            if held is not None:
                                yield held
                            held = Update(fact, None, None)
                begun = await self._begin(NOW)  # a change is on this topic before it is in the state
                async with aclosing(self._between(known_from, begun, selection)) as events:
                    async for event in events:
                        if seen.is_new(event.fact):
                            if held is not None:
                                yield held
                            held = Update(event.fact, event, None)
                if held is not None:
                    yield replace(held, position=begun.token())
            else:
                async with aclosing(self._between(known_from, begun, selection)) as events:
                    async for event in events:
                        seen.is_new(event.fact)
            async with aclosing(self._records_after(begun)) as records:
                async for positioned in records:
                    change = selection.event(positioned.record.value, where=positioned.record.position)
                    if change is not None and seen.is_new(change.fact):
                        yield Update(change.fact, change, positioned.places.token())

    async def _facts(self, selection: UpdateFilter) -> AsyncGenerator[Fact]:
        """Yield the versions of every current fact in rising order. The older versions are those that Kafka has not
        compacted yet."""
        async with aclosing(self._log.read(FACTS.name)) as records:
            async for record in records:
                if record.value is None:
                    continue  # a tombstone: the fact was erased
                fact = selection.state(record.value, where=record.position)
                if fact is not None:
                    yield fact

    async def _between(self, start: Offsets, end: Offsets, selection: UpdateFilter) -> AsyncGenerator[FactUpdated]:
        async with aclosing(self._log.read(FACTS_UPDATED.name, start=dict(enumerate(start.offsets)))) as records:
            async for record in records:
                if record.position.offset < end.of(record.position.partition):
                    event = selection.event(record.value, where=record.position)
                    if event is not None:
                        yield event

    async def _records_after(self, places: Offsets) -> AsyncGenerator[PositionedRecord]:
        """Yield the records after `places`, without end."""
        wait = BACKOFF_FIRST
        while True:
            try:
                starts = Offsets(await self._log.starts(FACTS_UPDATED.name))
                if places.behind(starts):
                    raise PositionLost(
                        f"{FACTS_UPDATED.name} no longer has the records after the position: start with STATE"
                    )
                # a partition that was added later is read from its beginning
                start = {partition: places.of(partition) for partition in range(len(starts.offsets))}
                async with aclosing(self._log.read(FACTS_UPDATED.name, start=start, follow=True)) as records:
                    async for record in records:
                        wait, places = BACKOFF_FIRST, places.after(record.position)
                        yield PositionedRecord(record, places)
            except Transient as error:
                if wait == BACKOFF_FIRST:
                    logger.warning("updates_away: %s", error)
            await asyncio.sleep(random.uniform(0, wait))
            wait = min(2 * wait, BACKOFF_MAX)

    async def _begin(self, after: str) -> Offsets:
        ends = Offsets(await self._log.ends(FACTS_UPDATED.name))
        if not ends.offsets:
            raise Misconfigured(f"the topic {FACTS_UPDATED.name} does not exist: run `memstream topics create`")
        if after in (STATE, NOW):
            return ends
        if after == BEGINNING:
            return Offsets(await self._log.starts(FACTS_UPDATED.name))
        places = read_position(after)
        if ends.behind(places):
            raise PositionLost(f"{FACTS_UPDATED.name} ends before the position (was it recreated?): start with STATE")
        return places.at_least(dict.fromkeys(range(len(ends.offsets)), 0))


def step_back(places: Offsets, records: int) -> Offsets:
    """Return the offsets minus `records`, at least 0."""
    return Offsets(tuple(max(0, offset - records) for offset in places.offsets))


def read_position(position: str) -> Offsets:
    """Parse the position of an update. Raises Misconfigured."""
    try:
        return Offsets.read(position)
    except ValueError:
        raise Misconfigured("this is not a position: use `Update.position`, or start with STATE") from None

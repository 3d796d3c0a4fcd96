"""Reads of memory.facts.updated for an export: the changes of facts until the moment, and the changes after it.

The store has only the newest version of a fact. A change after the moment of the export has the version before it, so
the export returns each fact to its version of the moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from ...schemas import ids
from ...schemas.export import ExportedFact
from ...schemas.facts import Fact, FactUpdated
from ...schemas.topics import FACTS_UPDATED
from ...streams.log.markers import former_counts
from ...streams.log.offsets import Offsets
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Log, Record
from .request import ExportRequest

TOPIC: Final = FACTS_UPDATED.name
SCANNED_MAX: Final = 20_000
"""Records of other owners after which a page ends, so that an export of a large topic shows progress."""
REPEATED: Final = 2_000
"""Number of the last events among which a repeated event is recognised. A worker repeats at most this many."""
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Changes in log order. `place`: start of the next page, or None after the last page."""

    events: Sequence[FactUpdated]
    place: str | None


class FactLog:
    """Reader of the changes of one selection. Raises Transient when the log does not answer."""

    def __init__(self, *, log: Log, request: ExportRequest) -> None:
        self._log = log
        self._request = request

    async def ends(self) -> Offsets:
        """Return the present end of the topic. The topic may be missing: then no fact was ever changed."""
        if await self._log.partitions(TOPIC) is None:
            return Offsets(())
        return Offsets(tuple(await self._log.ends(TOPIC)))

    async def pages(self, until: Offsets, *, place: str | None, size: int) -> AsyncGenerator[ChangesPage]:
        """Yield the changes before `until` that the log still has, partition by partition; at least one page.

        Raises ValueError for an invalid `place`.
        """
        first, offset = _read_place(place)
        partitions = [each for each in await self._partitions(len(until.offsets)) if each >= first]
        starts = await self._log.starts(TOPIC) if partitions else ()
        for number, partition in enumerate(partitions):
            begin = max(starts[partition], offset if partition == first else 0)
            following = partitions[number + 1] if number + 1 < len(partitions) else None
            beyond = None if following is None else f"{following}:0"
            async for page in self._partition(partition, begin, until.of(partition), size, beyond):
                yield page
        if not partitions:
            yield ChangesPage((), None)

    async def _partition(
        self, partition: int, begin: int, end: int, size: int, beyond: str | None
    ) -> AsyncGenerator[ChangesPage]:
        """Yield the pages of a partition; the last page leads to `beyond`."""
        events: list[FactUpdated] = []
        last: dict[str, None] = {}
        scanned = 0
        if begin < end:
            async with aclosing(self._log.read(TOPIC, start={partition: begin})) as records:
                async for record in records:
                    if record.position.offset >= end:
                        break
                    if len(events) >= size or scanned >= SCANNED_MAX:
                        yield ChangesPage(tuple(events), f"{partition}:{record.position.offset}")
                        events, scanned = [], 0
                    scanned += 1
                    event = self._selected(record)
                    if event is not None and event.event_id not in last:
                        last[event.event_id] = None
                        if len(last) > REPEATED:
                            del last[next(iter(last))]
                        events.append(event)
        yield ChangesPage(tuple(events), beyond)

    async def _partitions(self, count: int) -> list[int]:
        """Return the partitions that may have events of the selection: all, or the present and the former partitions of
        the owner's key."""
        key = self._request.owner_key
        if key is None or not count:
            return list(range(count))
        counts = {count, *await former_counts(self._log)}
        return sorted({partition_for(key.encode(), each) for each in counts} & set(range(count)))

    async def after(self, begin: Offsets) -> tuple[Offsets, list[FactUpdated]]:
        """Return the changes from `begin` on, and the end up to which the log was read."""
        end = await self.ends()
        moved = begin.behind(end)
        key = self._request.owner_key
        if key is not None and end.offsets:
            own = partition_for(key.encode(), len(end.offsets))
            moved = {partition: offset for partition, offset in moved.items() if partition == own}
        found: list[FactUpdated] = []
        if moved:
            async with aclosing(self._log.read(TOPIC, start=moved)) as records:
                async for record in records:
                    if record.position.offset < end.of(record.position.partition):
                        event = self._selected(record)
                        found += [] if event is None else [event]
        return end, found

    def _selected(self, record: Record) -> FactUpdated | None:
        """Decode the event of a record. Return None for another owner's event, and for a record that memstream did not
        write. The key is compared first, so that records of other tenants are not decoded."""
        key = self._request.owner_key
        of_tenant = f"{ids.encode(self._request.tenant_id)}/".encode()
        if record.value is None or record.key is None:
            return None
        if record.key != key.encode() if key is not None else not record.key.startswith(of_tenant):
            return None
        try:
            event = FactUpdated.read(record.value)
        except ValidationError:
            return None
        of = (event.tenant_id, event.fact.tenant_id)
        own = self._request.owner in (None, event.owner) and event.owner == event.fact.owner
        return event if own and of == (self._request.tenant_id,) * 2 else None


class FactsAtMoment:
    """Facts as they were at the moment of the export, whatever changes while the pages are read.

    It keeps the version before the first change of each fact that changed since the moment, until the fact is read.
    """

    def __init__(self, *, log: FactLog, ends: Offsets, patience: float = 5.0) -> None:
        """`ends`: offsets at the moment. `patience`: seconds, in total, to wait for events of changes that the store
        already has: a stage publishes an event after its write to the store."""
        self._log = log
        self._at = ends
        self._before: dict[str, Fact | None] = {}
        self._read_until = ""
        self._patience = patience

    async def returned(self, facts: Sequence[ExportedFact], *, at: datetime) -> list[ExportedFact]:
        """Return these facts in their version of the moment `at`, without facts that were learnt later. The facts are
        in the order of their ids, and every later page has higher ids."""
        await self._look()
        unseen = [each for each in facts if _touched(each) > at and each.fact_id not in self._before]
        while unseen and self._patience > 0:
            began = time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()
            self._patience -= time.monotonic() - began
            unseen = [each for each in unseen if each.fact_id not in self._before]
        found = [self._returned(each) for each in facts]
        if facts:
            self._read_until = facts[-1].fact_id
            self._before = {fact_id: fact for fact_id, fact in self._before.items() if fact_id > self._read_until}
        return [each for each in found if each is not None]

    def _returned(self, fact: ExportedFact) -> ExportedFact | None:
        if fact.fact_id not in self._before:
            return fact
        before = self._before[fact.fact_id]
        if before is None:
            return None
        closed = fact.closed_at if before.state == "superseded" else None
        same = fact.embedding if before.content == fact.content else None
        return ExportedFact(**dict(before), closed_at=closed, embedding=same)

    async def _look(self) -> None:
        self._at, events = await self._log.after(self._at)
        for event in events:
            if event.fact.fact_id > self._read_until:
                self._before.setdefault(event.fact.fact_id, event.before)


def _touched(fact: ExportedFact) -> datetime:
    """Return the last time that a change has left in the fact."""
    times = (fact.recorded_at, fact.last_reinforced_at, fact.closed_at)
    return max(each for each in times if each is not None)


def _read_place(place: str | None) -> tuple[int, int]:
    if place is None:
        return 0, 0
    partition, _, offset = place.partition(":")
    if not (partition.isdigit() and offset.isdigit() and place.isascii()):
        raise ValueError("this cursor does not belong to an export; start without a cursor")
    return int(partition), int(offset)

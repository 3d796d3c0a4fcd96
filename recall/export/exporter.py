"""Exporter: pages of every record of a selection, in a fixed order of kinds, as of one moment.

A page is bounded. After each page the caller gets a cursor; an export that continues from it writes what one without an
interruption writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals
from ...schemas.archive import ArchivedText
from ...schemas.blocks import SessionHoldings
from ...schemas.collections import EPISODES, TURNS
from ...schemas.export import (
    ExportedFact,
    ExportedMessage,
    ExportedTurn,
    ExportEnd,
    ExportHeader,
    ExportLine,
    ExportRecord,
    RecordKind,
)
from ...streams.log.port import Log
from ..collection_cache import CollectionCache
from .fact_log import FactLog, FactsAtMoment
from .request import ExportCursor, ExportRequest
from .stored_kinds import STORED_KINDS, Embedding, StoredKind, began, of_sessions, shown, shown_holdings

PAGE: Final = 100
"""Records per page."""
TURNS_PAGE: Final = 25
"""Turns per page. A turn has up to 64 messages and 256 KiB."""
DECODED: Final = 20
"""Records that are decoded before other tasks may run."""
MayShow = Callable[[ArchivedText], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ExportPage:
    """A page: its lines, and the cursor after it."""

    lines: Sequence[ExportLine]
    cursor: ExportCursor


class MemoryExporter:
    """The exporter. One instance serves concurrent exports. Raises Transient when the store or the log does not
    answer."""

    def __init__(
        self, *, store: VectorStore, log: Log, embedder: str, may_show: MayShow, now: Callable[[], datetime]
    ) -> None:
        """`embedder`: its name, for the header. `may_show` decides whether an archived text may be shown to a caller
        without the right to see removed records."""
        self._store = store
        self._log = log
        self._embedder = embedder
        self._may_show = may_show
        self._now = now
        self._existing = CollectionCache(store=store)

    async def begin(self, request: ExportRequest) -> ExportCursor:
        """Fix the moment of an export. Return the cursor of its first page."""
        ends = await FactLog(log=self._log, request=request).ends()
        return ExportCursor(self._now(), ends)

    def header(self, request: ExportRequest, cursor: ExportCursor) -> ExportLine:
        header = ExportHeader(
            at=cursor.at,
            tenant_id=request.tenant_id,
            owner=request.owner,
            ceiling=request.ceiling,
            conversations=request.conversations,
            embedder=self._embedder if request.embeddings else None,
        )
        return ExportLine.of("export", header)

    def end(self, cursor: ExportCursor) -> ExportLine:
        return ExportLine.of("end", ExportEnd(counts={**cursor.counts}, left_out={**cursor.left_out}))

    async def totals(self, request: ExportRequest) -> Mapping[RecordKind, int]:
        """Return how many records the store has of each kind, including records that the caller may not see. Changes of
        facts are not counted."""
        totals: dict[RecordKind, int] = {}
        for name, kind in STORED_KINDS.items():
            where = kind.where(request)
            if where is not None and await self._existing.has(kind.collection):
                totals[name] = await self._store.count(kind.collection, tenant_id=request.tenant_id, where=where)
        if request.conversations and await self._existing.has(TURNS):
            totals["turn"] = await self._store.count(TURNS, tenant_id=request.tenant_id, where=_heads(request))
        return totals

    async def pages(self, request: ExportRequest, cursor: ExportCursor) -> AsyncGenerator[ExportPage]:
        """Yield the pages from the cursor on.

        Raises ValueError for a cursor with an invalid place.
        """
        facts = FactLog(log=self._log, request=request)
        at_moment = FactsAtMoment(log=facts, ends=cursor.ends)
        while cursor.kind is not None:
            if cursor.kind == "fact_change":
                changes = facts.pages(cursor.ends, place=cursor.place, size=PAGE)
                async with aclosing(changes):
                    async for changed in changes:
                        seen = [
                            each
                            for each in changed.events
                            if request.may_show(each.fact.sensitivity)
                            and (each.before is None or request.may_show(each.before.sensitivity))
                        ]
                        cursor = cursor.after(
                            "fact_change",
                            changed.place,
                            written=len(seen),
                            left_out=len(changed.events) - len(seen),
                        )
                        yield ExportPage(tuple(ExportLine.of("fact_change", each) for each in seen), cursor)
            elif cursor.kind == "turn":
                page = await self._turns(request, cursor)
                cursor = page.cursor
                yield page
            else:
                page = await self._stored(STORED_KINDS[cursor.kind], request, cursor, at_moment)
                cursor = page.cursor
                yield page

    # -------------------------------------------------------------------------------------------- stored records
    async def _stored(
        self, kind: StoredKind, request: ExportRequest, cursor: ExportCursor, at_moment: FactsAtMoment
    ) -> ExportPage:
        where = kind.where(request)
        if where is None or not await self._existing.has(kind.collection):
            return ExportPage((), cursor.after(kind.name, None, written=0, left_out=0))
        points, place = await self._points(kind.collection, request, where, cursor.place, PAGE)
        embeddings = await self._embeddings(kind.collection, request, points) if kind.has_vectors else {}
        records: Sequence[ExportRecord] = await self._decoded(kind, points, embeddings)
        if kind.name == "fact":
            records = await at_moment.returned(
                [each for each in records if isinstance(each, ExportedFact)], at=cursor.at
            )
        else:
            records = [each for each in records if (began(each) or cursor.at) <= cursor.at]
        seen = [each for each in records if shown(each, request)]
        if kind.name == "archive" and not request.removed:
            seen = await self._shown_archive(request, seen)
        left_out = len(records) - len(seen)
        cursor = cursor.after(kind.name, place, written=len(seen), left_out=left_out)
        if kind.name == "holdings":
            seen, hidden = _without_blocks(seen, request)
            cursor = cursor.after_also("block", left_out=hidden)
        return ExportPage(tuple(ExportLine.of(kind.name, each) for each in seen), cursor)

    async def _points(
        self, collection: str, request: ExportRequest, where: models.Filter, place: str | None, size: int
    ) -> tuple[Sequence[StoredPoint], str | None]:
        """Read a page in the order of ids. Return its points, and the start of the next page."""
        found = await self._store.select(
            collection, tenant_id=request.tenant_id, where=where, limit=size + 1, from_id=place
        )
        return found[:size], found[size].id if len(found) > size else None

    async def _embeddings(
        self, collection: str, request: ExportRequest, points: Sequence[StoredPoint]
    ) -> Mapping[str, Embedding]:
        if not request.embeddings or not points:
            return {}
        wanted = [each.id for each in points]
        found = await self._store.get(collection, tenant_id=request.tenant_id, ids=wanted, with_dense=True)
        return {each: point.dense for each, point in found.items()}

    async def _decoded(
        self, kind: StoredKind, points: Sequence[StoredPoint], embeddings: Mapping[str, Embedding]
    ) -> list[ExportRecord]:
        records: list[ExportRecord] = []
        for number, each in enumerate(points):
            records.append(kind.record(each.payload, embeddings.get(each.id)))
            if number % DECODED == DECODED - 1:
                await asyncio.sleep(0)
        return records

    async def _shown_archive(self, request: ExportRequest, records: Sequence[ExportRecord]) -> list[ExportRecord]:
        """Return the archived texts of episodes that exist, except texts that no read shows."""
        rows = [each for each in records if isinstance(each, ArchivedText)]
        wanted = [each.episode_id for each in rows]
        found = await self._store.get(EPISODES, tenant_id=request.tenant_id, ids=wanted) if wanted else {}
        whole = {episode_id for episode_id, point in found.items() if point.payload.get("deleted_at") is None}
        return [each for each in rows if each.episode_id in whole and await self._may_show(each)]

    # -------------------------------------------------------------------------------------------- turns
    async def _turns(self, request: ExportRequest, cursor: ExportCursor) -> ExportPage:
        """Read a page of turns: the first messages, then all further messages of these turns. So a turn that is
        recorded during the export is whole or absent."""
        if not request.conversations or not await self._existing.has(TURNS):
            return ExportPage((), cursor.after("turn", None, written=0, left_out=0))
        heads, place = await self._points(TURNS, request, _heads(request), cursor.place, TURNS_PAGE)
        further = await self._further(request, heads)
        points = [*heads, *further]
        embeddings = await self._embeddings(TURNS, request, points)
        turns: dict[tuple[str, str, str], list[ExportedMessage]] = {}
        for number, each in enumerate(points):
            message = ExportedMessage.from_payload(each.payload | {"embedding": embeddings.get(each.id)})
            turn = (message.user_id, message.session_id, message.turn_id)
            if number < len(heads) or turn in turns:
                turns.setdefault(turn, []).append(message)
            if number % DECODED == DECODED - 1:
                await asyncio.sleep(0)
        lines: list[ExportLine] = []
        hidden = 0
        for (user_id, session_id, turn_id), messages in turns.items():
            if any(each.occurred_at > cursor.at for each in messages):
                continue
            seen = tuple(each for each in messages if request.may_show(each.sensitivity))
            hidden += len(messages) - len(seen)
            if seen:
                ordered = tuple(sorted(seen, key=lambda each: each.message_index))
                turn_of = ExportedTurn(user_id=user_id, session_id=session_id, turn_id=turn_id, messages=ordered)
                lines.append(ExportLine.of("turn", turn_of))
        return ExportPage(tuple(lines), cursor.after("turn", place, written=len(lines), left_out=hidden))

    async def _further(self, request: ExportRequest, heads: Sequence[StoredPoint]) -> list[StoredPoint]:
        """Read all messages of these turns except the first message of each turn."""
        if not heads:
            return []
        of_turns = [
            any_of(name, sorted({str(each.payload[name]) for each in heads}))
            for name in ("user_id", "session_id", "turn_id")
        ]
        later = models.FieldCondition(key="message_index", range=models.Range(gt=0))
        where = models.Filter(must=[of_sessions(request), *of_turns, later])
        return await self._store.select(TURNS, tenant_id=request.tenant_id, where=where)


def _heads(request: ExportRequest) -> models.Filter:
    return models.Filter(must=[of_sessions(request), equals("message_index", 0)])


def _without_blocks(records: Sequence[ExportRecord], request: ExportRequest) -> tuple[list[ExportRecord], int]:
    """Return the holdings without the blocks that the caller may not see, and the number of these blocks."""
    held = [each for each in records if isinstance(each, SessionHoldings)]
    seen = [shown_holdings(each, request) for each in held]
    return [*seen], sum(len(each.blocks) for each in held) - sum(len(each.blocks) for each in seen)

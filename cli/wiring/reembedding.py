"""The stored memory, embedded again with another embedder (docs/design/embedder-migration.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from qdrant_client import models

from ...adapters.ports import Embedder, VectorStore
from ...adapters.vectors.conditions import equals
from ...adapters.vectors.embedder_change import ChangeState, CollectionPair, CopiedPoint, EmbeddedPoint, EmbedderChange
from ...agents.recorder.message_points import search_text
from ...agents.recorder.restored_points import StoredNeighbour, windows_by_id
from ...schemas.collections import TURNS
from ...schemas.errors import Poison
from ...schemas.working_set import StoredMessage
from ..process.startup_retry import StartupRetry

Progress = Callable[[str, int, int], None]
"""Receiver of the progress: collection, points read, all points."""


@dataclass(frozen=True, slots=True)
class ReembeddingReport:
    """Numbers of points. `kept`: their copy was up to date. `not_embedded`: the embedder refused their text, and only a
    search for their words finds them. `removed`: copies of points that no longer exist."""

    read: int = 0
    written: int = 0
    kept: int = 0
    not_embedded: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts to embed of one point. None: the point has no such vector."""

    dense: str | None = None
    window: str | None = None


@dataclass(frozen=True, slots=True)
class Reembedding:
    """Filling of the copies. `store` reads the collections in use."""

    change: EmbedderChange
    store: VectorStore
    embedder: Embedder
    batch: int

    async def fill(self, state: ChangeState, progress: Progress) -> ReembeddingReport:
        """Embed every point that its copy lacks. Raise CommandFailed (exit 3) when the embedder does not answer for a
        minute, `Transient` and `Fatal`; a later call continues."""
        report = ReembeddingReport()
        for pair in state.pairs:
            read, every = 0, await self.change.count(pair.used)
            async for size, missing in self.change.pages(pair, size=self.batch):
                points = [each for tenant in _by_tenant(missing) for each in await self._embedded(pair, tenant)]
                await self.change.write(pair, points, embedder=self.embedder.identity)
                read += size
                report = replace(
                    report,
                    read=report.read + size,
                    written=report.written + len(points),
                    kept=report.kept + size - len(points),
                    not_embedded=report.not_embedded
                    + sum(each.dense is None for each in points if each.copied.searchable),
                )
                progress(pair.aliases[0], read, every)
            removed = await self.change.remove_surplus(pair, size=self.batch)
            report = replace(report, removed=report.removed + removed)
        return report

    async def _embedded(self, pair: CollectionPair, points: Sequence[CopiedPoint]) -> list[EmbeddedPoint]:
        """Embed points of one tenant."""
        texts = await asyncio.gather(*(self._texts(pair, each) for each in points))
        wanted = (text for each in texts for text in (each.dense, each.window) if text is not None)
        vectors = await self._vectors(list(dict.fromkeys(wanted)), points[0].tenant_id)
        return [
            EmbeddedPoint(point, vectors.get(each.dense or ""), window=vectors.get(each.window or ""))
            for point, each in zip(points, texts, strict=True)
        ]

    async def _texts(self, pair: CollectionPair, point: CopiedPoint) -> _Texts:
        if not point.searchable:
            return _Texts()
        if not pair.spec.has_windows:
            return _Texts(str(point.payload["content"]))
        message = StoredMessage.from_payload(point.payload)
        window = windows_by_id([message], await self._neighbours(message)).get(message.message_id)
        text = search_text(message)
        return _Texts(text, text if window is None else window.text)

    async def _neighbours(self, message: StoredMessage) -> list[StoredNeighbour]:
        """Return the messages before and after a message in its thread. They may be in another period."""
        if message.session_place is None:
            return []
        place = message.session_place
        where = models.Filter(
            must=[
                equals("user_id", message.user_id),
                equals("session_id", message.session_id),
                models.FieldCondition(key="session_place", range=models.Range(gte=place - 1, lte=place + 1)),
            ]
        )
        found = await self.store.select(TURNS, tenant_id=message.tenant_id, where=where)
        return [StoredNeighbour(StoredMessage.from_payload(each.payload), TURNS) for each in found]

    async def _vectors(self, texts: Sequence[str], tenant_id: str) -> Mapping[str, Sequence[float]]:
        """Embed texts together. If the embedder refuses one of them, embed each alone, without the refused texts."""
        if not texts:
            return {}
        try:
            vectors = await StartupRetry()("the embedder", lambda: self.embedder.embed(texts, tenant_id=tenant_id))
        except Poison:
            if len(texts) == 1:
                return {}
            return {text: vector for each in texts for text, vector in (await self._vectors([each], tenant_id)).items()}
        return dict(zip(texts, vectors, strict=True))


def _by_tenant(points: Sequence[CopiedPoint]) -> list[list[CopiedPoint]]:
    tenants: dict[str, list[CopiedPoint]] = {}
    for each in points:
        tenants.setdefault(each.tenant_id, []).append(each)
    return list(tenants.values())

"""Embedder that joins the calls of concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ..ports import Embedder, EmbedderIdentity
from .coalescer import CoalescePolicy, Coalescer

CHARACTERS: Final = 200_000
"""Maximum characters in one batch: about 50 000 tokens. The largest servers accept 300 000 tokens in one call."""
REMOTE: Final = CoalescePolicy(items=32, weight=CHARACTERS, linger=0.01, at_once=16)
"""Policy for a server, with concurrent calls. Every common server accepts 32 texts in one call."""
LOCAL: Final = CoalescePolicy(items=64, weight=CHARACTERS, at_once=1, tenant_items=16)
"""Policy for a model in this process, on one thread. Texts that arrive during a call form the next batch."""


class BatchingEmbedder:
    """`Embedder` that batches the calls to another embedder. Texts of two tenants never share a call, because usage is
    counted by tenant. Thus a server that confuses the vectors of a call cannot give a tenant another tenant's vector.
    """

    def __init__(self, *, embedder: Embedder, policy: CoalescePolicy) -> None:
        self._embedder = embedder
        self._policy = policy
        self._gatherer: Coalescer[tuple[str, tuple[str, ...]], list[list[float]]] = Coalescer(
            run=self._run, policy=policy
        )

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        pieces = list(self._pieces(texts))
        vectors = await asyncio.gather(*(self._embed_piece(piece, tenant_id) for piece in pieces))
        return [vector for piece in vectors for vector in piece]

    def _pieces(self, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Split the texts into pieces of one call each, so that calls of other tenants can run between them."""
        piece: list[str] = []
        weight = 0
        for text in texts:
            if piece and (len(piece) == self._policy.items or weight + len(text) > self._policy.weight):
                yield tuple(piece)
                piece, weight = [], 0
            piece.append(text)
            weight += len(text)
        if piece:
            yield tuple(piece)

    async def _embed_piece(self, texts: tuple[str, ...], tenant_id: str) -> list[list[float]]:
        return await self._gatherer.ask(
            (tenant_id, texts), tenant=tenant_id, kind=tenant_id, size=len(texts), weight=sum(map(len, texts))
        )

    async def close(self) -> None:
        await self._embedder.close()

    async def _run(self, batch: Sequence[tuple[str, tuple[str, ...]]]) -> list[list[list[float]]]:
        tenant_id = batch[0][0]
        vectors = iter(await self._embedder.embed([text for _, texts in batch for text in texts], tenant_id=tenant_id))
        return [list(islice(vectors, len(texts))) for _, texts in batch]

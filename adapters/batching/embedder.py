"""Embedder that joins the calls of concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ..ports import Embedder, EmbedderIdentity, FairShares
from .coalescer import CoalescePolicy, Coalescer, Member

EmbedderMember = Member[tuple[str, tuple[str, ...]], list[list[float]]]
"""Texts of one tenant that wait for a call."""

CHARACTERS: Final = 200_000
"""Characters in one batch: about 50 000 tokens. The largest servers accept 300 000 in one call."""
REMOTE: Final = CoalescePolicy(items=32, weight=CHARACTERS, linger=0.01, at_once=16)
"""For a server: several calls run at once. 32 texts are the lowest limit among the common servers."""
LOCAL: Final = CoalescePolicy(items=64, weight=CHARACTERS, at_once=1)
"""For a model in this process, on one thread: texts that arrive while it computes form the next batch."""


class BatchingEmbedder:
    """`Embedder` around another one. Texts of two tenants never share a call, because usage is counted by tenant. A
    server that mixes up answers therefore cannot mix up tenants.

    `shares` says whose call is next. Without it, texts go out in the order in which they came, for a program that
    serves one tenant after the other.
    """

    def __init__(
        self, *, embedder: Embedder, policy: CoalescePolicy, shares: FairShares[EmbedderMember] | None = None
    ) -> None:
        self._embedder = embedder
        self._policy = policy
        self._gatherer: Coalescer[tuple[str, tuple[str, ...]], list[list[float]]] = Coalescer(
            run=self._run, policy=policy, shares=shares
        )

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        pieces = list(self._pieces(texts))
        vectors = await asyncio.gather(*(self._embed_piece(piece, tenant_id) for piece in pieces))
        return [vector for piece in vectors for vector in piece]

    def _pieces(self, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Cut the texts into pieces that one call takes, so that others have their turns between them."""
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
            (tenant_id, texts), kind=tenant_id, size=len(texts), weight=sum(map(len, texts))
        )

    async def close(self) -> None:
        await self._embedder.close()

    async def _run(self, batch: Sequence[tuple[str, tuple[str, ...]]]) -> list[list[list[float]]]:
        tenant_id = batch[0][0]
        vectors = iter(await self._embedder.embed([text for _, texts in batch for text in texts], tenant_id=tenant_id))
        return [list(islice(vectors, len(texts))) for _, texts in batch]

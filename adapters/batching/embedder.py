"""Embedder that joins the calls of concurrent callers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from ..ports import Embedder, EmbedderIdentity
from .coalescer import CoalescePolicy, Coalescer

CHARACTERS: Final = 200_000
"""Characters in one batch: about 50 000 tokens. The largest servers accept 300 000 in one call."""
REMOTE: Final = CoalescePolicy(items=32, weight=CHARACTERS, linger=0.01, at_once=16)
"""For a server: several calls run at once. 32 texts are the lowest limit among the common servers."""
LOCAL: Final = CoalescePolicy(items=64, weight=CHARACTERS, at_once=1)
"""For a model in this process, on one thread: texts that arrive while it computes form the next batch."""


class BatchingEmbedder:
    """`Embedder` around another one. Texts of two tenants never share a call, because usage is counted by tenant. A
    server that mixes up answers therefore cannot mix up tenants."""

    def __init__(self, *, embedder: Embedder, policy: CoalescePolicy) -> None:
        self._embedder = embedder
        self._gatherer: Coalescer[tuple[str, tuple[str, ...]], list[list[float]]] = Coalescer(
            run=self._run, policy=policy
        )

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if not texts:
            return []
        return await self._gatherer.ask(
            (tenant_id, tuple(texts)), kind=tenant_id, size=len(texts), weight=sum(map(len, texts))
        )

    async def close(self) -> None:
        await self._embedder.close()

    async def _run(self, batch: Sequence[tuple[str, tuple[str, ...]]]) -> list[list[list[float]]]:
        tenant_id = batch[0][0]
        vectors = iter(await self._embedder.embed([text for _, texts in batch for text in texts], tenant_id=tenant_id))
        return [list(islice(vectors, len(texts))) for _, texts in batch]

"""Sparse form of embeddings, for an embedder whose vectors are nearly all zeros, such as `hashing`.

A text of ten words has ten non-zero numbers among 2 048. The sparse form contains only these ten. Zeros are not stored,
compared or sent: a search among 50 000 vectors takes 0.4 ms instead of 16 ms (docs/adr/0055).

A search in a sparse index finds only records that share a non-zero dimension with the query. A search by cosine also
returns the other records, after the similar records. Some callers need these other records when a tenant has few
records. Therefore each stored vector and each query vector gets an additional dimension with the number `COMMON`. All
vectors share this dimension, so a search returns all records in the order by cosine.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import compress
from typing import Final

from qdrant_client import models

from ...schemas.errors import Transient
from ..ports import EmbedderIdentity
from .collections import embedder_of
from .engine import DENSE, QdrantEngine
from .errors import COMPONENT, translate_errors

COMMON: Final = 2.0**-14
"""Number in the additional dimension of each vector. It adds four billionths to a cosine, which is below the precision
of a 32-bit float for cosines above 0.1. A record that shares only this dimension with the query has a score above
zero."""
LOOK_SECONDS: Final = 60.0
"""Seconds between checks of a collection's embedder and storage form. They change only when a collection is deleted and
created again, or when the embedder is changed. Until the next check, the engine refuses this process's vectors unless
both embedders have the same dimension."""

EncodedVector = list[float] | models.SparseVector
Encode = Callable[[Sequence[float]], EncodedVector]


def to_sparse(dense: Sequence[float]) -> models.SparseVector:
    """Encode a vector in sparse form, scaled to length 1."""
    places = [*compress(_all_places(len(dense)), dense)]
    numbers = [dense[place] for place in places]
    length = math.hypot(*numbers) or 1.0
    common = COMMON * length
    whole = math.hypot(length, common)
    return models.SparseVector.model_construct(
        indices=[*places, len(dense)], values=[number / whole for number in (*numbers, common)]
    )


@cache
def _all_places(count: int) -> tuple[int, ...]:
    return tuple(range(count))  # a range would create its numbers again for each vector, in twice the time


def to_dense(sparse: models.SparseVector) -> list[float]:
    """Decode a stored vector. The index of `COMMON` is the number of dimensions."""
    dense = [0.0] * max(sparse.indices)
    for place, number in zip(sparse.indices, sparse.values, strict=True):
        if place < len(dense):
            dense[place] = number
    return dense


class EmbeddingForms:
    """Storage forms of embeddings, by collection. Collections of earlier versions have embeddings in dense form, even
    when nearly all numbers are zero."""

    def __init__(self, *, engine: QdrantEngine, embedder: EmbedderIdentity) -> None:
        self._engine = engine
        self._embedder = embedder
        self._seen: dict[str, tuple[float, Encode]] = {}
        self._looking: dict[str, asyncio.Task[Encode]] = {}

    async def encode(self, collection: str) -> Encode:
        """Return the encoder for the embeddings of a collection. Raise the engine's errors when the collection does not
        exist, and `Transient` when reads have switched to another embedder: this process must be restarted."""
        seen, encode = self._seen.get(collection, (-math.inf, None))
        if encode is not None and time.monotonic() - seen <= LOOK_SECONDS:
            return encode
        looking = self._looking.get(collection)
        if looking is None:
            looking = self._looking[collection] = asyncio.create_task(self._look(collection))
            looking.add_done_callback(lambda _: self._looking.pop(collection, None))
        # All waiting callers continue in the same iteration of the event loop, so their next requests form one batch.
        return await asyncio.shield(looking)

    async def _look(self, collection: str) -> Encode:
        with translate_errors(f"looking at {collection}"):
            described = await self._engine.get_collection(collection)
        embedder = embedder_of(described)
        if embedder is not None and embedder != self._embedder:
            raise Transient(
                COMPONENT,
                f"{collection} has vectors of {embedder.name} now, and this process has {self._embedder.name}",
                remedy=f"Restart this process with MEMSTREAM_EMBEDDER={embedder.name}.",
            )
        encode = to_sparse if DENSE in (described.config.params.sparse_vectors or {}) else list
        self._seen[collection] = (time.monotonic(), encode)
        return encode

    def forget(self) -> None:
        """Clear the cache. The caller has created collections."""
        self._seen.clear()

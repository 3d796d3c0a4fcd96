"""The sparse form of embeddings: for an embedder whose vectors are nearly all zeros, such as `hashing`.

A text of ten words has ten numbers that are not zero among 2 048. The sparse form keeps these ten alone, so that zeros
are neither stored nor compared nor sent: a search among 50 000 takes 0.4 ms instead of 16 (docs/adr/0055).

A search in a sparse index finds only records that share a number with the query. A search by cosine also finds the
rest, behind them, and recall and the conflict pipeline rely on it in a small memory. So each stored and each searched
vector has one more number, `COMMON`, at the place behind the last one. Then all records share it, and the order is that
of the cosine.
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

from ..ports import EmbedderIdentity
from .engine import DENSE, QdrantEngine
from .errors import translate_errors

COMMON: Final = 2.0**-14
"""It adds four billionths to a cosine, which a float of 32 bits does not show in cosines above 0.1. Engines add it
last, so a record that shares nothing else has a score above zero."""
LOOK_SECONDS: Final = 60.0
"""How long a process goes on without looking at how a collection stores embeddings. It changes only where a collection
was deleted and made again; until then the engine refuses what this process sends."""

EncodedVector = list[float] | models.SparseVector
Encode = Callable[[Sequence[float]], EncodedVector]


def to_sparse(dense: Sequence[float]) -> models.SparseVector:
    """Encode a vector; it is scaled to length 1."""
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
    return tuple(range(count))  # a range would make its numbers anew for each vector, which takes twice as long


def to_dense(sparse: models.SparseVector) -> list[float]:
    """Decode a stored vector. The place of `COMMON` tells how many numbers it has."""
    dense = [0.0] * max(sparse.indices)
    for place, number in zip(sparse.indices, sparse.values, strict=True):
        if place < len(dense):
            dense[place] = number
    return dense


class EmbeddingForms:
    """How the collections of an engine store embeddings. One that an earlier version made has them dense, also of an
    embedder whose vectors are nearly all zeros."""

    def __init__(self, *, engine: QdrantEngine, embedder: EmbedderIdentity) -> None:
        self._engine = engine
        self._embedder = embedder
        self._seen: dict[str, tuple[float, Encode]] = {}
        self._looking: dict[str, asyncio.Task[Encode]] = {}

    async def encode(self, collection: str) -> Encode:
        """Return how the embeddings of a collection are encoded. The engine's errors when there is no such
        collection."""
        if not self._embedder.mostly_zeros:
            return list
        seen, encode = self._seen.get(collection, (-math.inf, None))
        if encode is not None and time.monotonic() - seen <= LOOK_SECONDS:
            return encode
        looking = self._looking.get(collection)
        if looking is None:
            looking = self._looking[collection] = asyncio.create_task(self._look(collection))
            looking.add_done_callback(lambda _: self._looking.pop(collection, None))
        # All that wait go on in the same turn of the loop, so what they ask next goes out together.
        return await asyncio.shield(looking)

    async def _look(self, collection: str) -> Encode:
        with translate_errors(f"looking at {collection}"):
            described = await self._engine.get_collection(collection)
        encode = to_sparse if DENSE in (described.config.params.sparse_vectors or {}) else list
        self._seen[collection] = (time.monotonic(), encode)
        return encode

    def forget(self) -> None:
        """Look anew from now on: collections were made."""
        self._seen.clear()

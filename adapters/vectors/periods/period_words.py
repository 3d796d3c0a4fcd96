"""Word weights of a search over several periods.

BM25 weighs a word by its rarity: ln(1 + (N − n + ½) / (n + ½)), which is ln((N + 1) / (n + ½)), when n of N records
have the word. Qdrant counts within one collection. A new period has few records, so its scores would be far below the
scores of the other periods. Therefore a word in the query of a period is multiplied by (its weight over all periods) /
(its weight in this period). The scores are then the same as in one collection.

Qdrant has no request that returns n. n is calculated from the best record of a search for the one word: the score is
the word's weight times the word's frequency in the record, and the sparse vector of the record contains the frequency.
This search has no tenant filter, because the engine counts the records of all tenants. It returns no payload, and only
weights and counts leave this module.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from qdrant_client import models

from ..engine import SPARSE, QdrantEngine, QueryAnswer, ReadConsistency
from ..errors import translate_errors
from .parts import PeriodPart

KEPT_SECONDS = 60.0
"""Seconds for which the number of records of a period is cached. If the number is the same after this time, the word
counts of the period stay cached, too."""
LEAST = 1e-6
WORDS_MAX = 10_000
"""Maximum number of cached word counts of a period. A larger cache is cleared when the records are counted again."""
WORDS_ASKED = 256
"""Maximum number of cached word queries in a process: enough for the concurrent reads."""


@dataclass(slots=True)
class _Counts:
    """Number of records of a part. `of`: for each word, the number of records that contain the word."""

    at: float
    records: int
    of: dict[int, float] = field(default_factory=dict)


class PeriodWords:
    """Word weights over the parts of a collection."""

    def __init__(self, engine: QdrantEngine, *, consistency: ReadConsistency) -> None:
        self._engine = engine
        self._consistency = consistency
        self._counts: dict[str, _Counts] = {}

    async def weights(self, parts: Sequence[PeriodPart], words: Collection[int]) -> Mapping[str, Mapping[int, float]]:
        """Return, for each part by its name, the weight of each word in a query of that part. Empty when there is only
        one part, because Qdrant's own weights are then correct."""
        if len(parts) < 2 or not words:
            return {}
        counted = await asyncio.gather(*(self._counted(part, words) for part in parts))
        every = sum(each.records for each in counted)
        whole = {word: rarity(every, sum(each.of[word] for each in counted)) for word in words}
        return {
            part.name: {word: whole[word] / rarity(each.records, each.of[word]) for word in words}
            for part, each in zip(parts, counted, strict=True)
        }

    async def sizes(self, parts: Sequence[PeriodPart]) -> list[int]:
        """Return the number of records of each part, at most `KEPT_SECONDS` old."""
        with translate_errors("counting the records of periods"):
            return [each.records for each in await asyncio.gather(*map(self._sized, parts))]

    async def _sized(self, part: PeriodPart) -> _Counts:
        """Return the counts of a part. The word counts are kept as long as the number of records stays the same. An old
        period no longer changes, so its words are counted once."""
        now, counts = time.monotonic(), self._counts.get(part.behind)
        if counts is not None and now - counts.at <= KEPT_SECONDS:
            return counts
        records = (await self._engine.get_collection(part.behind)).points_count or 0
        same = counts is not None and counts.records == records and len(counts.of) <= WORDS_MAX
        counts = self._counts[part.behind] = _Counts(now, records, counts.of if counts is not None and same else {})
        return counts

    async def _counted(self, part: PeriodPart, words: Collection[int]) -> _Counts:
        with translate_errors(f"counting words in {part.behind}"):
            counts = await self._sized(part)
            unknown = [word for word in words if word not in counts.of]
            if unknown:
                answers = await self._engine.query_batch_points(
                    part.behind, [_best(word) for word in unknown], consistency=self._consistency
                )
                counts.of |= {
                    word: _count(word, answer, counts.records) for word, answer in zip(unknown, answers, strict=True)
                }
        return counts


def weighed(words: models.SparseVector, weights: Mapping[int, float] | None) -> models.SparseVector:
    """Return the query for a part: the value of each word times the word's weight in this part."""
    if not weights:
        return words
    values = [value * weights[index] for index, value in zip(words.indices, words.values, strict=True)]
    return models.SparseVector.model_construct(indices=words.indices, values=values)


def rarity(records: float, having: float) -> float:
    """Return the weight of a word when `having` of `records` records have it. The weight is at least `LEAST`, because
    `having` may exceed `records`: until the engine removes deleted records, they count for `having` only."""
    return max(LEAST, math.log((records + 1) / (having + 0.5)))


def having(records: float, weight: float) -> float:
    """Return the number of records with a word, from the word's weight: the inverse of `rarity`."""
    return (records + 1) / math.exp(weight) - 0.5


@lru_cache(WORDS_ASKED)
def _best(word: int) -> models.QueryRequest:
    """Return the query for the best record of a word. The same query goes to all parts."""
    return models.QueryRequest.model_construct(  # built without validation, like the searches
        query=models.SparseVector.model_construct(indices=[word], values=[1.0]),
        using=SPARSE,
        limit=1,
        with_payload=False,
        with_vector=[SPARSE],
    )


def _count(word: int, answer: QueryAnswer, records: int) -> float:
    """Return the number of records with the word, calculated from the best record."""
    if not answer.points:
        return 0.0
    best = answer.points[0]
    sparse = best.vector[SPARSE]
    frequency = dict(zip(sparse.indices, sparse.values, strict=True))[word]
    return having(records, best.score / frequency)

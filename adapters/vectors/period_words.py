"""How much a word weighs in a search over several periods.

BM25 weighs a word by how rare it is: ln(1 + (N − n + ½) / (n + ½)), which is ln((N + 1) / (n + ½)), for n of N
records. Qdrant counts within one collection. A period that has just begun has few records, so its scores would be far
below those of the others. So a word in the query of a period is weighted by (its weight in all periods) / (its weight
in this one), and the scores are those of one collection.

No request tells n. But the score of a record for one word is its weight times the word's frequency in the record, and
the record has the frequency. So the best record for a word tells how many have it. That read names no tenant, because
the engine's own weights do not either; it returns no payload, and nothing of it leaves this module but the weights.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from qdrant_client import models

from .engine import SPARSE, QdrantEngine, QueryAnswer, ReadConsistency
from .errors import translate_errors
from .periods import PeriodPart

KEPT_SECONDS = 60.0
"""How long the number of a period's records is used, and the counts of its words while it changes."""
LEAST = 1e-6
WORDS_MAX = 10_000
"""Words whose counts a period keeps when its records are counted again."""
WORDS_ASKED = 256
"""Queries for a word that a process keeps: those of the reads that are under way."""


@dataclass(slots=True)
class _Counts:
    """How many records a part has, and how many of them have a word."""

    at: float
    records: int
    of: dict[int, float] = field(default_factory=dict)


class PeriodWords:
    """The weights of words over the parts of a collection."""

    def __init__(self, engine: QdrantEngine, *, consistency: ReadConsistency) -> None:
        self._engine = engine
        self._consistency = consistency
        self._counts: dict[str, _Counts] = {}

    async def weights(self, parts: Sequence[PeriodPart], words: Collection[int]) -> Mapping[str, Mapping[int, float]]:
        """Return for each part, by its name, the weight of each word in a query of that part. Empty when one part is
        all there is: its own weights are right."""
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
        """Return how many records each part has, at most `KEPT_SECONDS` old."""
        with translate_errors("counting the records of periods"):
            return [each.records for each in await asyncio.gather(*map(self._sized, parts))]

    async def _sized(self, part: PeriodPart) -> _Counts:
        """Return the counts of a part. Those of words stay for as long as it has as many records: an old period asks
        for no word again."""
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
    """Return the query of a part."""
    if not weights:
        return words
    values = [value * weights[index] for index, value in zip(words.indices, words.values, strict=True)]
    return models.SparseVector.model_construct(indices=words.indices, values=values)


def rarity(records: float, having: float) -> float:
    """Return the weight of a word that `having` of `records` have. Above 0: deleted records count among those that have
    a word until the engine clears them away, and not among the records."""
    return max(LEAST, math.log((records + 1) / (having + 0.5)))


def having(records: float, weight: float) -> float:
    """Return how many records have a word, from its weight: the inverse of `rarity`."""
    return (records + 1) / math.exp(weight) - 0.5


@lru_cache(WORDS_ASKED)
def _best(word: int) -> models.QueryRequest:
    """Return the query for the best record of a word. All parts are asked with the same one."""
    return models.QueryRequest.model_construct(  # built without validation, as the searches are
        query=models.SparseVector.model_construct(indices=[word], values=[1.0]),
        using=SPARSE,
        limit=1,
        with_payload=False,
        with_vector=[SPARSE],
    )


def _count(word: int, answer: QueryAnswer, records: int) -> float:
    """Return how many records have the word, from the best one."""
    if not answer.points:
        return 0.0
    best = answer.points[0]
    sparse = best.vector[SPARSE]
    frequency = dict(zip(sparse.indices, sparse.values, strict=True))[word]
    return having(records, best.score / frequency)

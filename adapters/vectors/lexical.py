"""Encoder of words as sparse vectors with BM25 weights, identical for all backends.

All backends use the encoder of the embedded engine (`qdrant_edge.Bm25`, 5 microseconds per document). fastembed's
encoder gave different vectors for a quarter of the texts, so it cannot query a collection that this encoder filled. The
vectors do not contain the inverse document frequency: the collection's sparse index applies it (`modifier: idf`).

The encoder splits at spaces and keeps accents. Therefore each text gets the terms that such a split does not find
(`schemas/terms.py`): pairs of letters in scripts without spaces, and words without accents. A record stored before
these terms existed is still found by its own words, because a query contains both.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import qdrant_edge as edge
from qdrant_client import models

from ...schemas.terms import added_terms, as_word

NEARBY_LENGTH: Final = 300
"""Length in code points up to which a text's neighbours count as much as its own words."""
REPEATED: Final = 0.25
"""Share of a neighbour's weight that a word loses for each unit of its weight in the text itself (at most 2.2)."""


class LexicalEncoder:
    """BM25 encoder with English stop words and stems. Words of other languages keep their endings."""

    def __init__(self) -> None:
        self._bm25 = edge.Bm25()

    def document(self, text: str, nearby: str = "") -> models.SparseVector | None:
        """Encode saturated term frequencies (k 1.2, b 0.75). Return None when the text has no indexed word.

        The terms of `nearby` are added with the weight min(1, (NEARBY_LENGTH / length of the text)²): a short answer is
        found by the words of its question, and a long message has enough words of its own. A word of both texts gains
        less.
        """
        own = self._bm25.embed_document(_with_terms(text))
        if not nearby:
            return _vector(own)
        weight = min(1.0, (NEARBY_LENGTH / max(len(text), 1)) ** 2)
        beside = self._bm25.embed_document(_with_terms(nearby))
        terms = defaultdict(float, zip(own.indices, own.values, strict=True))
        for index, value in zip(beside.indices, beside.values, strict=True):
            terms[index] += weight * value * (1.0 - REPEATED * terms[index])
        if not terms:
            return None
        return models.SparseVector(indices=list(terms), values=list(terms.values()))

    def query(self, text: str) -> models.SparseVector | None:
        """Encode weight 1 for each distinct word. Return None when the text has no indexed word."""
        return _vector(self._bm25.embed_query(_with_terms(text)))


def _with_terms(text: str) -> str:
    """Return the text, followed by its added terms. An ASCII text has none."""
    added = added_terms(text)
    return f"{text} {' '.join(map(as_word, added))}" if added else text


def _vector(sparse: edge.SparseVector) -> models.SparseVector | None:
    if not sparse.indices:
        return None
    return models.SparseVector(indices=list(sparse.indices), values=list(sparse.values))

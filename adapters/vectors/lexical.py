"""Encoder of words as sparse vectors with BM25 weights, identical for all backends.

All backends use the encoder of the embedded engine (`qdrant_edge.Bm25`, 5 microseconds per document). fastembed's
encoder gave different vectors for a quarter of the texts, so it cannot query a collection that this encoder filled. The
vectors do not contain the inverse document frequency: the collection's sparse index applies it (`modifier: idf`).

The encoder splits at spaces and keeps accents. Therefore each text gets the terms that such a split does not find
(`schemas/terms.py`): pairs of letters in scripts without spaces, and words without accents. A record stored before
these terms existed is still found by its own words, because a query contains both.
"""

from __future__ import annotations

import qdrant_edge as edge
from qdrant_client import models

from ...schemas.terms import added_terms, as_word


class LexicalEncoder:
    """BM25 encoder with English stop words and stems. Words of other languages keep their endings."""

    def __init__(self) -> None:
        self._bm25 = edge.Bm25()

    def document(self, text: str) -> models.SparseVector | None:
        """Encode saturated term frequencies (k 1.2, b 0.75). Return None when the text has no indexed word."""
        return _vector(self._bm25.embed_document(_with_terms(text)))

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

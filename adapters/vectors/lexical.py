"""Words as sparse vectors: BM25 weights, made by one encoder for every backend.

The encoder is the engine's own (`qdrant_edge.Bm25`, 5 microseconds a document); fastembed's gave other vectors on a
quarter of the texts, so a collection filled by one and queried by the other would rank wrongly. The inverse document
frequency is not in these vectors: the collection's sparse index applies it (`modifier: idf`).
"""

from __future__ import annotations

import qdrant_edge as edge
from qdrant_client import models


class LexicalEncoder:
    """English stop words and stemming; other languages are tokenised and lower-cased all the same."""

    def __init__(self) -> None:
        self._bm25 = edge.Bm25()

    def document(self, text: str) -> models.SparseVector | None:
        """Term frequencies, saturated (k 1.2, b 0.75). None when no word is left to index."""
        return _vector(self._bm25.embed_document(text))

    def query(self, text: str) -> models.SparseVector | None:
        """Weight 1 for each distinct word. None when no word is left to look for."""
        return _vector(self._bm25.embed_query(text))


def _vector(sparse: edge.SparseVector) -> models.SparseVector | None:
    if not sparse.indices:
        return None
    return models.SparseVector(indices=list(sparse.indices), values=list(sparse.values))

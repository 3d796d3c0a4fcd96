"""Encoder of points and queries for an engine. It also validates all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_client import models

from ...schemas.collections import CollectionSpec
from ...schemas.errors import Fatal
from ..ports import DenseRanking, EmbedderIdentity, NewWindow, Point, Ranking
from . import point_validation
from .batch_requests import EncodedPoint, VectorUpdate
from .engine import DENSE, SPARSE, WINDOW
from .lexical import LexicalEncoder
from .sparse_form import Encode

VectorQuery = tuple[list[float] | models.SparseVector | None, str]
"""A query, and the name of the vector to search. The query is None when its text has no indexed word."""


class PointEncoder:
    """Encoder of points for the collections that one embedder fills.

    All methods raise `Fatal` for a vector that the collection does not have, for NaN or an infinity, and without a
    tenant; `DeploymentFault` for a vector of another dimension; `Poison` for a payload that is not valid Unicode.
    """

    def __init__(self, embedder: EmbedderIdentity) -> None:
        self._embedder = embedder
        self._words = LexicalEncoder()

    def points(self, spec: CollectionSpec, points: Sequence[Point], *, encode: Encode) -> list[EncodedPoint]:
        """Encode points, with `encode` for the embeddings. All points are validated before the first is written."""
        encoded = []
        for point in points:
            what = f"{spec.name}: point {point.id}"
            tenant_id = point_validation.tenant_of(point, spec.name)
            size = point_validation.payload_size(point.payload, what)
            vector = self._vectors(spec, point, what, encode)
            encoded.append(
                # Built without validation: all values are already validated, and a vector has thousands of numbers.
                EncodedPoint(
                    tenant_id,
                    size,
                    models.PointStruct.model_construct(id=point.id, vector=vector, payload=point.payload),
                )
            )
        return encoded

    def windows(
        self, spec: CollectionSpec, points: Sequence[NewWindow], *, tenant_id: str, encode: Encode
    ) -> list[VectorUpdate]:
        """Encode the new vectors of records after a neighbour was added. A record without a new vector is left out."""
        require_windows(spec)
        tenant = point_validation.require_tenant(tenant_id)
        updates = []
        for point in points:
            vectors = self._indexed(f"{spec.name}: point {point.id}", {WINDOW: point.window}, point, encode)
            if vectors:
                updates.append(VectorUpdate(tenant, models.PointVectors(id=point.id, vector=vectors)))
        return updates

    def words(self, text: str) -> models.SparseVector | None:
        """Encode a query by words. Return None when it has no indexed word."""
        return self._words.query(text)

    def dense(self, spec: CollectionSpec, dense: Sequence[float]) -> list[float]:
        """Validate a query vector."""
        point_validation.check_dense(dense, self._embedder.dimension, f"{spec.name}: query")
        return list(dense)

    def ranking(self, spec: CollectionSpec, ranking: Ranking) -> VectorQuery:
        """Encode one ranking of a search, by meaning or by words."""
        if not isinstance(ranking, DenseRanking):
            return self.words(ranking.text), SPARSE
        if ranking.among == WINDOW:
            require_windows(spec)
        return self.dense(spec, ranking.dense), ranking.among

    def _vectors(self, spec: CollectionSpec, point: Point, what: str, encode: Encode) -> dict[str, Any]:
        if not spec.has_vectors:
            if point.dense is not None or point.text is not None or point.window is not None:
                raise Fatal(f"{what}: the collection {spec.name!r} has no vectors")
            return {}
        if point.window is not None:
            require_windows(spec)
        return self._indexed(what, {DENSE: point.dense, WINDOW: point.window}, point, encode)

    def _indexed(
        self, what: str, dense: Mapping[str, Sequence[float] | None], words: Point | NewWindow, encode: Encode
    ) -> dict[str, Any]:
        """Validate the given vectors, and return them by name."""
        vectors: dict[str, Any] = {}
        for name, vector in dense.items():
            if vector is not None:
                point_validation.check_dense(vector, self._embedder.dimension, what)
                vectors[name] = encode(vector)
        if words.text is not None and (sparse := self._words.document(words.text, words.nearby)) is not None:
            vectors[SPARSE] = sparse
        return vectors


def require_vectors(spec: CollectionSpec) -> None:
    """Raise `Fatal` for a collection without vectors."""
    if not spec.has_vectors:
        raise Fatal(f"the collection {spec.name!r} has no vectors to search by")


def require_windows(spec: CollectionSpec) -> None:
    """Raise `Fatal` for a collection without vectors of messages with their neighbours."""
    if not spec.has_windows:
        raise Fatal(f"the collection {spec.name!r} has no windows of neighbours")

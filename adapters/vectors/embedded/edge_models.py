"""Translation between the models of qdrant-client and qdrant_edge, for the parts that the store and the loopback server
use.

Any other part is refused with status 400 and its name. It must not be ignored: a filter without one of its conditions
returns too many records.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import qdrant_edge as edge
from qdrant_client import models

from ..engine import EngineRefused

PLACEHOLDER = "no_vectors"
"""Name of an empty sparse vector for collections without vectors, because qdrant_edge requires at least one."""

GRAPH_M = 16
"""Number of links of a vector in its tenant's graph; the server's default."""
GRAPH_EF = 100
"""Number of candidates for the links during a build; the server's default."""
INT8_QUANTILE = 0.99
"""Quantile of the components that the int8 range covers. Components outside this range are clipped."""
LEAST_INDEXED_KB = 1
UNBOUNDED_KB = 1 << 40

FILTERS_KEPT = 8
"""Number of cached filters. A recall sends three or four filters together."""
_BOUNDS = ("gte", "gt", "lte", "lt")


def _refused(what: object) -> EngineRefused:
    return EngineRefused(400, f"the embedded engine does not offer {type(what).__name__}")


def point_id(value: Any) -> Any:
    """Return numbers unchanged, and other values as text (the bindings parse UUIDs)."""
    return value if isinstance(value, int) else str(value)


def time_text(value: Any) -> Any:
    """Return times as RFC 3339 text, and other values unchanged."""
    return value.isoformat() if isinstance(value, dt.datetime | dt.date) else value


# ------------------------------------------------------------------------------------------------ filters
def _all_of_one_type(values: Sequence[Any]) -> list[Any]:
    return list(values)


def _match(match: Any) -> Any:
    if isinstance(match, models.MatchValue):
        return edge.MatchValue(match.value)
    if isinstance(match, models.MatchAny):
        return edge.MatchAny(_all_of_one_type(match.any))
    if isinstance(match, models.MatchExcept):
        return edge.MatchExcept(_all_of_one_type(match.except_))
    raise _refused(match)


def _range(range_: models.Range | models.DatetimeRange) -> Any:
    bounds = {name: getattr(range_, name) for name in _BOUNDS if getattr(range_, name) is not None}
    if isinstance(range_, models.DatetimeRange):
        return edge.RangeDateTime(**{name: time_text(bound) for name, bound in bounds.items()})
    return edge.RangeFloat(**{name: float(bound) for name, bound in bounds.items()})


def _field(condition: models.FieldCondition) -> Any:
    known: dict[str, Any] = {}
    if condition.match is not None:
        known["match"] = _match(condition.match)
    if condition.range is not None:
        known["range"] = _range(condition.range)
    if condition.is_empty is not None:
        known["is_empty"] = condition.is_empty
    if condition.is_null is not None:
        known["is_null"] = condition.is_null
    wanted = {name for name in condition.model_fields_set if getattr(condition, name) is not None} - {"key"}
    if wanted != set(known):
        raise EngineRefused(400, f"the embedded engine does not offer {sorted(wanted - set(known))} on a field")
    return edge.FieldCondition(condition.key, **known)


def _condition(condition: Any) -> Any:
    if isinstance(condition, models.FieldCondition):
        return _field(condition)
    if isinstance(condition, models.IsEmptyCondition):
        return edge.IsEmptyCondition(condition.is_empty.key)
    if isinstance(condition, models.IsNullCondition):
        return edge.IsNullCondition(condition.is_null.key)
    if isinstance(condition, models.HasIdCondition):
        return edge.HasIdCondition({point_id(each) for each in condition.has_id})
    if isinstance(condition, models.NestedCondition):
        return edge.NestedCondition(condition.nested.key, filter_(condition.nested.filter))
    if isinstance(condition, models.Filter):
        return filter_(condition)
    raise _refused(condition)


def _conditions(conditions: Any) -> list[Any] | None:
    if conditions is None:
        return None
    return [_condition(each) for each in (conditions if isinstance(conditions, list) else [conditions])]


def filter_(filter_model: models.Filter | None) -> Any:
    """Translate a whole filter: must, should, must_not, min_should."""
    if filter_model is None:
        return None
    enough = filter_model.min_should
    return edge.Filter(
        must=_conditions(filter_model.must),
        should=_conditions(filter_model.should),
        must_not=_conditions(filter_model.must_not),
        min_should=edge.MinShould(_conditions(enough.conditions) or [], enough.min_count) if enough else None,
    )


class LastFilters:
    """Cache of the last filters with their translations. A read over many collections sends the same filter object to
    each collection. The cache compares filters by identity, so a sent filter must not be changed."""

    def __init__(self) -> None:
        self._translated: deque[tuple[models.Filter, Any]] = deque(maxlen=FILTERS_KEPT)

    def translated(self, filter_model: models.Filter | None) -> Any:
        if filter_model is None:
            return None
        for known, translated in self._translated:
            if known is filter_model:
                return translated
        translated = filter_(filter_model)
        self._translated.appendleft((filter_model, translated))
        return translated


def order_by(order: models.OrderBy | str) -> Any:
    """Translate an order. `start_from` is a time, or the `order_value` of a record (microseconds for times)."""
    if isinstance(order, str):
        order = models.OrderBy(key=order)
    direction = edge.Direction.Desc if order.direction == models.Direction.DESC else edge.Direction.Asc
    if order.start_from is None:
        return edge.OrderBy(order.key, direction)
    return edge.OrderBy(order.key, direction, start_from=time_text(order.start_from))


# ------------------------------------------------------------------------------------------------ vectors, queries
def vector(value: Any) -> Any:
    if isinstance(value, models.SparseVector):
        return edge.SparseVector(list(value.indices), [float(weight) for weight in value.values])
    if isinstance(value, Mapping):
        return {name: vector(each) for name, each in value.items()}
    return value


def query(wanted: Any, using: str | None) -> Any:
    """Translate a search by a dense or sparse vector."""
    if isinstance(wanted, models.NearestQuery) and wanted.mmr is None:
        wanted = wanted.nearest
    if isinstance(wanted, list | models.SparseVector):
        return edge.Query.Nearest(vector(wanted), using=using)
    raise _refused(wanted)


def search_params(model: models.SearchParams | None) -> Any:
    if model is None:
        return None
    quantization = model.quantization
    given = {name for name in model.model_fields_set if getattr(model, name) is not None}
    if given - {"hnsw_ef", "exact", "quantization"}:
        raise EngineRefused(400, f"the embedded engine does not offer {sorted(given)} in a search")
    return edge.SearchParams(
        hnsw_ef=model.hnsw_ef,
        exact=bool(model.exact),
        quantization=None
        if quantization is None
        else edge.QuantizationSearchParams(
            ignore=bool(quantization.ignore), rescore=quantization.rescore, oversampling=quantization.oversampling
        ),
    )


def query_batch(requests: Sequence[models.QueryRequest], *, filters: LastFilters) -> Any:
    """Translate a batch. A filter that several queries share is translated once."""
    return edge.QueryBatchRequest([_query_request(each, filters.translated(each.filter)) for each in requests])


def _query_request(model: models.QueryRequest, condition: Any) -> Any:
    """Translate one query of a batch: by vector, ordered by a field, or otherwise ordered by id."""
    offered = {"query", "using", "filter", "params", "limit", "with_payload", "with_vector"}
    unknown = {name for name in model.model_fields_set - offered if getattr(model, name) is not None}
    if unknown or not isinstance(model.with_payload, bool | list | None):
        raise EngineRefused(400, f"the embedded engine does not offer {sorted(unknown) or 'such a payload'} in a query")
    wanted = model.query
    return edge.QueryRequest(
        limit=10 if model.limit is None else model.limit,
        query=None if wanted is None else _order(wanted, model.using),
        filter=condition,
        params=search_params(model.params),
        with_payload=model.with_payload or False,
        with_vector=model.with_vector or False,
    )


def _order(wanted: Any, using: str | None) -> Any:
    return order_by(wanted.order_by) if isinstance(wanted, models.OrderByQuery) else query(wanted, using)


def point(model: models.PointStruct) -> Any:
    return edge.Point(point_id(model.id), vector(model.vector), model.payload or {})


def point_vectors(model: models.PointVectors) -> Any:
    return edge.PointVectors(point_id(model.id), vector(model.vector))


# ------------------------------------------------------------------------------------------------ collections
DISTANCES = {
    models.Distance.COSINE: edge.Distance.Cosine,
    models.Distance.DOT: edge.Distance.Dot,
    models.Distance.EUCLID: edge.Distance.Euclid,
    models.Distance.MANHATTAN: edge.Distance.Manhattan,
}
_INDEXES = {
    "keyword": edge.KeywordIndexParams,
    "integer": edge.IntegerIndexParams,
    "float": edge.FloatIndexParams,
    "bool": edge.BoolIndexParams,
    "datetime": edge.DatetimeIndexParams,
}
_INDEX_OPTIONS = ("is_tenant", "is_principal", "enable_hnsw", "lookup", "range")


def config(dense: Mapping[str, models.VectorParams], sparse: Mapping[str, models.SparseVectorParams]) -> Any:
    """Build a shard's configuration. It has one search thread, because queries are short and the stages need the
    cores."""
    if not dense and not sparse:
        sparse = {PLACEHOLDER: models.SparseVectorParams()}
    return edge.EdgeConfig(
        vectors={
            name: edge.EdgeVectorParams(size=each.size, distance=DISTANCES[each.distance])
            for name, each in dense.items()
        },
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if each.modifier == models.Modifier.IDF else None
            )
            for name, each in sparse.items()
        },
        max_search_threads=1,
    )


def config_with_graph(described: models.CreateCollection, *, full_scan: int) -> Any:
    """Build the configuration of a shard with one graph per tenant and int8 vectors in memory. The floats stay on disk,
    for the final order. When a filter leaves fewer points than `full_scan`, the engine compares all these points."""
    dense = described.vectors if isinstance(described.vectors, dict) else {}
    plain = config(dense, described.sparse_vectors or {})
    bytes_each = 4 * max((each.size for each in dense.values()), default=1)
    return edge.EdgeConfig(
        vectors=plain.vectors,
        sparse_vectors=plain.sparse_vectors,
        hnsw_config=edge.HnswIndexConfig(
            m=0,
            payload_m=GRAPH_M,
            ef_construct=GRAPH_EF,
            full_scan_threshold=max(1, full_scan * bytes_each // 1024),  # kB
            max_indexing_threads=1,
        ),
        quantization_config=edge.ScalarQuantizationConfig(
            type=edge.ScalarType.Int8, quantile=INT8_QUANTILE, memory=edge.Memory.Pinned
        ),
        # One segment of any size, because a search reads every segment.
        optimizers=edge.EdgeOptimizersConfig(
            default_segment_number=1, max_segment_size=UNBOUNDED_KB, indexing_threshold=LEAST_INDEXED_KB
        ),
        max_search_threads=1,
    )


def index(schema: Any) -> Any:
    """Translate a payload index, given as a type (`keyword`) or with parameters (`KeywordIndexParams(...)`)."""
    kind = str(getattr(getattr(schema, "type", schema), "value", getattr(schema, "type", schema)))
    if kind not in _INDEXES:
        raise EngineRefused(400, f"the embedded engine does not offer an index of type {kind}")
    options = {name: value for name in _INDEX_OPTIONS if (value := getattr(schema, name, None)) is not None}
    return _INDEXES[kind](**options)


def index_type(info: Any) -> models.PayloadSchemaType:
    """Return the index type that `get_collection` reports."""
    return models.PayloadSchemaType(str(info.data_type).rsplit(".", maxsplit=1)[-1].lower())


# ------------------------------------------------------------------------------------------------ results
def _id_back(value: Any) -> Any:
    return str(value) if isinstance(value, uuid.UUID) else value


def _vector_back(value: Any) -> Any:
    if isinstance(value, edge.SparseVector):
        return models.SparseVector(indices=list(value.indices), values=list(value.values))
    if isinstance(value, dict):
        return {name: _vector_back(each) for name, each in value.items()}
    return value


# Named tuples, because an answer has hundreds of records, and creating a frozen dataclass takes three times as long.
class EdgeRecord(NamedTuple):
    """`EngineRow` over the engine's own record."""

    id: int | str
    payload: dict[str, Any] | None
    vector: Any
    order_value: int | float | None


class EdgeHit(NamedTuple):
    """`EngineHit` over the engine's own result."""

    id: int | str
    version: int
    score: float
    payload: dict[str, Any] | None
    vector: Any = None
    order_value: None = None


class EdgeHits(Sequence[EdgeHit]):
    """The hits of one query, each translated on access. A read over many collections uses only a few hits of each."""

    __slots__ = ("_found",)

    def __init__(self, found: Sequence[Any]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> EdgeHit: ...

    @overload
    def __getitem__(self, place: slice) -> EdgeHits: ...

    def __getitem__(self, place: int | slice) -> EdgeHit | EdgeHits:
        return EdgeHits(self._found[place]) if isinstance(place, slice) else _hit(self._found[place])

    def __iter__(self) -> Iterator[EdgeHit]:
        return map(_hit, self._found)


class EdgeAnswer(NamedTuple):
    """`QueryAnswer` of one query."""

    points: Sequence[EdgeHit]


def records(found: Sequence[Any]) -> list[EdgeRecord]:
    return [EdgeRecord(_id_back(each.id), each.payload, _vector_back(each.vector), each.order_value) for each in found]


def to_answer(found: Sequence[Any]) -> EdgeAnswer:
    return EdgeAnswer(EdgeHits(found))


def _hit(found: Any) -> EdgeHit:
    """Translate a result. Most queries request no vectors."""
    vector = None if found.vector is None else _vector_back(found.vector)
    return EdgeHit(_id_back(found.id), found.version, found.score, found.payload, vector)

"""The routes of Qdrant's REST API that memstream uses, for the embedded engine: one function for each route.

Requests are decoded with qdrant-client's own models, and answers have the server's format (`result`, `status`, `time`),
so that the unchanged `AsyncQdrantClient` works with them. Unknown routes and options are refused, never ignored.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from qdrant_client import models

from ..engine import EngineRefused
from .edge import EdgeEngine
from .edge_models import EdgeHit, EdgeRecord

M = TypeVar("M", bound=BaseModel)
Handler = Callable[[EdgeEngine, web.Request], Awaitable[Any]]
_POINTS_SELECTOR: TypeAdapter[models.PointsSelector] = TypeAdapter(models.PointsSelector)
_UPSERT: TypeAdapter[models.PointInsertOperations] = TypeAdapter(models.PointInsertOperations)


def routes(engine: EdgeEngine) -> list[web.RouteDef]:
    """Return the routes. They do not authenticate the caller; the application must do this before a route runs."""
    table: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/collections", _collections),
        ("GET", "/aliases", _aliases),
        ("POST", "/collections/aliases", _change_aliases),
        ("GET", "/collections/{name}/exists", _exists),
        ("GET", "/collections/{name}", _collection),
        ("PUT", "/collections/{name}", _create),
        ("DELETE", "/collections/{name}", _drop),
        ("PUT", "/collections/{name}/index", _index),
        ("PUT", "/collections/{name}/vectors/{vector}", _vector_name),
        ("PUT", "/collections/{name}/points", _upsert),
        ("POST", "/collections/{name}/points", _retrieve),
        ("POST", "/collections/{name}/points/scroll", _scroll),
        ("PUT", "/collections/{name}/points/vectors", _update_vectors),
        ("POST", "/collections/{name}/points/query", _query),
        ("POST", "/collections/{name}/points/query/batch", _query_batch),
        ("POST", "/collections/{name}/points/count", _count),
        ("POST", "/collections/{name}/points/payload", _set_payload),
        ("POST", "/collections/{name}/points/delete", _delete),
    )
    answers = [web.route(method, path, _answering(engine, handler)) for method, path, handler in table]
    return [web.get("/", _root(engine)), web.get("/readyz", _ready), *answers]


def _answering(engine: EdgeEngine, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            result = await handler(engine, request)
        except EngineRefused as error:
            return error_response(error.status, str(error))
        except (ValidationError, ValueError) as error:
            return error_response(400, f"Format error in JSON body: {error}")
        return web.json_response({"result": result, "status": "ok", "time": 0.0})

    return answer


def error_response(status: int, message: str) -> web.Response:
    """Build an error response in the server's format."""
    return web.json_response({"status": {"error": message}, "time": 0.0}, status=status)


def _root(engine: EdgeEngine) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response((await engine.info()).model_dump(exclude_none=True))

    return answer


async def _ready(_: web.Request) -> web.Response:
    return web.Response(text="all shards are ready")


# ------------------------------------------------------------------------------------------------ collections
async def _collections(engine: EdgeEngine, _: web.Request) -> JsonValue:
    return _dumped(await engine.get_collections())


async def _aliases(engine: EdgeEngine, _: web.Request) -> JsonValue:
    return _dumped(await engine.get_aliases())


async def _change_aliases(engine: EdgeEngine, request: web.Request) -> bool:
    body = await _body(request, models.ChangeAliasesOperation)
    actions = []
    for action in body.actions:
        if not isinstance(action, models.CreateAliasOperation | models.DeleteAliasOperation):
            raise EngineRefused(400, f"the embedded engine does not offer {type(action).__name__}")
        actions.append(action)
    return await engine.update_collection_aliases(actions)


async def _exists(engine: EdgeEngine, request: web.Request) -> JsonValue:
    return {"exists": await engine.collection_exists(_name(request))}


async def _collection(engine: EdgeEngine, request: web.Request) -> JsonValue:
    return _dumped(await engine.get_collection(_name(request)))


async def _create(engine: EdgeEngine, request: web.Request) -> bool:
    body = await _body(request, models.CreateCollection)
    dense = {"": body.vectors} if isinstance(body.vectors, models.VectorParams) else body.vectors or {}
    return await engine.create_collection(
        _name(request),
        dense,
        body.sparse_vectors or {},
        hnsw_config=body.hnsw_config,
        quantization_config=body.quantization_config,
        optimizers_config=body.optimizers_config,
        metadata=body.metadata,
    )


async def _drop(engine: EdgeEngine, request: web.Request) -> bool:
    return await engine.delete_collection(_name(request))


async def _index(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.CreateFieldIndex)
    return _dumped(await engine.create_payload_index(_name(request), body.field_name, body.field_schema))


async def _vector_name(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.DenseVectorNameConfig)
    return _dumped(await engine.create_vector_name(_name(request), request.match_info["vector"], body))


# ------------------------------------------------------------------------------------------------ points
async def _upsert(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = _UPSERT.validate_json(await request.read())
    if not isinstance(body, models.PointsList):
        raise EngineRefused(400, "the embedded engine accepts points as a list, not as a batch of columns")
    return _dumped(
        await engine.upsert(_name(request), body.points, update_filter=body.update_filter, update_mode=body.update_mode)
    )


async def _retrieve(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.PointRequest)
    selection = models.Filter(must=[models.HasIdCondition(has_id=body.ids)])
    page, _ = await engine.scroll(
        _name(request),
        selection,
        limit=max(1, len(body.ids)),
        with_payload=_payload_wanted(body.with_payload, default=True),
        with_vectors=_vectors_wanted(body.with_vector),
    )
    return [_record(each) for each in page]


async def _scroll(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.ScrollRequest)
    page, following = await engine.scroll(
        _name(request),
        body.filter,
        limit=body.limit if body.limit is not None else 10,
        order_by=body.order_by,
        offset=body.offset,
        with_payload=_fields_wanted(body.with_payload),
        with_vectors=_vectors_wanted(body.with_vector),
    )
    return {"points": [_record(each) for each in page], "next_page_offset": following}


async def _query(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.QueryRequest)
    unknown = body.model_fields_set - {"query", "using", "filter", "params", "limit", "with_payload", "with_vector"}
    if any(getattr(body, name) is not None for name in unknown) or body.with_vector:
        raise EngineRefused(400, f"the embedded engine does not offer {sorted(unknown)} in a query")
    answer = await engine.query_points(
        _name(request),
        query=body.query,
        using=body.using,
        query_filter=body.filter,
        search_params=body.params,
        limit=body.limit if body.limit is not None else 10,
        with_payload=_payload_wanted(body.with_payload, default=False),
    )
    return _scored(answer.points)


async def _query_batch(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.QueryRequestBatch)
    return [_scored(answer.points) for answer in await engine.query_batch_points(_name(request), body.searches)]


async def _update_vectors(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.UpdateVectors)
    return _dumped(await engine.update_vectors(_name(request), body.points, update_filter=body.update_filter))


async def _count(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.CountRequest)
    return _dumped(await engine.count(_name(request), body.filter, exact=body.exact is not False))


async def _set_payload(engine: EdgeEngine, request: web.Request) -> JsonValue:
    body = await _body(request, models.SetPayload)
    if body.key is not None or (body.points is None) == (body.filter is None):
        raise EngineRefused(400, "the embedded engine sets whole fields, of points selected by ids or by a filter")
    selection = body.filter or models.Filter(must=[models.HasIdCondition(has_id=body.points or [])])
    return _dumped(await engine.set_payload(_name(request), body.payload, selection))


async def _delete(engine: EdgeEngine, request: web.Request) -> JsonValue:
    selector = _POINTS_SELECTOR.validate_json(await request.read())
    if isinstance(selector, models.FilterSelector):
        selection = selector.filter
    else:
        selection = models.Filter(must=[models.HasIdCondition(has_id=selector.points)])
    return _dumped(await engine.delete(_name(request), selection))


# ------------------------------------------------------------------------------------------------ encoding
async def _body(request: web.Request, model: type[M]) -> M:
    return model.model_validate_json(await request.read())


def _name(request: web.Request) -> str:
    return request.match_info["name"]


def _dumped(model: BaseModel) -> JsonValue:
    value: JsonValue = json.loads(model.model_dump_json(exclude_none=True))
    return value


def _payload_wanted(wanted: Any, *, default: bool) -> bool:
    if wanted is None:
        return default
    if not isinstance(wanted, bool):
        raise EngineRefused(400, "the embedded engine returns complete payloads or none")
    return wanted


def _fields_wanted(wanted: Any) -> bool | list[str]:
    return wanted if isinstance(wanted, list) else _payload_wanted(wanted, default=True)


def _vectors_wanted(wanted: Any) -> bool | list[str]:
    return wanted if isinstance(wanted, bool | list) else False


def _scored(points: Sequence[EdgeHit]) -> JsonValue:
    return {"points": [{**_record(each), "score": each.score, "version": each.version} for each in points]}


def _record(record: EdgeRecord | EdgeHit) -> dict[str, Any]:
    """Encode a record without pydantic, because a page has a thousand records, and the payload is already JSON (nulls
    stay)."""
    fields: dict[str, Any] = {"id": record.id, "payload": record.payload}
    if record.vector is not None:
        fields["vector"] = _plain_vector(record.vector)
    if record.order_value is not None:
        fields["order_value"] = record.order_value
    return fields


def _plain_vector(vector: Any) -> Any:
    if isinstance(vector, models.SparseVector):
        return {"indices": vector.indices, "values": vector.values}
    if isinstance(vector, dict):
        return {name: _plain_vector(each) for name, each in vector.items()}
    return vector

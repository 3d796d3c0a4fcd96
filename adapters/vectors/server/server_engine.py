"""Engine on a Qdrant server: qdrant-client, with its own encoding and decoding of the frequent requests.

qdrant-client copies each query as a model, searches each point for texts to embed, and validates each answer. For a
batch of 64, this costs as much as everything else that a stage does with the batch (docs/adr/0043-a-turn-is-cheap.md).
This module can leave these steps out, because the store itself validates requests and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, urlsplit

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from qdrant_client import AsyncQdrantClient, models

from ....schemas.hosts import is_loopback
from ...lean_imports import FASTEMBED, hidden_package
from ..engine import ReadConsistency
from ..errors import ForeignAnswer
from .remote import Address, Look, RestTransport

_APART: Final = {"query", "filter"}


PLACES: Final = tuple(range(8_192))
"""Indexes of a vector's numbers. A longer vector is encoded like any list."""
ZEROS: Final = "0," * len(PLACES)


class ServerHit(NamedTuple):
    """`EngineRow` and `EngineHit` over the server's own JSON."""

    id: Any
    payload: dict[str, Any] | None
    vector: Any
    score: float
    order_value: Any


_new_hit: Final = cast(Callable[[tuple[Any, ...]], ServerHit], partial(tuple.__new__, ServerHit))
"""Fast constructor of `ServerHit`, without the Python function `__new__` of a named tuple: a read builds hundreds of
hits."""


class ServerAnswer(NamedTuple):
    """`QueryAnswer` of one query."""

    points: Sequence[ServerHit]


class ServerEngine(AsyncQdrantClient):
    """`QdrantEngine` over a server. Rare requests go through qdrant-client itself."""

    def __init__(self, *, requests: RestTransport, **options: Any) -> None:
        with hidden_package(FASTEMBED):
            super().__init__(**options)
        self._requests = requests
        for api in vars(self.http).values():
            if hasattr(api, "api_client"):
                api.api_client = requests
        self.http.client = requests  # type: ignore[assignment]  # only its `aclose` is called

    # -------------------------------------------------------------------------------------------- writes
    async def upsert(  # type: ignore[override]  # only the arguments of `QdrantEngine`, here and below
        self,
        collection_name: str,
        points: Sequence[models.PointStruct],
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
        update_filter: models.Filter | None = None,
        update_mode: models.UpdateMode | None = None,
    ) -> models.UpdateResult:
        body = {"points": _list(_point(each.id, each.vector, each.payload or {}) for each in points)}
        if update_mode is not None:
            body["update_mode"] = to_json(update_mode)
        return await self._write("PUT", collection_name, "", body, wait, ordering, shard_key_selector, update_filter)

    async def update_vectors(  # type: ignore[override]
        self,
        collection_name: str,
        points: Sequence[models.PointVectors],
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
        update_filter: models.Filter | None = None,
    ) -> models.UpdateResult:
        body = {"points": _list(_point(each.id, each.vector) for each in points)}
        return await self._write(
            "PUT", collection_name, "/vectors", body, wait, ordering, shard_key_selector, update_filter
        )

    async def set_payload(  # type: ignore[override]
        self,
        collection_name: str,
        payload: dict[str, Any],
        points: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult:
        body = {"payload": to_json(payload), "filter": _model(points)}
        return await self._write("POST", collection_name, "/payload", body, wait, ordering, shard_key_selector)

    async def delete(  # type: ignore[override]
        self,
        collection_name: str,
        points_selector: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult:
        body = {"filter": _model(points_selector)}
        return await self._write("POST", collection_name, "/delete", body, wait, ordering, shard_key_selector)

    async def _write(
        self,
        method: str,
        collection: str,
        action: str,
        body: dict[str, bytes],
        wait: bool,
        ordering: models.WriteOrdering | None,
        shard_keys: models.ShardKeyWithFallback | None,
        update_filter: models.Filter | None = None,
    ) -> models.UpdateResult:
        if shard_keys is not None:
            body["shard_key"] = _model(shard_keys)
        if update_filter is not None:
            body["update_filter"] = _model(update_filter)
        params = {"wait": "true" if wait else "false"}
        if ordering is not None:
            params["ordering"] = str(ordering.value)
        result = await self._ask(method, collection, action, params, body)
        try:
            return models.UpdateResult.model_construct(operation_id=result.get("operation_id"), status=result["status"])
        except (AttributeError, KeyError) as error:
            raise ForeignAnswer(f"no result of a write: {error}") from error

    # -------------------------------------------------------------------------------------------- reads
    async def scroll(  # type: ignore[override]
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 10,
        order_by: models.OrderBy | None = None,
        offset: Any = None,
        with_payload: bool | list[str] = True,
        with_vectors: Any = False,
        *,
        consistency: ReadConsistency | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> tuple[Sequence[ServerHit], Any]:
        wanted = {"limit": limit, "offset": offset, "with_payload": with_payload, "with_vector": with_vectors}
        body = {name: to_json(value) for name, value in wanted.items() if value is not None}
        parts = ("filter", scroll_filter), ("order_by", order_by), ("shard_key", shard_key_selector)
        body |= {name: _model(each) for name, each in parts if each}
        result = await self._ask("POST", collection_name, "/scroll", _consistent(consistency), body)
        try:
            return [_hit(each) for each in result["points"]], result.get("next_page_offset")
        except (AttributeError, KeyError, TypeError) as error:
            raise ForeignAnswer(f"no page of records: {error!r}") from error

    async def query_batch_points(  # type: ignore[override]
        self,
        collection_name: str,
        requests: Sequence[models.QueryRequest],
        *,
        consistency: ReadConsistency | None = None,
    ) -> Sequence[ServerAnswer]:
        filters: dict[int, bytes] = {}
        body = {"searches": _list(_query(each, filters) for each in requests)}
        result = await self._ask("POST", collection_name, "/query/batch", _consistent(consistency), body)
        try:
            return [ServerAnswer([_hit(each) for each in answer["points"]]) for answer in result]
        except (AttributeError, KeyError, TypeError) as error:
            raise ForeignAnswer(f"no answers of queries: {error!r}") from error

    async def _ask(
        self, method: str, collection: str, action: str, params: Mapping[str, str], body: Mapping[str, bytes]
    ) -> Any:
        """Send a request about points and return the `result` of its answer, as decoded JSON."""
        path = f"/collections/{quote(collection, safe='')}/points{action}"
        content = b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in body.items()) + b"}"
        answer = await self._requests.send(method, path, params=params, content=content)
        try:
            return from_json(answer, cache_strings="keys")["result"]  # not the values, because they are mostly distinct
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignAnswer(f"no JSON with a result: {error!r}") from error


def _list(parts: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(parts) + b"]"


def _model(model: BaseModel) -> bytes:
    """Encode a model as qdrant-client does."""
    return model.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True).encode()


def _point(point_id: Any, vectors: Any, payload: Mapping[str, Any] | None = None) -> bytes:
    named = b",".join(b"%s:%s" % (to_json(name), _vector(vector)) for name, vector in vectors.items())
    rest = b"" if payload is None else b',"payload":' + to_json(payload)
    return b'{"id":%s,"vector":{%s}%s}' % (to_json(point_id), named, rest)


def _vector(vector: Any) -> bytes:
    """Encode a dense or sparse vector. Most numbers of a hashed text are zero, so zeros are written as one
    character."""
    if not isinstance(vector, list):
        return _model(vector)
    if len(vector) > len(PLACES):
        return to_json(vector)
    places = [*compress(PLACES, vector)]
    if 2 * len(places) >= len(vector):
        return to_json(vector)
    parts, since = "[", 0
    for place in places:
        parts += f"{ZEROS[: 2 * (place - since)]}{vector[place]!r},"
        since = place + 1
    return f"{parts}{ZEROS[: 2 * (len(vector) - since)]}"[:-1].encode() + b"]"


def _query(request: models.QueryRequest, filters: dict[int, bytes]) -> bytes:
    """Encode a query. `filters` caches the encoded filters of this batch by identity, because the searches of a tier
    share one filter."""
    parts = [
        request.model_dump_json(exclude=_APART, by_alias=True, exclude_unset=True, exclude_none=True).encode()[1:-1]
    ]
    if request.query is not None:
        parts.append(b'"query":' + _vector(request.query))
    if (wanted := request.filter) is not None:
        encoded = filters.get(id(wanted))
        if encoded is None:
            encoded = filters[id(wanted)] = _model(wanted)
        parts.append(b'"filter":' + encoded)
    return b"{%s}" % b",".join(filter(None, parts))


def _hit(found: Mapping[str, Any]) -> ServerHit:
    get = found.get
    vector = get("vector")
    if vector is not None and isinstance(vector, dict):
        vector = {name: _stored(each) for name, each in vector.items()}
    return _new_hit((found["id"], get("payload"), vector, get("score", 0.0), get("order_value")))


def _stored(vector: Any) -> Any:
    return models.SparseVector.model_construct(**vector) if isinstance(vector, dict) else vector


def _consistent(consistency: ReadConsistency | None) -> dict[str, str]:
    return {} if consistency is None else {"consistency": str(consistency)}


def remote_engine(address: Address, *, seconds: float, look: Look = lambda: None) -> ServerEngine:
    """Create an engine that connects on its first call."""
    on_this_machine = is_loopback(urlsplit(address.url).hostname or "")
    return ServerEngine(
        requests=RestTransport(address=address, seconds=seconds, look=look),
        url=address.base,
        api_key=None if on_this_machine else address.api_key,  # the client warns when a key goes over plain HTTP
        check_compatibility=False,
    )

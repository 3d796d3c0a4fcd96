"""What the engine over a server says and understands, beside qdrant-client itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient, models

from memstream.adapters.vectors.conditions import any_of, equals
from memstream.adapters.vectors.errors import translate_errors
from memstream.adapters.vectors.server.remote import Address
from memstream.adapters.vectors.server.server_engine import _vector, remote_engine
from memstream.schemas.errors import Transient

WHERE = models.Filter(must=[equals("tenant_id", "acme"), any_of("state", ["active", "pending"])])
POINTS = [
    models.PointStruct(
        id="00000000-0000-5000-8000-000000000001",
        vector={
            "dense": [0.0, 0.25, 0.0, -0.1],
            "window": [0.1, 0.2, 0.3, 0.4],
            "bm25": models.SparseVector(indices=[7], values=[1.5]),
        },
        payload={"tenant_id": "acme", "content": 'says "ü"', "valid_to": None, "tags": ["a"], "importance": 0.5},
    ),
    models.PointStruct(id="00000000-0000-5000-8000-000000000002", vector={}, payload={"tenant_id": "acme"}),
]


SHARDS = models.ShardKeyWithFallback(target="acme", fallback="default")


@dataclass
class Asked:
    """The requests that a server got: method, address, body."""

    requests: list[tuple[str, str, Any]] = field(default_factory=list)


@asynccontextmanager
async def server(asked: Asked, answer: Callable[[web.Request], web.Response]) -> AsyncIterator[str]:
    async def take(request: web.Request) -> web.Response:
        asked.requests.append((request.method, str(request.rel_url), json.loads(await request.read())))
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    async with TestServer(app) as started:
        yield str(started.make_url("/"))


def result(request: web.Request) -> web.Response:
    if request.path.endswith("/batch"):
        found: Any = [{"points": [{"id": "p", "version": 1, "score": 0.5, "payload": {"a": None}}]}]
    elif request.path.endswith("/scroll"):
        vector = {"dense": [1.0], "bm25": {"indices": [3], "values": [2.0]}}
        found = {"points": [{"id": "p", "payload": {"a": 1}, "vector": vector}], "next_page_offset": "q"}
    else:
        found = {"operation_id": 3, "status": "completed"}
    return web.json_response({"result": found, "status": "ok", "time": 0.0})


async def _upserted(engine: AsyncQdrantClient) -> None:
    await engine.upsert(
        "facts",
        POINTS,
        wait=True,
        ordering=models.WriteOrdering.STRONG,
        shard_key_selector=SHARDS,
        update_filter=WHERE,
        update_mode=models.UpdateMode.UPDATE_ONLY,
    )


async def _vectors_updated(engine: AsyncQdrantClient) -> None:
    vectors = [models.PointVectors(id=each.id, vector=each.vector) for each in POINTS]
    await engine.update_vectors(
        "facts",
        vectors,
        wait=True,
        ordering=models.WriteOrdering.STRONG,
        shard_key_selector=SHARDS,
        update_filter=WHERE,
    )


async def _fields_set(engine: AsyncQdrantClient) -> None:
    fields = {"at": None, "n": 1}
    strong = models.WriteOrdering.STRONG
    await engine.set_payload("facts", fields, WHERE, wait=True, ordering=strong)
    await engine.set_payload("facts", fields, WHERE, wait=True, ordering=strong, shard_key_selector=SHARDS)


async def _deleted(engine: AsyncQdrantClient) -> None:
    await engine.delete("facts", WHERE, wait=True, ordering=models.WriteOrdering.STRONG, shard_key_selector=SHARDS)


async def _scrolled(engine: AsyncQdrantClient) -> None:
    found, following = await engine.scroll(
        "facts",
        WHERE,
        limit=3,
        with_payload=["a"],
        with_vectors=["dense"],
        consistency=1,
        shard_key_selector=SHARDS,
    )
    assert [each.id for each in found] == ["p"]
    assert found[0].payload == {"a": 1}
    sparse = models.SparseVector(indices=[3], values=[2.0])
    assert found[0].vector == {"dense": [1.0], "bm25": sparse}
    assert following == "q"


async def _queried(engine: AsyncQdrantClient) -> None:
    queries = [
        models.QueryRequest(query=[0.0, 0.0, 0.0, 0.5], using="dense", filter=WHERE, limit=5, with_payload=True),
        models.QueryRequest(query=models.SparseVector(indices=[1], values=[1.0]), using="bm25", limit=5),
        models.QueryRequest(query=models.OrderByQuery(order_by=models.OrderBy(key="session_place")), limit=2),
        models.QueryRequest(filter=WHERE, limit=2, with_payload=True, shard_key=SHARDS),
        models.QueryRequest.model_construct(query=[0.0, 0.5], using="dense", limit=2, shard_key=None),
    ]
    answers = await engine.query_batch_points("facts", queries, consistency=models.ReadConsistencyType.QUORUM)
    assert [(each.id, each.score, each.payload) for each in answers[0].points] == [("p", 0.5, {"a": None})]


CALLS = (_upserted, _vectors_updated, _fields_set, _deleted, _scrolled, _queried)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__.strip("_"))
async def test_a_request_is_the_one_that_qdrant_client_sends(call: Callable[[Any], Awaitable[None]]) -> None:
    ours, theirs = Asked(), Asked()
    async with server(ours, result) as url:
        engine = remote_engine(Address(url), seconds=5)
        await call(engine)
        await engine.close()
    async with server(theirs, result) as url:
        client = AsyncQdrantClient(url=url, check_compatibility=False)
        await call(client)
        await client.close()
    for _, _, body in theirs.requests:
        for search in body.get("searches", ()):  # the server takes a vector with and without its name
            search |= {"query": search["query"].get("nearest", search["query"])} if "query" in search else {}
    assert ours.requests == theirs.requests


@pytest.mark.parametrize(
    "body", ["<html>", "[]", '{"result": null}', '{"result": [{"points": null}]}', '{"result": {"points": [{}]}}']
)
@pytest.mark.parametrize("call", [_upserted, _scrolled, _queried], ids=["write", "page", "query"])
async def test_an_answer_that_is_not_qdrants_is_asked_for_again_later(
    call: Callable[[Any], Awaitable[None]], body: str
) -> None:
    async with server(Asked(), lambda _: web.Response(text=body)) as url:
        engine = remote_engine(Address(url), seconds=5)
        with pytest.raises(Transient, match=r"not Qdrant's"), translate_errors("asking"):
            await call(engine)
        await engine.close()


@given(
    length=st.sampled_from([0, 1, 2, 7, 2_048, 10_000]),
    numbers=st.dictionaries(
        st.integers(0, 2_047), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3), max_size=9
    ),
)
def test_a_vector_is_encoded_as_it_is(length: int, numbers: dict[int, float]) -> None:
    vector = [numbers.get(place, 0.0) for place in range(length)]
    assert json.loads(_vector(vector)) == vector

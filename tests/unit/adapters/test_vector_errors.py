"""Errors of the store when an engine returns wrong data, does not answer, is overloaded, or refuses. No real engine is
needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from qdrant_client import models

from memstream.adapters.ports import EmbedderIdentity, Point
from memstream.adapters.vectors import factory
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.errors import Fatal, StageError, Transient

EMBEDDER = EmbedderIdentity(name="hashing", dimension=2)
INFO = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "payload_schema": {},
    "config": {
        "params": {},
        "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 1},
        "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
    },
}
"""The description of a collection without memstream's metadata."""
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def scripted(answer: Answer, *, api_key: str | None = None) -> AsyncIterator[QdrantStore]:
    """A store over a server that gives this answer to every request, except about the description of `facts`."""

    async def described(_: web.Request) -> web.Response:
        return web.json_response({"result": INFO, "status": "ok", "time": 0})

    application = web.Application()
    application.router.add_get("/collections/facts", described)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    store = await open_store(f"http://127.0.0.1:{runner.addresses[0][1]}", embedder=EMBEDDER, api_key=api_key)
    try:
        yield store
    finally:
        await store.close()
        await runner.cleanup()


async def refused_with(status: int, headers: dict[str, str] | None = None) -> StageError:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"status": {"error": "no"}}, status=status, headers=headers)

    async with scripted(answer) as store:
        with pytest.raises(StageError) as raised:
            await store.count("facts", tenant_id="acme")
    return raised.value


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_an_overloaded_or_broken_server_is_transient(status: int) -> None:
    error = await refused_with(status)
    assert isinstance(error, Transient)
    assert error.component == "store"
    assert error.retry_after is None


async def test_retry_after_is_honoured() -> None:
    error = await refused_with(429, {"Retry-After": "7"})
    assert isinstance(error, Transient)
    assert error.retry_after == 7.0


async def test_a_retry_after_that_is_a_date_is_transient_all_the_same() -> None:
    error = await refused_with(429, {"Retry-After": "Fri, 20 Nov 2026 10:00:00 GMT"})
    assert isinstance(error, Transient)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_transient_and_names_the_setting(status: int) -> None:
    error = await refused_with(status)
    assert isinstance(error, Transient)
    assert "QDRANT_API_KEY" in error.remedy


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_a_refused_request_is_fatal(status: int) -> None:
    error = await refused_with(status)
    assert isinstance(error, Fatal)
    assert ("rebuild facts" in str(error)) is (status == 404)


async def test_an_answer_that_is_not_qdrants_is_transient() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>our proxy is being updated</html>", content_type="text/html")

    async with scripted(page) as store:
        with pytest.raises(Transient):
            await store.ping()


async def test_an_answer_that_does_not_come_in_time_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "REQUEST_SECONDS", 1)
    ended = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    async with scripted(never) as store:
        with pytest.raises(Transient, match="Timeout"):
            await store.count("facts", tenant_id="acme")
        ended.set()


async def test_a_server_that_is_too_old_is_refused_before_anything_is_made() -> None:
    asked: list[str] = []

    async def old(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"title": "qdrant", "version": "1.15.4"})

    async with scripted(old) as store:
        with pytest.raises(Fatal, match=r"1\.15\.4 is too old.*1\.18"):
            await store.ensure()
        with pytest.raises(Fatal, match="too old"):
            await store.version()
    assert asked == ["/", "/"]


async def test_a_collection_of_somebody_elses_is_not_touched() -> None:
    """An alias `facts` that leads to a collection without memstream's metadata."""
    written: list[str] = []
    results: dict[str, Any] = {
        "/aliases": {"aliases": [{"alias_name": "facts", "collection_name": "shop"}]},
        "/collections/shop/exists": {"exists": True},
        "/collections/shop": INFO,
    }

    async def answer(request: web.Request) -> web.Response:
        if request.method != "GET":
            written.append(request.path)
        if request.path == "/":
            return web.json_response({"title": "qdrant", "version": "1.18.0"})
        return web.json_response({"result": results[request.path], "status": "ok", "time": 0})

    async with scripted(answer) as store:
        with pytest.raises(Fatal, match=r"shop.*does not say which embedder"):
            await store.ensure("facts")
    assert written == []


async def test_a_foreign_tenants_record_that_comes_back_is_fatal() -> None:
    """If the filter were lost on the way (a proxy, a bug), a caller must still get nothing of another tenant."""
    record = {"id": 1, "version": 1, "score": 0.9, "payload": {"tenant_id": "rival", "content": "secret"}}
    nobodys = {**record, "payload": {"content": "secret"}}
    served: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        page = {"points": served, "next_page_offset": None}
        result = [page] if request.path.endswith("/batch") else page
        return web.json_response({"result": result, "status": "ok", "time": 0})

    async with scripted(answer) as store:
        for served[:] in ([record], [nobodys]):
            for read in (
                store.get("facts", tenant_id="acme", ids=["00000000-0000-5000-8000-000000000001"]),
                store.select("facts", tenant_id="acme"),
                store.select("facts", tenant_id="acme", limit=3),
                store.select("facts", tenant_id="acme", order_by="version"),
                store.nearest("facts", tenant_id="acme", dense=[1, 0], limit=1),
                store.lexical("facts", tenant_id="acme", text="secret", limit=1),
            ):
                with pytest.raises(Fatal, match="another tenant") as raised:
                    await read
                assert "secret" not in str(raised.value)


async def test_every_read_and_write_carries_the_tenant_and_writes_wait_strongly() -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []
    payload = {"tenant_id": "acme", "version": 1, "applied": []}
    row: dict[str, Any] = {"id": "00000000-0000-0000-0000-000000000001", "payload": payload, "version": 1, "score": 0.0}

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        asked.extend((request.path, request.query_string, each) for each in body.get("searches", [body]))
        result: Any = {"operation_id": 1, "status": "completed", "count": 0, "points": [row]}
        if "searches" in body:
            result = [result]
        return web.json_response({"result": result, "status": "ok", "time": 0})

    async with scripted(answer) as store:
        point = Point(id="00000000-0000-0000-0000-000000000001", payload={"tenant_id": "acme", "applied": ["c"]})
        where = models.Filter(should=[models.FieldCondition(key="a", match=models.MatchValue(value=1))])
        await store.get("facts", tenant_id="acme", ids=["1"])
        await store.select("facts", tenant_id="acme", where=where)
        await store.count("facts", tenant_id="acme", where=where)
        await store.put("facts", [point])
        await store.set_payload("facts", tenant_id="acme", ids=["1"], fields={"a": 1})
        await store.delete("facts", tenant_id="acme", ids=["1"])
        await store.compare_and_set("facts", point, expected_version=1, cause="c")

    tenant = {"key": "tenant_id", "match": {"value": "acme"}}
    for path, query, body in asked:
        condition = body.get("filter") or body.get("update_filter")
        assert condition["must"][0] in (tenant, {"must": [tenant]}), (path, body)
        if path.endswith(("points", "payload", "delete")):
            assert "wait=true" in query
            assert "ordering=strong" in query
    conditional = asked[-2][2]
    assert conditional["update_mode"] == "update_only"
    assert {"key": "version", "match": {"value": 1}} in conditional["update_filter"]["must"]


async def test_a_key_is_sent_and_connections_are_kept() -> None:
    keys: list[str | None] = []
    peers: set[object] = set()

    async def answer(request: web.Request) -> web.Response:
        keys.append(request.headers.get("api-key"))
        peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        result = {"aliases": [], "count": 3}
        return web.json_response({"result": result, "status": "ok", "time": 0})

    async with scripted(answer, api_key="secret") as store:
        for _ in range(5):
            await store.ping()
            assert await store.count("facts", tenant_id="acme") == 3
    assert keys == ["secret"] * 10
    assert len(peers) == 1


@pytest.mark.parametrize(
    "body", [b"[]", b"3", b'{"result": []}', b'{"result": {"points": [3]}}', b'{"result": {}}', b"\xff"]
)
async def test_an_answer_of_another_form_is_transient(body: bytes) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with scripted(answer) as store:
        for read in (
            store.count("facts", tenant_id="acme"),
            store.select("facts", tenant_id="acme"),
            store.nearest("facts", tenant_id="acme", dense=[1, 0], limit=1),
        ):
            with pytest.raises(Transient, match="not Qdrant's"):
                await read


async def test_a_body_cut_off_is_transient() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "1000"})
        await response.prepare(request)
        await response.write(b'{"result": {"count"')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with scripted(answer) as store:
        with pytest.raises(Transient, match="does not answer"):
            await store.count("facts", tenant_id="acme")

"""Requests that are divided by shard, and what is refused where there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from memstream.adapters.vectors.batch_requests import PointIds
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.shards import ShardKeys, Shards
from memstream.schemas.errors import Fatal, Transient
from tests.support.vector_backends import EMBEDDER

ITEMS = [PointIds("acme", ("1",)), PointIds("beta", ("2",)), PointIds("acme", ("3",))]


@pytest.mark.parametrize(
    ("sharding", "requests"),
    [("auto", [(["1", "2", "3"], None)]), ("tenant", [(["1", "3"], "acme"), (["2"], "beta")])],
)
async def test_tenants_share_a_request_where_none_has_a_shard(sharding: object, requests: list[object]) -> None:
    seen: list[object] = []

    async def send(items: Sequence[PointIds], keys: ShardKeys) -> None:
        seen.append(([each.ids[0] for each in items], keys and keys.target))

    shards = Shards(sharding)  # type: ignore[arg-type]
    await shards.each(ITEMS, send)
    await shards.each([], send)
    assert seen == requests


async def test_an_error_comes_when_no_request_runs_any_more() -> None:
    """Until then the batcher lets no other write to these points go out."""
    refused, let_go = asyncio.Event(), asyncio.Event()

    async def send(items: Sequence[PointIds], keys: ShardKeys) -> None:
        if items[0].tenant_id == "acme":
            refused.set()
            raise Transient("store", "away")
        await let_go.wait()

    asked = asyncio.create_task(Shards("tenant").each(ITEMS, send))
    await refused.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asked.done()
    let_go.set()
    with pytest.raises(Transient):
        await asked


async def test_a_folder_has_no_shards(tmp_path: Path) -> None:
    with pytest.raises(Fatal, match="MEMSTREAM_QDRANT_SHARDING=tenant needs a Qdrant server"):
        await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True, sharding="tenant")


async def test_a_server_outside_cluster_mode_is_refused() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/cluster":
            return web.json_response({"result": {"status": "disabled"}, "status": "ok", "time": 0.0})
        return web.json_response({"title": "qdrant", "version": "1.18.3"})

    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", answer)
    async with TestServer(app) as started:
        store = await open_store(str(started.make_url("/")), embedder=EMBEDDER, sharding="tenant")
        for use in (store.version, store.ensure):
            with pytest.raises(Fatal, match="needs a Qdrant in cluster mode, and this one says: disabled"):
                await use()
        await store.close()

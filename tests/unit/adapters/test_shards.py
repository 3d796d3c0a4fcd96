"""Requests that are divided by shard, and what is refused where there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from httpx import Headers
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from memstream.adapters.vectors import shards
from memstream.adapters.vectors.batch_requests import PointIds
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.shards import FALLBACK, ShardKeys, Shards, copy_shards, create_fallback
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

    divided = Shards(sharding)  # type: ignore[arg-type]
    await divided.each(ITEMS, send)
    await divided.each([], send)
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


class BeingCreated:
    """An engine where another process is creating the fallback shard: each look shows its next state."""

    def __init__(self, *states: models.ReplicaState) -> None:
        self.left = list(states)

    async def cluster_status(self) -> Any: ...

    async def create_shard_key(
        self, collection_name: str, shard_key: str, *, placement: list[int] | None = None
    ) -> bool:
        raise AssertionError("it exists")

    async def collection_cluster_info(self, collection_name: str) -> models.CollectionClusterInfo:
        state = self.left.pop(0)
        shard = models.LocalShardInfo(shard_id=1, shard_key=FALLBACK, points_count=0, state=state)
        return models.CollectionClusterInfo(
            peer_id=1, shard_count=1, local_shards=[shard], remote_shards=[], shard_transfers=[]
        )


async def test_a_shard_that_another_process_creates_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write before it is active is refused."""
    monkeypatch.setattr(shards, "LOOK_SECONDS", 0)
    coming, active = models.ReplicaState.INITIALIZING, models.ReplicaState.ACTIVE
    engine: Any = BeingCreated(coming, coming, coming, active)
    await create_fallback(engine, "facts")
    assert engine.left == []
    never: Any = BeingCreated(*[coming] * (shards.READY_LOOKS + 1))
    with pytest.raises(Transient, match="not active yet"):
        await create_fallback(never, "facts")


ACTIVE, PARTIAL = models.ReplicaState.ACTIVE, models.ReplicaState.PARTIAL
Replica = tuple[str | int, int, models.ReplicaState]


class Keyed:
    """An engine of three nodes. `replicas`: key, node and state, by collection; this is node 1."""

    def __init__(self, *of_last: Replica, refused: tuple[str, int] = ("", 0)) -> None:
        self.replicas: dict[str, list[Replica]] = {"last": list(of_last), "new": [(FALLBACK, 1, ACTIVE)]}
        self.created: list[tuple[str, list[int] | None]] = []
        self._refused = refused

    async def cluster_status(self) -> Any: ...

    async def create_shard_key(
        self, collection_name: str, shard_key: str, *, placement: list[int] | None = None
    ) -> bool:
        refused, status = self._refused
        if shard_key == refused:
            raise UnexpectedResponse(status, "refused", b"", Headers())
        self.created.append((shard_key, placement))
        self.replicas[collection_name] += [(shard_key, peer, ACTIVE) for peer in placement or [1]]
        return True

    async def collection_cluster_info(self, collection_name: str) -> models.CollectionClusterInfo:
        replicas = self.replicas[collection_name]
        return models.CollectionClusterInfo(
            peer_id=1,
            shard_count=len(replicas),
            local_shards=[
                models.LocalShardInfo(shard_id=1, shard_key=key, points_count=0, state=state)
                for key, peer, state in replicas
                if peer == 1
            ],
            remote_shards=[
                models.RemoteShardInfo(shard_id=1, shard_key=key, peer_id=peer, state=state)
                for key, peer, state in replicas
                if peer != 1
            ],
            shard_transfers=[],
        )


async def test_a_new_collection_has_the_shards_of_tenants_on_the_nodes_of_the_last_one() -> None:
    engine: Any = Keyed(
        (FALLBACK, 1, ACTIVE),
        ("beta", 3, ACTIVE),
        ("beta", 1, ACTIVE),
        ("acme", 2, ACTIVE),
        ("acme", 3, PARTIAL),
        ("moving", 2, PARTIAL),
        (7, 2, ACTIVE),  # no tenant's
    )
    for _ in range(2):  # again after a crash
        await copy_shards(engine, "new", model="last")
    assert engine.created == [("acme", [2]), ("beta", [1, 3])]


async def test_a_shard_that_the_server_refuses_is_left_out_and_one_that_it_may_have_created_is_not() -> None:
    last: list[Replica] = [("acme", 2, ACTIVE), ("beta", 3, ACTIVE)]
    refusing: Any = Keyed(*last, refused=("acme", 400))
    await copy_shards(refusing, "new", model="last")
    assert refusing.created == [("beta", [3])]
    failing: Any = Keyed(*last, refused=("acme", 500))
    with pytest.raises(UnexpectedResponse):
        await copy_shards(failing, "new", model="last")

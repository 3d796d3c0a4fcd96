"""The store on a Qdrant in cluster mode, where large tenants have a shard of their own.

Runs with MEMSTREAM_TEST_QDRANT=http://host:port of a server that was started with QDRANT__CLUSTER__ENABLED=true.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio

from memstream.adapters.ports import DenseRanking, LexicalRanking, NewWindow
from memstream.adapters.vectors.engine import EngineRefused
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.adapters.vectors.shards import FALLBACK
from memstream.schemas.errors import Fatal, Transient
from memstream.schemas.periods import Period
from tests.support.polling import wait_for
from tests.support.qdrant import GIVEN, GivenQdrant, given_qdrant, has_shards
from tests.support.tcp_proxy import HttpProxy, read_body
from tests.support.vector_backends import EMBEDDER, make_id, make_point, make_row, match

LAST, NOW = Period(2026, 3), Period(2026, 4)
DENSE = [1.0, 0.0, 0.0, 0.0]


pytestmark = pytest.mark.skipif(not has_shards(), reason=f"{GIVEN} names no Qdrant in cluster mode")


class Cluster:
    """What an operator does, by REST."""

    def __init__(self, url: str) -> None:
        # A connection for each request: the server closes idle ones, perhaps in the moment of the next request.
        self._http = httpx.AsyncClient(base_url=url, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = await self._http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()["result"]

    async def move(self, collection: str, tenant: str) -> None:
        """Give a tenant a shard of its own, and return when it is whole."""
        where = {"must": {"key": "tenant_id", "match": {"value": tenant}}}
        copied = {"from_shard_key": FALLBACK, "to_shard_key": tenant, "filter": where}
        await self.ask("PUT", f"/collections/{collection}/shards", {"shard_key": tenant, "initial_state": "Partial"})
        await self.ask("POST", f"/collections/{collection}/cluster", {"replicate_points": copied})
        await wait_for(lambda: self._rests(collection), f"the shard of {tenant}")

    async def clear(self, collection: str, tenant: str) -> None:
        """Delete what a moved tenant left behind."""
        where = {"must": {"key": "tenant_id", "match": {"value": tenant}}}
        await self.ask(
            "POST", f"/collections/{collection}/points/delete?wait=true", {"shard_key": FALLBACK, "filter": where}
        )

    async def tenants_of(self, collection: str, shard_key: str) -> list[str]:
        """Return the tenant of each point in a shard."""
        found = await self.ask(
            "POST", f"/collections/{collection}/points/scroll", {"shard_key": shard_key, "limit": 10_000}
        )
        return [point["payload"]["tenant_id"] for point in found["points"]]

    async def shards(self, collection: str) -> list[tuple[str, str]]:
        """Return key and state of each shard."""
        info = await self.ask("GET", f"/collections/{collection}/cluster")
        return sorted((each["shard_key"], each["state"]) for each in info["local_shards"])

    async def _rests(self, collection: str) -> bool:
        info = await self.ask("GET", f"/collections/{collection}/cluster")
        return not info["shard_transfers"] and all(shard["state"] == "Active" for shard in info["local_shards"])

    async def close(self) -> None:
        await self._http.aclose()


class SeenBodies(HttpProxy):
    """A proxy that keeps the path and body of each request about points."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.seen: list[tuple[str, Any]] = []

    def edit_request(self, request: bytes) -> bytes:
        head, body = read_body(request)
        path = head.split(b" ")[1].decode().partition("?")[0]
        if "/points" in path:
            self.seen.append((path, json.loads(body)))
        return request


@pytest.fixture
def part() -> AsyncIterator[GivenQdrant]:  # type: ignore[misc]  # pytest calls it a generator
    with given_qdrant(os.environ[GIVEN]) as given:
        yield given  # type: ignore[misc]


@pytest_asyncio.fixture
async def cluster(part: GivenQdrant) -> AsyncIterator[Cluster]:
    opened = Cluster(part.url)
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def store(part: GivenQdrant) -> AsyncIterator[PeriodStore]:
    opened = await open_store(part.url, embedder=EMBEDDER, sharding="tenant")
    yield opened
    await opened.close()


async def use(store: PeriodStore, tenant: str) -> list[object]:
    """Write, change and read in every way; return what was read."""

    def ids(*names: str) -> list[str]:
        return [make_id((tenant, name)) for name in names]

    facts = [make_row((tenant, name), 1, "c1", tenant=tenant, text=f"lives in {name}") for name in ("Rome", "Oslo")]
    await store.insert("facts", facts)
    await store.put("facts", [make_row((tenant, "Bonn"), 1, "c1", tenant=tenant, text="lives in Bonn")])
    await store.put("turns", [make_point((tenant, "turn"), tenant=tenant, text="hello", session_place=1)])
    await store.rewindow("turns", tenant_id=tenant, points=[NewWindow(ids("turn")[0], "hello again", DENSE)])
    new = make_row((tenant, "Rome"), 2, "c1", "c2", tenant=tenant, text="lives in Rome")
    applied = await store.compare_and_set("facts", new, expected_version=1, cause="c2")
    await store.set_payload("facts", tenant_id=tenant, ids=ids("Rome"), fields={"retrieval_count": 3})
    await store.delete("facts", tenant_id=tenant, ids=ids("Oslo"))
    rankings = [DenseRanking(DENSE), LexicalRanking("Rome")]
    found = await store.get("facts", tenant_id=tenant, ids=ids("Rome", "Oslo", "Bonn"), with_dense=True)
    ranked = await store.search("facts", tenant_id=tenant, rankings=rankings, limit=9)
    lists = [
        list(found.values()),
        await store.select("facts", tenant_id=tenant),
        await store.select("facts", tenant_id=tenant, limit=200),
        await store.select("facts", tenant_id=tenant, where=match("version", 2), order_by="version"),
        await store.nearest("facts", tenant_id=tenant, dense=DENSE, limit=9),
        await store.lexical("facts", tenant_id=tenant, text="Rome", limit=9),
        *await store.search("turns", tenant_id=tenant, rankings=[DenseRanking(DENSE, "window")], limit=9),
        await store.last("turns", tenant_id=tenant, order_by="session_place", limit=9),
        *ranked,
    ]
    known = {point_id: name for name in ("Rome", "Oslo", "Bonn", "turn") for point_id in ids(name)}
    counts = [await store.count(collection, tenant_id=tenant) for collection in ("facts", "turns")]
    values = found[ids("Rome")[0]].payload["retrieval_count"]
    return [applied, values, counts, [sorted(known[each.id] for each in points) for points in lists]]


async def test_a_tenant_with_a_shard_of_its_own_is_served_as_those_without(
    store: PeriodStore, cluster: Cluster
) -> None:
    await store.ensure("facts")
    await store.open_period("turns", NOW, newest=NOW)
    for collection in ("facts", "turns_2026q4"):
        await cluster.ask("PUT", f"/collections/{collection}/shards", {"shard_key": "acme"})
    answers = await asyncio.gather(*(use(store, tenant) for tenant in ("acme", "beta", "ténant/☃", FALLBACK)))
    both, one = ["Bonn", "Rome"], ["Rome"]
    assert answers[0] == ["applied", 3, [2, 1], [both, both, both, one, both, one, ["turn"], ["turn"], both, one]]
    assert answers == [answers[0]] * 4
    for collection, each in (("facts", 2), ("turns_2026q4", 1)):
        assert await cluster.tenants_of(collection, "acme") == ["acme"] * each
        shared = sorted([FALLBACK, "beta", "ténant/☃"] * each)
        assert sorted(await cluster.tenants_of(collection, FALLBACK)) == shared


async def test_every_request_of_a_tenant_names_its_shard(part: GivenQdrant) -> None:
    with SeenBodies(part.url) as proxy:
        store = await open_store(proxy.url, embedder=EMBEDDER, sharding="tenant")
        await store.ensure("facts")
        for period in (LAST, NOW):
            await store.open_period("turns", period, newest=NOW)
        await use(store, "acme")
        await store.search("turns", tenant_id="acme", rankings=[LexicalRanking("hello")], limit=9)
        await store.close()
    parts = [(path, each) for path, body in proxy.seen for each in body.get("searches", [body])]
    assert {path.rpartition("/points")[2] for path, _ in parts} == {
        *("", "/vectors", "/payload", "/delete", "/scroll", "/query/batch", "/count")
    }
    of_all = [(path, each) for path, each in parts if "shard_key" not in each]
    # How often a word occurs is counted over all tenants, and without payloads.
    assert {path.rpartition("/points")[2] for path, _ in of_all} == {"/query/batch"}
    assert [each["with_payload"] for _, each in of_all] == [False] * 2
    named = [each["shard_key"] for _, each in parts if "shard_key" in each]
    assert named == [{"target": "acme", "fallback": FALLBACK}] * len(named)


async def test_a_tenant_moves_to_its_own_shard_while_it_is_written(store: PeriodStore, cluster: Cluster) -> None:
    await store.ensure("facts")
    await store.open_period("turns", NOW, newest=NOW)
    for tenant in ("acme", "beta"):
        points = [make_point((tenant, n), tenant=tenant, text=f"said {n}", session_place=n) for n in range(1_000)]
        await store.put("turns", points)
    written: dict[str, int] = {}
    is_over = asyncio.Event()

    async def write(name: str, change: Callable[[int], Awaitable[None]]) -> None:
        count = 0
        while not is_over.is_set():
            count += 1
            await change(count)
            written[name] = count

    async def insert(count: int) -> None:
        await store.insert("turns", [make_point(f"new {count}", session_place=1_000 + count)])

    async def change(count: int) -> None:
        await store.set_payload("turns", tenant_id="acme", ids=[make_id(("acme", 7))], fields={"count": count})

    async def delete(count: int) -> None:
        if count < 500:
            await store.delete("turns", tenant_id="acme", ids=[make_id(("acme", 500 + count))])

    async def rewindow(count: int) -> None:
        window = NewWindow(make_id(("acme", 8)), f"window{count}", DENSE)
        await store.rewindow("turns", tenant_id="acme", points=[window])

    kinds = (("insert", insert), ("change", change), ("delete", delete), ("rewindow", rewindow))
    writers = [asyncio.create_task(write(name, each)) for name, each in kinds]
    try:
        await wait_for(lambda: len(written) == len(kinds), "writes of each kind")
        before = dict(written)
        await cluster.move("turns_2026q4", "acme")
        during = dict(written)
        await wait_for(lambda: all(written[name] > during[name] for name in during), "writes to the own shard")
    finally:
        is_over.set()
        await asyncio.gather(*writers)
    assert all(during[name] > before[name] for name in before)  # it was written meanwhile

    async def read() -> list[object]:
        every = await store.select("turns", tenant_id="acme", order_by="session_place")
        last = await store.lexical("turns", tenant_id="acme", text=f"window{written['rewindow']}", limit=9)
        return [[(each.id, each.payload) for each in every], [each.id for each in last]]

    gone = {make_id(("acme", 500 + count)) for count in range(1, min(written["delete"], 499) + 1)}
    old = {make_id(("acme", n)) for n in range(1_000)}
    new = {make_id(f"new {count}") for count in range(1, written["insert"] + 1)}
    [every, last] = moved = await read()
    payloads: dict[str, Any] = dict(every)  # type: ignore[call-overload]
    assert payloads.keys() == (old | new) - gone
    assert payloads[make_id(("acme", 7))]["count"] == written["change"]
    assert last == [make_id(("acme", 8))]
    await cluster.clear("turns_2026q4", "acme")
    assert await read() == moved
    assert set(await cluster.tenants_of("turns_2026q4", FALLBACK)) == {"beta"}
    assert await store.count("turns", tenant_id="beta") == 1_000


async def test_a_new_quarter_begins_with_the_shards_of_the_last_one(store: PeriodStore, cluster: Cluster) -> None:
    await store.open_period("turns", LAST, newest=LAST)
    for tenant in ("acme", "beta"):
        await store.put("turns", [make_point((tenant, "old"), tenant=tenant, text="said", session_place=1)])
    await cluster.move("turns_2026q3", "acme")
    await cluster.ask("PUT", "/collections/turns_2026q3/shards", {"shard_key": "beta", "initial_state": "Partial"})
    await store.open_period("turns", NOW, newest=NOW)
    for tenant in ("acme", "beta"):
        await store.put("turns", [make_point((tenant, "new"), tenant=tenant, text="said", session_place=2)])
        assert await store.count("turns", tenant_id=tenant) == 2
        assert len(await store.lexical("turns", tenant_id=tenant, text="said", limit=9)) == 2
    assert await cluster.tenants_of("turns_2026q4", "acme") == ["acme"]
    assert await cluster.tenants_of("turns_2026q4", FALLBACK) == ["beta"]


async def test_a_quarter_that_is_begun_again_after_its_shards_were_created_has_each_once(
    store: PeriodStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*args: Any, **kwargs: Any) -> Any:
        raise EngineRefused(503, "Service internal error")

    await store.open_period("turns", LAST, newest=LAST)
    await cluster.move("turns_2026q3", "acme")
    with monkeypatch.context() as patch:
        patch.setattr(store._engine, "update_collection_aliases", away)
        with pytest.raises(Transient):
            await store.open_period("turns", NOW, newest=NOW)
    assert await store.periods("turns") == (LAST,)
    await store.open_period("turns", NOW, newest=NOW)
    await store.put("turns", [make_point("new", session_place=1)])
    assert await cluster.shards("turns_2026q4") == [("acme", "Active"), (FALLBACK, "Active")]
    assert await cluster.tenants_of("turns_2026q4", "acme") == ["acme"]


@pytest.mark.parametrize(("was", "asked"), [("auto", "tenant"), ("tenant", "auto")])
async def test_a_collection_keeps_its_sharding(part: GivenQdrant, was: Any, asked: Any) -> None:
    first = await open_store(part.url, embedder=EMBEDDER, sharding=was)
    await first.ensure("links")
    await first.close()
    second = await open_store(part.url, embedder=EMBEDDER, sharding=asked)
    for use_it in (second.ensure, second.exists):
        with pytest.raises(Fatal, match=f"MEMSTREAM_QDRANT_SHARDING={asked} needs .* MEMSTREAM_QDRANT_SHARDING={was}"):
            await use_it("links")
    with pytest.raises(Fatal):
        await second.put("links", [make_point("l", version=1)])
    await second.close()

"""All reads of a store ask the same number of replicas, and every write goes through its leader: seen over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from memstream.adapters.ports import LexicalRanking, NewWindow
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas.collections import Consistency
from memstream.schemas.periods import Period
from tests.support.qdrant import given_qdrant, has_real_qdrant, loopback_qdrant, real_qdrant_url
from tests.support.tcp_proxy import HttpProxy, Request
from tests.support.vector_backends import EMBEDDER, make_id, make_point, make_row, match

SERVERS = ("loopback", *(("qdrant",) if has_real_qdrant() else ()))


ASKED: dict[Consistency, str] = {"one": "1", "quorum": "quorum", "majority": "majority"}

LAST, NOW = Period(2026, 3), Period(2026, 4)
PLACES = [*((server, "one") for server in SERVERS), ("loopback", "quorum"), ("loopback", "majority")]


@pytest_asyncio.fixture(params=PLACES, ids="-".join)
async def seen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[PeriodStore, HttpProxy, str]]:
    """A store that reaches its server through a proxy that sees each request, and what its reads should ask."""
    place, consistency = request.param
    part = given_qdrant(real_qdrant_url()) if place == "qdrant" else loopback_qdrant(tmp_path)
    with part as server, HttpProxy(server.url) as proxy:
        store = await open_store(proxy.url, embedder=EMBEDDER, api_key=server.token, consistency=consistency)
        await store.ensure("facts", "turns")
        yield store, proxy, ASKED[consistency]
        await store.close()


def asked(request: Request, option: str) -> list[str]:
    return parse_qs(urlsplit(request.path).query).get(option, [])


def kind(request: Request) -> str:
    return urlsplit(request.path).path.partition("/points")[2]


@pytest.mark.slow
async def test_reads_before_and_after_a_conditional_write_ask_alike(seen: tuple[PeriodStore, HttpProxy, str]) -> None:
    store, proxy, consistency = seen
    before = len(proxy.requests())
    ids = [make_id("f")]
    await store.insert("facts", [make_row("f", 1, "c1", text="lives in Rome")])
    await store.put("facts", [make_row("g", 1, "c1", text="lives in Rome")])
    await store.get("facts", tenant_id="acme", ids=ids, with_dense=True)
    await store.select("facts", tenant_id="acme")
    await store.select("facts", tenant_id="acme", limit=200)
    await store.select("facts", tenant_id="acme", where=match("version", 1), order_by="version")
    await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0, 0], limit=9)
    await store.lexical("facts", tenant_id="acme", text="Rome", limit=9)
    await store.search("facts", tenant_id="acme", rankings=[LexicalRanking("Rome")], limit=9)
    await store.last("facts", tenant_id="acme", order_by="recorded_at", limit=9)
    row = make_row("f", 2, "c1", "c2")
    assert await store.compare_and_set("facts", row, expected_version=1, cause="c2") == "applied"
    await store.set_payload("facts", tenant_id="acme", ids=ids, fields={"retrieval_count": 1})
    await store.put("turns", [make_point("t")])
    await store.rewindow("turns", tenant_id="acme", points=[NewWindow(make_id("t"), "hello", [1, 0, 0, 0])])
    await store.delete("facts", tenant_id="acme", ids=ids)
    for period in (LAST, NOW):
        await store.open_period("turns", period, newest=NOW)
    await store.search("turns", tenant_id="acme", rankings=[LexicalRanking("hello")], limit=9)  # counts words first

    requests = [each for each in proxy.requests()[before:] if "/points" in each.path]
    reads = [each for each in requests if kind(each) in ("/scroll", "/query/batch")]
    writes = [each for each in requests if each not in reads]
    assert {kind(each) for each in writes} == {"", "/payload", "/vectors", "/delete"}
    assert len(reads) >= 9
    assert {(kind(each), *asked(each, "consistency")) for each in reads} == {
        ("/scroll", consistency),
        ("/query/batch", consistency),
    }
    assert {(*asked(each, "ordering"), *asked(each, "wait")) for each in writes} == {("strong", "true")}

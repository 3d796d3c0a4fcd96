"""The vector store under concurrent callers: results do not depend on batches.

The reference is the same store with one call after the other, so that each call is a batch of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import models

from memstream.adapters.ports import Payload, Point, StoredPoint, VectorStore
from memstream.adapters.vectors.engine import EngineRefused
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.errors import Fatal, Poison, StageError, Transient
from tests.support.vector_backends import FORMS, make_id, make_point, make_row, place

in_module_loop = pytest.mark.asyncio(loop_scope="module")
TENANTS = ("acme", "rival")
NAMES = ("p", "q", "r", "s")
Call = Callable[[VectorStore], Awaitable[Any]]


@pytest_asyncio.fixture(params=FORMS, scope="module", loop_scope="module")
async def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QdrantStore]:
    async with place(request.param, tmp_path_factory.mktemp("held")) as backend:
        store = await backend.open()
        await store.ensure("facts")
        yield store
        await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(opened: QdrantStore) -> QdrantStore:
    await emptied(opened)
    return opened


async def emptied(store: VectorStore) -> None:
    for tenant in TENANTS:
        ids = [each.id for each in await store.select("facts", tenant_id=tenant)]
        await store.delete("facts", tenant_id=tenant, ids=ids)


class Counted:
    """Counts the requests that reach the engine, by name."""

    def __init__(self, store: QdrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[str] = []
        for name in ("upsert", "scroll", "set_payload", "delete", "query_batch_points"):
            monkeypatch.setattr(store._engine, name, self._counting(name, getattr(store._engine, name)))

    def _counting(self, name: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.requests.append(name)
            return await real(*args, **kwargs)

        return call


# ------------------------------------------------------------------------------------------------ the property
names = st.sampled_from(NAMES)
tenants = st.sampled_from(TENANTS)
some_names = st.lists(names, max_size=3, unique=True)


@st.composite
def point(draw: st.DrawFn, name: str) -> Point:
    content = draw(st.sampled_from(["one", "two", "three"]))
    value: Any = draw(st.sampled_from([1, 1, 1, None, math.nan]))
    return make_row(name, draw(st.integers(1, 3)), "c0", tenant=draw(tenants), content=content, value=value)


@st.composite
def call(draw: st.DrawFn) -> tuple[str, Call]:
    """Draw a call, and its description for a failing example."""
    kind = draw(st.sampled_from(["insert", "put", "set", "delete", "swap", "swap", "get"]))
    tenant = draw(tenants)
    chosen = draw(some_names)
    ids = [make_id(name) for name in chosen]
    if kind in ("insert", "put"):
        points = [draw(point(name)) for name in chosen]
        told = f"{kind} {[(each.payload['tenant_id'], each.payload['content']) for each in points]} {chosen}"
        if kind == "insert":
            return told, lambda store: store.insert("facts", points)
        return told, lambda store: store.put("facts", points)
    if kind == "set":
        fields: Payload = {draw(st.sampled_from(["content", "extra", "tenant_id"])): draw(st.sampled_from(["x", None]))}
        return f"set {tenant} {chosen} {fields}", lambda store: store.set_payload(
            "facts", tenant_id=tenant, ids=ids, fields=fields
        )
    if kind == "delete":
        return f"delete {tenant} {chosen}", lambda store: store.delete("facts", tenant_id=tenant, ids=ids)
    if kind == "swap":
        name, cause = draw(names), draw(st.sampled_from(["c1", "c2", "c3"]))
        expected = draw(st.none() | st.integers(1, 3))
        row = make_row(name, (expected or 0) + 1, draw(st.sampled_from(["c0", cause])), cause, tenant=tenant, by=cause)
        return f"swap {tenant} {name} {expected} {cause}", lambda store: store.compare_and_set(
            "facts", row, expected_version=expected, cause=cause
        )
    return f"get {tenant} {chosen}", lambda store: store.get("facts", tenant_id=tenant, ids=ids)


async def outcome(asked: Awaitable[Any]) -> object:
    try:
        answer = await asked
    except StageError as error:
        return type(error)
    return {each: plain(found) for each, found in answer.items()} if isinstance(answer, dict) else answer


def plain(found: StoredPoint) -> object:
    return (found.id, found.payload)


async def state(store: VectorStore) -> list[object]:
    return [sorted(map(str, map(plain, await store.select("facts", tenant_id=tenant)))) for tenant in TENANTS]


Round = Sequence[tuple[str, Call]]


async def same_answers_and_same_store(store: VectorStore, reference: VectorStore, rounds: Sequence[Round]) -> None:
    await emptied(store)
    await emptied(reference)
    for each in rounds:
        # Reads that run beside writes may see them or not, so they run in a round of their own.
        for part in ([c for c in each if not c[0].startswith("get")], [c for c in each if c[0].startswith("get")]):
            answers = await asyncio.gather(*(outcome(asked(store)) for _, asked in part))
            expected = [await outcome(asked(reference)) for _, asked in part]
            assert list(zip([told for told, _ in part], answers, strict=True)) == list(
                zip([told for told, _ in part], expected, strict=True)
            )
        assert await state(store) == await state(reference)


@pytest.mark.slow
def test_concurrent_calls_answer_and_leave_what_the_same_calls_do_one_after_the_other(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:

        async def opened() -> list[tuple[Any, QdrantStore]]:
            stores = []
            for name in ("concurrent", "reference"):
                (tmp_path / name).mkdir()
                entered = place("embedded", tmp_path / name)
                store = await (await entered.__aenter__()).open()
                await store.ensure("facts")
                stores.append((entered, store))
            return stores

        stores = runner.run(opened())

        @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
        @given(st.lists(st.lists(call(), min_size=1, max_size=8), min_size=1, max_size=4))
        def check(rounds: list[list[tuple[str, Call]]]) -> None:
            runner.run(same_answers_and_same_store(stores[0][1], stores[1][1], rounds))

        async def closed() -> None:
            for entered, store in stores:
                await store.close()
                await entered.__aexit__(None, None, None)

        try:
            check()
        finally:
            runner.run(closed())


# ------------------------------------------------------------------------------------------------ what is shared
@in_module_loop
async def test_writes_and_reads_of_many_events_and_tenants_are_few_requests(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(store, monkeypatch)
    shards = len(TENANTS) if store._shards.by_tenant else 1  # a request with points is for one shard
    who = [(n, TENANTS[n % 2]) for n in range(40)]

    await asyncio.gather(*(store.insert("facts", [make_row(n, 1, "c1", tenant=tenant)]) for n, tenant in who))
    assert counted.requests == ["upsert"] * shards

    counted.requests.clear()
    rows = await asyncio.gather(*(store.get("facts", tenant_id=tenant, ids=[make_id(n)]) for n, tenant in who))
    assert counted.requests == ["scroll"] * shards
    assert [[*row] for row in rows] == [[make_id(n)] for n, _ in who]

    counted.requests.clear()
    of_tenants = await asyncio.gather(
        *(store.select("facts", tenant_id=tenant) for tenant in TENANTS),
        *(store.nearest("facts", tenant_id=tenant, dense=[1, 0, 0, 0], limit=3) for tenant in TENANTS),
        *(store.lexical("facts", tenant_id=tenant, text="nothing has these", limit=3) for tenant in TENANTS),
    )
    assert counted.requests == ["query_batch_points"]
    assert [{each.payload["tenant_id"] for each in found} for found in of_tenants[:2]] == [{each} for each in TENANTS]
    assert [len(found) for found in of_tenants] == [20, 20, 3, 3, 0, 0]

    counted.requests.clear()
    swaps = [(make_row(n, 2 + n % 3, "c1", "c2", tenant=tenant), 1 + n % 3 if n % 4 else None) for n, tenant in who]
    results = await asyncio.gather(
        *(store.compare_and_set("facts", row, expected_version=expected, cause="c2") for row, expected in swaps)
    )
    assert counted.requests == ["upsert"] * (1 + shards) + ["scroll"] * shards  # only one tenant expects no row
    assert results == ["applied" if expected == 1 else "conflict" for _, expected in swaps]

    counted.requests.clear()
    await asyncio.gather(*(store.put("facts", [make_point(n, tenant=tenant)]) for n, tenant in who))
    await asyncio.gather(*(store.delete("facts", tenant_id=tenant, ids=[make_id(n)]) for n, tenant in who))
    assert counted.requests == ["upsert"] * shards + ["delete"] * shards
    assert await state(store) == [[], []]


@in_module_loop
async def test_one_id_asked_for_by_two_tenants_at_once_is_its_owners_alone(store: QdrantStore) -> None:
    await store.put("facts", [make_point("p", content="mine")])
    one = make_id("p")
    mine, theirs = await asyncio.gather(*(store.get("facts", tenant_id=tenant, ids=[one]) for tenant in TENANTS))
    assert mine[one].payload["content"] == "mine"
    assert theirs == {}
    await asyncio.gather(
        store.put("facts", [make_point("p", tenant="rival", content="theirs")]),
        store.put("facts", [make_point("q", content="mine too")]),
        store.delete("facts", tenant_id="rival", ids=[one]),
        store.compare_and_set("facts", make_row("p", 1, "c", tenant="rival"), expected_version=None, cause="c"),
    )
    assert (await store.get("facts", tenant_id="acme", ids=[one]))[one].payload["content"] == "mine"
    assert await store.count("facts", tenant_id="rival") == 0


@in_module_loop
async def test_calls_about_one_point_keep_their_order(store: QdrantStore) -> None:
    one = make_id("p")
    writes: list[Awaitable[Any]] = []
    for n in range(10):
        writes += [
            store.put("facts", [make_point("p", n=n)]),
            store.set_payload("facts", tenant_id="acme", ids=[one], fields={"after": n}),
            store.put("facts", [make_point(("other", n))]),
        ]
    await asyncio.gather(*writes)
    [row] = (await store.get("facts", tenant_id="acme", ids=[one])).values()
    assert row.payload == {"tenant_id": "acme", "n": 9, "after": 9}
    assert await store.count("facts", tenant_id="acme") == 11


# ------------------------------------------------------------------------------------------------ whose error
@in_module_loop
async def test_what_one_caller_has_wrong_is_refused_to_it_alone(store: QdrantStore) -> None:
    answers = await asyncio.gather(
        store.put("facts", [make_point("p")]),
        store.put("facts", [make_point("q", confidence=math.nan)]),  # refused before it joins a batch
        store.put("facts", [Point(id="no uuid", payload={"tenant_id": "acme"})]),  # refused by the engine
        store.put("facts", [make_point("r", tenant="rival")]),
        store.delete("facts", tenant_id="acme", ids=["no uuid"]),  # no id of ours: there is nothing to delete
        store.delete("facts", tenant_id="acme", ids=[make_id("absent")]),
        return_exceptions=True,
    )
    assert [type(each) for each in answers] == [type(None), Poison, Fatal, type(None), type(None), type(None)]
    assert [await store.count("facts", tenant_id=tenant) for tenant in TENANTS] == [1, 1]


@in_module_loop
async def test_a_caller_that_is_cancelled_leaves_the_others_their_write(store: QdrantStore) -> None:
    tasks = [asyncio.create_task(store.put("facts", [make_point(name)])) for name in NAMES]
    await asyncio.sleep(0)
    tasks[1].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each is None for each in answers] == [True, False, True, True]
    assert await store.count("facts", tenant_id="acme") in (3, 4)


@in_module_loop
async def test_when_qdrant_is_away_everyone_is_told_and_may_try_again(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*args: Any, **kwargs: Any) -> Any:
        raise EngineRefused(503, "Service internal error")

    swaps = [make_row(name, 1, "c") for name in NAMES]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(
            *(store.compare_and_set("facts", row, expected_version=None, cause="c") for row in swaps),
            return_exceptions=True,
        )

    with monkeypatch.context() as patch:
        patch.setattr(store._engine, "upsert", away)
        assert [type(each) for each in await all_at_once()] == [Transient] * 4
    assert await all_at_once() == ["applied"] * 4
    assert await all_at_once() == ["applied"] * 4


@in_module_loop
async def test_a_read_of_everything_beside_reads_of_one(store: QdrantStore) -> None:
    await store.put("facts", [make_point(n) for n in range(150)])
    ids = [make_id(n) for n in range(150)]
    answers = await asyncio.gather(
        store.get("facts", tenant_id="acme", ids=ids),
        store.get("facts", tenant_id="acme", ids=ids[:1], with_dense=True),
        *(store.get("facts", tenant_id="acme", ids=[each]) for each in ids),
    )
    assert set(answers[0]) == set(ids)
    assert answers[1][ids[0]].dense is not None
    assert answers[2][ids[0]].dense is None
    assert [[*each] for each in answers[2:]] == [[each] for each in ids]
    only = models.Filter(must=[models.HasIdCondition(has_id=list(ids[:3]))])
    assert len(await store.select("facts", tenant_id="acme", where=only)) == 3


@in_module_loop
async def test_a_row_that_another_writer_changes_in_between_is_a_conflict_for_its_caller_alone(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put("facts", [make_row(name, 1, "c1") for name in NAMES])
    real = store._engine.upsert

    async def raced(collection: str, points: Any, **options: Any) -> Any:
        only = models.Filter(must=[models.HasIdCondition(has_id=[make_id("q")])])
        shard = options["shard_key_selector"]
        fields = {"version": 2, "by": "another"}
        await store._engine.set_payload(collection, fields, only, wait=True, shard_key_selector=shard)
        return await real(collection, points, **options)

    monkeypatch.setattr(store._engine, "upsert", raced)
    results = await asyncio.gather(
        *(
            store.compare_and_set("facts", make_row(name, 2, "c1", "c2"), expected_version=1, cause="c2")
            for name in NAMES
        )
    )
    assert results == ["applied", "conflict", "applied", "applied"]
    rows = await store.get("facts", tenant_id="acme", ids=[make_id(name) for name in NAMES])
    assert rows[make_id("q")].payload["by"] == "another"

"""The contract of `VectorStore`: on the embedded engine, over the loopback server, and on a Qdrant server if there is
one.

Collections are created once for each of these backends and emptied before each test. test_vector_collections.py tests
collections themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.ports import Payload, Point, StoredPoint, VectorStore
from memstream.adapters.vectors.conditions import has_time
from memstream.schemas.errors import Fatal, Poison
from tests.support.vector_backends import FORMS, make_id, make_point, make_row, match, place

NAN = float("nan")
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(params=FORMS, scope="module", loop_scope="module")
async def ensured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[VectorStore]:
    async with place(request.param, tmp_path_factory.mktemp("held")) as backend:
        store = await backend.open()
        await store.ensure()
        yield store
        await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(ensured: VectorStore) -> VectorStore:
    for collection in ("turns", "working", "episodes", "facts"):
        for tenant in ("acme", "rival", "ténant/☃"):
            ids = [each.id for each in await ensured.select(collection, tenant_id=tenant)]
            await ensured.delete(collection, tenant_id=tenant, ids=ids)
    return ensured


def nested(depth: int) -> Any:
    value: Any = 1
    for n in range(depth):
        value = [value] if n % 2 else {"x": value}
    return value


def names(found: Sequence[StoredPoint], names_: Sequence[object]) -> set[object]:
    """The names of the points that were found."""
    known = {make_id(name): name for name in names_}
    return {known[each.id] for each in found}


# ------------------------------------------------------------------------------------------------ isolation
async def test_no_read_shows_another_tenants_points(store: VectorStore) -> None:
    for tenant in ("acme", "rival"):
        await store.put(
            "facts",
            [make_point((tenant, i), tenant=tenant, text="works at Stripe", subject="user", version=i) for i in (1, 2)],
        )
    ids = [make_id((tenant, i)) for tenant in ("acme", "rival") for i in (1, 2)]
    theirs = match("tenant_id", "rival")
    widened = models.Filter(should=[theirs, match("subject", "user")])

    for where in (None, match("subject", "user"), widened):
        answers = [
            list((await store.get("facts", tenant_id="acme", ids=ids)).values()),
            await store.select("facts", tenant_id="acme", where=where),
            await store.select("facts", tenant_id="acme", where=where, order_by="version"),
            await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0, 0], where=where, limit=10),
            await store.lexical("facts", tenant_id="acme", text="stripe", where=where, limit=10),
        ]
        assert [sorted(str(each.payload["tenant_id"]) for each in answer) for answer in answers] == [["acme"] * 2] * 5
        assert await store.count("facts", tenant_id="acme", where=where) == 2
    assert await store.select("facts", tenant_id="acme", where=theirs) == []
    assert await store.count("facts", tenant_id="stranger") == 0


async def test_no_write_changes_another_tenants_point_even_under_its_id(store: VectorStore) -> None:
    await store.put("facts", [make_row("one", 1, "c1", content="mine")])
    one = make_id("one")

    await store.put("facts", [make_point("one", tenant="rival", content="theirs")])
    await store.insert("facts", [make_point("one", tenant="rival", content="theirs")])
    await store.set_payload("facts", tenant_id="rival", ids=[one], fields={"content": "theirs"})
    await store.delete("facts", tenant_id="rival", ids=[one])
    for expected in (None, 1):
        stolen = make_row("one", 2, "c2", tenant="rival", content="theirs")
        assert await store.compare_and_set("facts", stolen, expected_version=expected, cause="c2") == "conflict"

    assert (await store.get("facts", tenant_id="acme", ids=[one]))[one].payload["content"] == "mine"
    assert await store.get("facts", tenant_id="rival", ids=[one]) == {}


async def test_a_query_without_a_tenant_is_refused(store: VectorStore) -> None:
    with pytest.raises(Fatal, match="tenant"):
        await store.select("facts", tenant_id="")
    with pytest.raises(Fatal, match="tenant_id"):
        await store.put("facts", [Point(id=make_id("x"), payload={"content": "nobody's"})])
    with pytest.raises(Fatal, match="tenant_id"):
        await store.set_payload("facts", tenant_id="acme", ids=[make_id("x")], fields={"tenant_id": "rival"})


# ------------------------------------------------------------------------------------------------ writes
async def test_insert_leaves_what_stands(store: VectorStore) -> None:
    await store.insert("episodes", [make_point("e1", content="first")])
    await store.insert("episodes", [make_point("e1", content="second"), make_point("e2", content="new")])

    rows = await store.get("episodes", tenant_id="acme", ids=[make_id("e1"), make_id("e2")])
    assert {str(row.payload["content"]) for row in rows.values()} == {"first", "new"}


async def test_put_replaces_whole(store: VectorStore) -> None:
    await store.put(
        "working", [Point(id=make_id("w"), payload={"tenant_id": "acme", "content": "old", "pinned": True})]
    )
    await store.put("working", [Point(id=make_id("w"), payload={"tenant_id": "acme", "content": "new"})])

    rows = await store.select("working", tenant_id="acme")
    assert [row.payload for row in rows] == [{"tenant_id": "acme", "content": "new"}]


async def test_a_payload_comes_back_as_it_went(store: VectorStore) -> None:
    payload: Payload = {
        "tenant_id": "ténant/☃",
        "null": None,
        "nested": {"null": None, "deep": {"list": [1, None, "x", {"y": []}]}},
        "empty": [],
        "object": {},
        "integer": 2**53 + 1,
        "float": 0.1,
        "whole": 1.0,
        "true": True,
        "text": 'quotes " \\ \n \x00 \u202e 👩‍👩‍👧',
        "time": "2026-11-20T10:00:00.123456Z",
    }
    await store.put("facts", [Point(id=make_id("p"), payload=payload)])

    [row] = (await store.get("facts", tenant_id="ténant/☃", ids=[make_id("p")])).values()
    assert row.payload == payload
    assert row.payload["true"] is True


async def test_set_payload_writes_single_fields_and_leaves_absent_points_absent(store: VectorStore) -> None:
    await store.put("episodes", [make_point("e1", content="kept", strength=1.0)])
    ids = [make_id("e1"), make_id("absent")]
    await store.set_payload("episodes", tenant_id="acme", ids=ids, fields={"strength": 0.5, "tags": ["a"]})

    rows = await store.get("episodes", tenant_id="acme", ids=ids)
    assert [row.payload for row in rows.values()] == [
        {"tenant_id": "acme", "content": "kept", "strength": 0.5, "tags": ["a"]}
    ]
    assert await store.count("episodes", tenant_id="acme") == 1


async def test_a_field_set_to_null_is_removed_and_both_count_as_empty(store: VectorStore) -> None:
    await store.put("facts", [make_point("a", valid_to="2026-11-20T10:00:00Z"), make_point("b", valid_to=None)])
    await store.set_payload("facts", tenant_id="acme", ids=[make_id("a")], fields={"valid_to": None})

    rows = await store.get("facts", tenant_id="acme", ids=[make_id("a"), make_id("b")])
    assert "valid_to" not in rows[make_id("a")].payload
    assert rows[make_id("b")].payload["valid_to"] is None
    open_ = models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="valid_to"))])
    assert await store.count("facts", tenant_id="acme", where=open_) == 2


async def test_delete_takes_the_named_points_only(store: VectorStore) -> None:
    await store.put("turns", [make_point(i, text="hello there") for i in range(3)])
    await store.delete("turns", tenant_id="acme", ids=[make_id(0), make_id("absent")])

    assert names(await store.select("turns", tenant_id="acme"), range(3)) == {1, 2}
    assert names(await store.lexical("turns", tenant_id="acme", text="hello", limit=9), range(3)) == {1, 2}


@pytest.mark.parametrize(
    ("point", "kind", "said"),
    [
        (make_point("x", confidence=NAN), Poison, "NaN"),
        (make_point("x", metadata={"deep": [float("inf")]}), Poison, "NaN"),
        (make_point("x", metadata={"id": -(2**63) - 1}), Poison, "integer beyond 64 bits"),
        (make_point("x", metadata=[{"id": 2**63}]), Poison, "integer beyond 64 bits"),
        (make_point("x", metadata=nested(64)), Poison, "nested deeper than 64 levels"),
        (make_point("x", metadata=nested(5_000)), Poison, "nested deeper than 64 levels"),
        (make_point("x", at=object()), Fatal, "not JSON"),
        (Point(id=make_id("x"), payload={"tenant_id": "acme"}, dense=[NAN, 0, 0, 0]), Fatal, "NaN"),
        (Point(id=make_id("x"), payload={"tenant_id": "acme"}, dense=[1, 0]), Fatal, "2 dimensions.* makes 4"),
        (make_point("x", content="lone \ud800 surrogate"), Poison, "surrogate"),
    ],
)
async def test_what_no_engine_should_see_is_refused(
    store: VectorStore, point: Point, kind: type[Exception], said: str
) -> None:
    good = make_point("good")
    with pytest.raises(kind, match=said):
        await store.put("facts", [good, point])
    assert await store.count("facts", tenant_id="acme") == 0, "nothing of a batch is written when one is refused"


async def test_the_largest_values_are_read_as_they_were_written(store: VectorStore) -> None:
    metadata = {"most": 2**63 - 1, "least": -(2**63), "deep": nested(62), "wide": [[n] for n in range(200)]}
    await store.put("facts", [make_point("x", metadata=metadata)])
    [found] = await store.select("facts", tenant_id="acme")
    assert found.payload["metadata"] == metadata
    with pytest.raises(Poison, match="nested deeper"):
        await store.set_payload("facts", tenant_id="acme", ids=[found.id], fields={"metadata": nested(64)})


async def test_many_points_of_several_tenants_go_in_batches(store: VectorStore) -> None:
    points = [make_point((i, tenant), tenant=tenant) for i in range(250) for tenant in ("acme", "rival")]
    await store.put("facts", points)
    await store.insert("facts", points[::-1])
    assert [await store.count("facts", tenant_id=tenant) for tenant in ("acme", "rival")] == [250, 250]


async def test_writing_nothing_is_nothing(store: VectorStore) -> None:
    await store.put("facts", [])
    await store.insert("facts", [])
    await store.delete("facts", tenant_id="acme", ids=[])
    await store.set_payload("facts", tenant_id="acme", ids=[], fields={"strength": 1.0})
    assert await store.get("facts", tenant_id="acme", ids=[]) == {}


# ------------------------------------------------------------------------------------------------ compare and set
async def test_compare_and_set_in_every_situation(store: VectorStore) -> None:
    cas = store.compare_and_set
    assert await cas("facts", make_row("f", 1, "c1"), expected_version=None, cause="c1") == "applied"
    assert await cas("facts", make_row("f", 1, "c1"), expected_version=None, cause="c1") == "applied"
    assert await cas("facts", make_row("f", 1, "c9"), expected_version=None, cause="c9") == "conflict"
    assert await cas("facts", make_row("f", 2, "c1", "c2", content="two"), expected_version=1, cause="c2") == "applied"
    assert await cas("facts", make_row("f", 2, "c1", "c2"), expected_version=1, cause="c2") == "applied"
    assert await cas("facts", make_row("f", 2, "c1", "c3"), expected_version=1, cause="c3") == "conflict"
    assert await cas("facts", make_row("f", 9, "c3"), expected_version=8, cause="c3") == "conflict"
    # computed again from the row that the write has changed: its cause is applied once
    assert await cas("facts", make_row("f", 3, "c1", "c2", content="3"), expected_version=2, cause="c2") == "applied"

    [row] = await store.select("facts", tenant_id="acme")
    assert (row.payload["version"], row.payload["content"], row.payload["applied"]) == (2, "two", ["c1", "c2"])


async def test_compare_and_set_never_brings_an_erased_row_back(store: VectorStore) -> None:
    await store.put("facts", [make_row("f", 1, "c1")])
    await store.delete("facts", tenant_id="acme", ids=[make_id("f")])
    assert await store.compare_and_set("facts", make_row("f", 2, "c2"), expected_version=1, cause="c2") == "conflict"
    assert await store.count("facts", tenant_id="acme") == 0


async def test_compare_and_set_wants_its_cause_in_the_row(store: VectorStore) -> None:
    with pytest.raises(Fatal, match="c2"):
        await store.compare_and_set("facts", make_row("f", 1, "c1"), expected_version=None, cause="c2")


COUNTED = {"strength": 1.0, "retrieval_count": 0, "last_accessed_at": None}


async def test_compare_and_set_leaves_what_another_stage_has_counted(store: VectorStore) -> None:
    """The writer read the row before the recall was counted. Its vector and its text change all the same."""
    counts: Payload = {"strength": 0.5, "retrieval_count": 7, "last_accessed_at": "2026-11-20T10:00:00Z"}
    await store.put("facts", [make_row("f", 1, "c1", text="lives in Lyon", **COUNTED), make_row("old", 1, "c1")])
    ids = [make_id("f"), make_id("old")]

    for version in (2, 3):
        await store.set_payload("facts", tenant_id="acme", ids=ids[:1], fields=counts)
        new = make_row("f", version, "c1", f"c{version}", text=f"lives in Rome {version}", **COUNTED, content=version)
        cause = f"c{version}"
        assert await store.compare_and_set("facts", new, expected_version=version - 1, cause=cause) == "applied"
        row = (await store.get("facts", tenant_id="acme", ids=ids))[ids[0]].payload
        assert {field: row[field] for field in counts} == counts
        assert (row["version"], row["content"]) == (version, version)
        assert await store.lexical("facts", tenant_id="acme", text="Lyon", limit=9) == []
        counts |= {"retrieval_count": 8, "last_accessed_at": "2026-11-20T11:00:00.5Z"}

    # of a row without these fields none are made up
    new = make_row("old", 2, "c1", "c2", **COUNTED)
    assert await store.compare_and_set("facts", new, expected_version=1, cause="c2") == "applied"
    assert not COUNTED.keys() & (await store.get("facts", tenant_id="acme", ids=ids))[ids[1]].payload.keys()


async def test_compare_and_set_among_counts_loses_neither(store: VectorStore) -> None:
    """One writer raises versions while another one counts, as the reflector and consolidation do."""
    one = make_id("f")
    await store.put("facts", [make_row("f", 1, "c1", **COUNTED)])
    rounds = 40

    async def count() -> None:
        for number in range(1, rounds + 1):
            row = (await store.get("facts", tenant_id="acme", ids=[one]))[one].payload
            recalls = int(str(row["retrieval_count"]))
            assert recalls == number - 1, "a count is gone"
            fields: Payload = {"retrieval_count": recalls + 1, "last_accessed_at": f"2026-11-20T10:00:{number:02}Z"}
            await store.set_payload("facts", tenant_id="acme", ids=[one], fields=fields)

    async def change() -> None:
        for version in range(2, rounds + 2):
            read = (await store.get("facts", tenant_id="acme", ids=[one]))[one].payload
            fields = {field: read[field] for field in COUNTED if field in read}
            new = make_row("f", version, f"c{version}", **fields)
            cause = f"c{version}"
            assert await store.compare_and_set("facts", new, expected_version=version - 1, cause=cause) == "applied"

    await asyncio.gather(count(), change())
    row = (await store.get("facts", tenant_id="acme", ids=[one]))[one].payload
    assert (row["retrieval_count"], row["version"]) == (rounds, rounds + 1)


async def test_concurrent_writers_lose_nothing_and_double_nothing(store: VectorStore) -> None:
    """8 writers with 12 causes each; every cause has two writers and is applied exactly once."""
    causes = [f"cause-{i}" for i in range(48)]
    one = make_id("f")

    async def apply(cause: str) -> None:
        while True:
            row = (await store.get("facts", tenant_id="acme", ids=[one])).get(one)
            version = int(str(row.payload["version"])) if row else 0
            applied = [str(each) for each in row.payload["applied"]] if row else []  # type: ignore[union-attr]
            count = int(str(row.payload["count"])) if row else 0
            new = make_row("f", version + 1, *applied, cause, count=count + 1)
            expected = version if row else None
            if await store.compare_and_set("facts", new, expected_version=expected, cause=cause) != "conflict":
                return
            await asyncio.sleep(0)

    async def writer(number: int) -> None:
        for cause in causes[number % 4 :: 4]:
            await apply(cause)

    await asyncio.gather(*(writer(number) for number in range(8)))
    [row] = await store.select("facts", tenant_id="acme")
    assert row.payload["count"] == row.payload["version"] == 48
    assert sorted(row.payload["applied"]) == sorted(causes)  # type: ignore[arg-type, type-var]


# ------------------------------------------------------------------------------------------------ reads
async def test_select_pages_through_everything_in_order(store: VectorStore) -> None:
    """2 803 rows. 2 201 of them have the same value (more than two pages), and three have none and come last."""
    values: list[int | None] = [*range(600), *[300] * 2_200, None, None, None]
    await store.insert("turns", [make_point(i, message_index=value) for i, value in enumerate(values)])

    assert len(await store.select("turns", tenant_id="acme")) == 2_803
    assert len(await store.select("turns", tenant_id="acme", limit=1_500)) == 1_500
    ordered = sorted(value for value in values if value is not None)
    for direction, expected in (("asc", ordered), ("desc", ordered[::-1])):
        rows = await store.select("turns", tenant_id="acme", order_by="message_index", direction=direction)  # type: ignore[arg-type]
        assert [row.payload["message_index"] for row in rows] == [*expected, None, None, None]
        assert len({row.id for row in rows}) == 2_803
        some = await store.select(
            "turns",
            tenant_id="acme",
            order_by="message_index",
            direction=direction,  # type: ignore[arg-type]
            limit=2_600,
        )
        assert [row.payload["message_index"] for row in some] == expected[:2_600]
    assert len(await store.get("turns", tenant_id="acme", ids=[make_id(i) for i in range(2_803)])) == 2_803


@pytest.mark.parametrize("order_by", [None, "version"])
async def test_of_a_payload_the_fields_that_are_wanted(store: VectorStore, order_by: str | None) -> None:
    """A record without the field is returned too, and every record has its tenant."""
    evidence = [{"turn_id": "t1", "quote": "as said"}, {"turn_id": "t2", "quote": "as said again"}]
    await store.put("facts", [make_point(1, version=1, content="x", evidence=evidence), make_point(2, state="active")])

    async def read(*fields: str) -> list[Payload]:
        found = await store.select("facts", tenant_id="acme", order_by=order_by, fields=fields)
        return sorted((each.payload for each in found), key=len, reverse=True)

    mine = {"tenant_id": "acme"}
    assert await read("content", "nothing") == [mine | {"content": "x"}, mine]
    assert await read("evidence[].turn_id") == [mine | {"evidence": [{"turn_id": "t1"}, {"turn_id": "t2"}]}, mine]
    assert await read() == [mine, mine]


async def test_times_are_ordered_as_times(store: VectorStore) -> None:
    """As text, `10:00:00.5Z` would come before `10:00:00Z`, and `+01:00` would count as later."""
    times = [
        "2026-11-20T10:00:00Z",
        "2026-11-20T10:00:00.000001Z",
        "2026-11-20T10:00:00.5Z",
        "2026-11-20T12:00:00+01:00",
    ]
    await store.put("turns", [make_point(i, occurred_at=time) for i, time in enumerate(times)])
    rows = await store.select("turns", tenant_id="acme", order_by="occurred_at", direction="desc", limit=3)
    assert [row.payload["occurred_at"] for row in rows] == times[:0:-1]


def field(key: str, **condition: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, **condition)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (match("state", "active"), {0, 1}),
        (models.Filter(must_not=[field("state", match=models.MatchValue(value="active"))]), {2, 3}),
        (models.Filter(must=field("state", match=models.MatchAny(any=["active", "pending"]))), {0, 1, 2}),
        (models.Filter(must=[field("state", match=models.MatchExcept(**{"except": ["active"]}))]), {2}),
        (models.Filter(must=[field("version", range=models.Range(gt=0, lte=2))]), {1, 2}),
        (models.Filter(must=[field("version", match=models.MatchValue(value=3))]), {3}),
        (
            models.Filter(must=[field("valid_from", range=models.DatetimeRange(lt="2026-11-21T00:00:00Z"))]),  # type: ignore[arg-type]
            {0, 1},
        ),
        (models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="state"))]), {3}),
        (models.Filter(must=[models.IsNullCondition(is_null=models.PayloadField(key="predicate"))]), {0}),
        (models.Filter(must=[field("predicate", is_empty=True)]), {0, 1, 2, 3}),
        (models.Filter(must=[models.HasIdCondition(has_id=[make_id(1), make_id(7)])]), {1}),
        (match("evidence[].observation_id", "o1"), {1, 2}),
        (
            models.Filter(
                must=[models.NestedCondition(nested=models.Nested(key="evidence", filter=match("turn_id", "t2")))]
            ),
            {2},
        ),
        (models.Filter(must=[has_time("pinned_at")]), {1}),
        (match("tags", "b"), {1, 2}),
        (
            models.Filter(should=[match("state", "pending"), models.Filter(must=[match("version", 0)])]),
            {0, 2},
        ),
        (
            models.Filter(
                min_should=models.MinShould(
                    conditions=[match("state", "active"), match("version", 1), match("tags", "b")], min_count=2
                )
            ),
            {1},
        ),
    ],
)
async def test_filters_mean_the_same_everywhere(store: VectorStore, where: models.Filter, expected: set[int]) -> None:
    evidence = [{"observation_id": "o1", "turn_id": "t1"}, {"observation_id": "o2", "turn_id": "t2"}]
    rows: list[dict[str, Any]] = [
        {"state": "active", "predicate": None, "tags": ["a"], "evidence": [], "pinned_at": None},
        {"state": "active", "tags": ["a", "b"], "evidence": evidence[:1], "pinned_at": "2026-11-20T10:00:00Z"},
        {"state": "pending", "tags": ["b"], "evidence": evidence},
        {"tags": []},
    ]
    await store.put(
        "facts",
        [
            make_point(
                i, version=i, valid_from=f"2026-11-20T{12 * i % 24:02}:00:00Z".replace("20T", f"{20 + i // 2}T"), **row
            )
            for i, row in enumerate(rows)
        ],
    )
    assert names(await store.select("facts", tenant_id="acme", where=where), range(4)) == expected
    assert await store.count("facts", tenant_id="acme", where=where) == len(expected)
    assert (
        names(await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0, 0], where=where, limit=9), range(4))
        == expected
    )


async def test_nearest_is_by_cosine_best_first(store: VectorStore) -> None:
    vectors = {"same": [2.0, 0, 0, 0], "near": [1.0, 1.0, 0, 0], "far": [0, 0, 1.0, 0], "none": None}
    await store.put(
        "facts",
        [Point(id=make_id(name), payload={"tenant_id": "acme"}, dense=dense) for name, dense in vectors.items()],
    )
    found = await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0, 0], limit=5)
    assert [each.id for each in found] == [make_id(name) for name in ("same", "near", "far")]
    assert [each.score for each in found] == pytest.approx([1.0, 2**-0.5, 0.0], abs=1e-6)
    assert len(await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0, 0], limit=1)) == 1

    with pytest.raises(Fatal, match=r"3 dimensions.* makes 4"):
        await store.nearest("facts", tenant_id="acme", dense=[1, 0, 0], limit=1)
    with pytest.raises(Fatal, match="no vectors"):
        await store.nearest("working", tenant_id="acme", dense=[1, 0, 0, 0], limit=1)


async def test_a_vector_comes_back_only_when_asked_for(store: VectorStore) -> None:
    await store.put("facts", [Point(id=make_id("x"), payload={"tenant_id": "acme"}, dense=[0.6, 0.8, 0, 0], text="hi")])
    [without] = (await store.get("facts", tenant_id="acme", ids=[make_id("x")])).values()
    [with_] = (await store.get("facts", tenant_id="acme", ids=[make_id("x")], with_dense=True)).values()
    assert without.dense is None
    assert with_.dense == pytest.approx([0.6, 0.8, 0, 0], abs=1e-6)


async def test_lexical_finds_by_words_and_their_forms(store: VectorStore) -> None:
    texts = ["She works at Stripe in Dublin", "Stripe, Stripe and again Stripe", "He plays the cello", "the and of", ""]
    await store.put("turns", [make_point(i, text=text, role="user") for i, text in enumerate(texts)])
    found = await store.lexical("turns", tenant_id="acme", text="who was working in dublin?", limit=5)
    assert names(found, range(5)) == {0}
    assert found[0].score is not None
    assert found[0].score > 0
    both = await store.lexical("turns", tenant_id="acme", text="stripe", limit=5)
    assert [each.id for each in both] == [make_id(1), make_id(0)]
    assert await store.lexical("turns", tenant_id="acme", text="the of", limit=5) == []
    assert await store.lexical("turns", tenant_id="acme", text="", limit=5) == []
    assert (
        await store.lexical("turns", tenant_id="acme", text="stripe", where=match("role", "assistant"), limit=5) == []
    )


async def test_a_word_that_a_question_repeats_weighs_no_more(store: VectorStore) -> None:
    """Questions are encoded as questions. Encoded as documents, the repeated word would win. (No other test uses these
    words, because deleted texts still count in the inverse document frequency.)"""
    await store.put("turns", [make_point(i, text=text) for i, text in enumerate(("plays bassoon", "plays badminton"))])
    found = await store.lexical("turns", tenant_id="acme", text="bassoon, bassoon, bassoon or badminton?", limit=5)
    assert names(found, range(2)) == {0, 1}
    assert found[0].score == pytest.approx(found[1].score)


async def test_an_id_that_is_none_of_ours_is_absent(store: VectorStore) -> None:
    point = make_point("a")
    await store.put("facts", [point])
    others = [
        "nope",
        "1",
        "",
        "mt_x",
        "x" * 100_000,
        point.id.upper(),
        point.id.replace("-", ""),
        f"urn:uuid:{point.id}",
    ]
    assert await store.get("facts", tenant_id="acme", ids=others) == {}
    assert set(await store.get("facts", tenant_id="acme", ids=[*others, point.id])) == {point.id}
    await store.set_payload("facts", tenant_id="acme", ids=others, fields={"content": "x"})
    await store.delete("facts", tenant_id="acme", ids=others)
    assert (await store.get("facts", tenant_id="acme", ids=[point.id]))[point.id].payload == point.payload

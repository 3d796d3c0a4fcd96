"""The recorder over the real engine: it stores the exact words of every turn, and searches find them. No model."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import DenseRanking, EmbedderIdentity, NewWindow, Point, StoredPoint
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.agents.recorder.stage import Recorder
from memstream.memory.policies import RoutingPolicy, SessionLogPolicy
from memstream.memory.recall.context_windows import NEIGHBOUR_MAX
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.collections import LABELS
from memstream.schemas.collections import TURNS as COLLECTION
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.topics import TURNS
from memstream.schemas.turns import turn_value
from memstream.schemas.working_set import StoredMessage
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from tests.support.observer_world import Points
from tests.support.stage_harness import Kill, StageHarness, Topics, kills
from tests.support.vector_backends import match

SESSION = ("acme", "u1", "s1")
PARTITIONS = 4


class Embedder:
    """The hashing embedder, which counts its calls, and refuses or fails as a test sets it."""

    def __init__(self) -> None:
        self.inner = HashingEmbedder()
        self.calls: list[tuple[str, list[str]]] = []
        self.refuses = ""
        self.fails = 0

    @property
    def identity(self) -> EmbedderIdentity:
        return self.inner.identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if self.fails:
            self.fails -= 1
            raise Transient("embedder", "away")
        self.calls.append((tenant_id, list(texts)))
        if self.refuses and any(self.refuses in text for text in texts):
            raise Poison("refused_by_model", "no")
        return await self.inner.embed(texts, tenant_id=tenant_id)

    async def close(self) -> None:
        return None


class World:
    def __init__(self, store: Any) -> None:
        self.store = store
        self.embedder = Embedder()
        self.topics = Topics()
        self.harness = StageHarness(name="recorder", make=self._make)

    def _make(self, harness: StageHarness) -> Recorder:
        return Recorder(
            store=self.store,
            embedder=self.embedder,
            calls=harness.calls,
            metrics=harness.metrics,
            partitions=PARTITIONS,
            secrets=SecretFilter(),
            routing=RoutingPolicy(),
            session_log=SessionLogPolicy(),
        )

    def turn(
        self,
        *messages: Mapping[str, Any] | str,
        turn_id: str = "t1",
        session: tuple[str, str, str] = SESSION,
        partition: int | None = None,
        **fields: Any,
    ) -> Record:
        tenant, user, name = session
        said: Any = [{"role": "user", "content": m} if isinstance(m, str) else dict(m) for m in messages]
        value = turn_value(
            {"tenant_id": tenant, "user_id": user, "session_id": name, "turn_id": turn_id, "messages": said} | fields
        )
        key = ids.session_key(*session).encode()
        where = partition_for(key, PARTITIONS) if partition is None else partition
        return self.topics.record(TURNS.name, key, value, partition=where)

    async def deliver(self, *records: Record) -> None:
        for record in records:
            await self.harness.deliver(record)

    async def messages(self, tenant: str = "acme") -> list[StoredMessage]:
        found = await self.store.select(COLLECTION, tenant_id=tenant)
        rows = [StoredMessage.from_payload(each.payload) for each in found]
        return sorted(rows, key=lambda row: (row.user_id, row.session_id, row.turn_id, row.message_index))

    def counted(self, what: str) -> int:
        value = self.harness.metrics._metrics.counted.labels("recorder", what)._value.get()
        return int(value)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PeriodStore]:
    store = await open_store(f"embedded://{tmp_path}", embedder=HashingEmbedder().identity, holds_folder=True)
    await store.ensure(COLLECTION, LABELS)
    yield store
    await store.close()


@pytest.fixture
def world(store: PeriodStore) -> World:
    return World(store)


def texts(rows: Sequence[StoredMessage | StoredPoint]) -> list[str]:
    return [row.content if isinstance(row, StoredMessage) else str(row.payload["content"]) for row in rows]


async def test_each_message_is_kept_verbatim_under_its_id(world: World) -> None:
    said = "  I work at\n\tGoogle — ok? \u00e9 [t1]"
    turn = world.turn(
        said,
        {"role": "assistant", "content": "Nice.", "name": "helper"},
        {"role": "tool", "content": "42"},
        {"role": "system", "content": "be nice"},
        occurred_at="2026-11-20T11:00:00+01:00",
        sensitivity="secret",
        scope="org",
        org_id="o1",
        agent_id="coach",
    )
    await world.deliver(turn)
    rows = await world.messages()
    assert [(row.role, row.content, row.name) for row in rows] == [
        ("user", said, None),
        ("assistant", "Nice.", "helper"),
        ("tool", "42", None),
        ("system", "be nice", None),
    ]
    key = ids.session_key(*SESSION)
    assert [row.message_id for row in rows] == [ids.message_id(key, "t1", n) for n in range(4)]
    assert {row.owner_key for row in rows} == {"acme/org/o1"}
    assert {(row.sensitivity, row.agent_id) for row in rows} == {("secret", "coach")}
    assert {row.occurred_at.isoformat() for row in rows} == {"2026-11-20T10:00:00+00:00"}
    assert [row.turn_sha256 for row in rows] == [hashlib.sha256(turn.value or b"").hexdigest(), None, None, None]
    assert world.harness.sent == []
    assert world.harness.rows.local == {}


async def test_what_was_said_is_found_by_words_and_by_meaning(world: World, store: PeriodStore) -> None:
    await world.deliver(world.turn("I moved to Lisbon in spring"), world.turn("The weather is fine", turn_id="t2"))
    assert texts(await store.lexical(COLLECTION, tenant_id="acme", text="lisbon", limit=1)) == [
        "I moved to Lisbon in spring"
    ]
    (dense,) = await HashingEmbedder().embed(["moved to Lisbon"], tenant_id="acme")
    found = await store.nearest(COLLECTION, tenant_id="acme", dense=dense, limit=1)
    assert texts(found) == ["I moved to Lisbon in spring"]


async def test_parts_are_joined_and_others_counted(world: World) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    await world.deliver(world.turn({"role": "user", "content": parts}, {"role": "assistant", "content": None}))
    assert texts(await world.messages()) == ["one\ntwo", ""]
    assert world.counted("parts_without_text") == 1
    assert world.embedder.calls == [("acme", ["one\ntwo"])]


async def test_one_call_embeds_a_whole_turn_with_its_windows_and_silence_none(world: World) -> None:
    await world.deliver(world.turn("a", "b", "c"), world.turn("  ", turn_id="t2"), world.turn("a", turn_id="t3"))
    assert world.embedder.calls == [
        ("acme", ["a", "b", "c", "a\nb", "a\nb\nc", "b\nc"]),
        ("acme", ["a", "c\na", "b\nc\na"]),
    ]
    assert texts(await world.messages()) == ["a", "b", "c", "  ", "a"]


@pytest.mark.parametrize("text", ["\u2028", "\U0010ffff", "x" * 200_000, "\\ud800"])
async def test_odd_texts_are_kept_as_they_are(world: World, text: str) -> None:
    await world.deliver(world.turn(text), world.turn("good", turn_id="t2"))
    assert texts(await world.messages()) == [text, "good"]


async def test_what_nobody_sees_is_not_kept_and_another_turn_of_the_id_is_still_told(world: World) -> None:
    """A turn is known again by its value, in which the invisible characters are."""
    await world.deliver(world.turn("a\x00b\u200b\U000e0041"), world.turn("ab"), world.turn("c", turn_id="t2"))
    assert texts(await world.messages()) == ["ab", "c"]
    assert world.counted("duplicate") == 1


async def test_half_of_an_emoji_costs_no_other_word(world: World) -> None:
    turn = world.turn("@@")
    value = (turn.value or b"").replace(b"@@", b"I like \\ud800tea")
    await world.deliver(world.topics.record(TURNS.name, turn.key, value, partition=turn.position.partition))
    assert texts(await world.messages()) == ["I like \ufffdtea"]


async def test_an_end_without_words_leaves_nothing(world: World) -> None:
    await world.deliver(world.turn(ends_session=True))
    assert await world.messages() == []


async def test_the_first_in_the_log_stays(world: World) -> None:
    first, second = world.turn("first"), world.turn("second", "and more")
    await world.deliver(first, second, first)
    assert texts(await world.messages()) == ["first"]
    assert world.counted("duplicate") == 1


async def test_a_turn_that_differs_in_one_byte_is_another(world: World) -> None:
    await world.deliver(world.turn("same"), world.turn("same", metadata={"n": 1}))
    (row,) = await world.messages()
    assert row.content == "same"
    assert world.counted("duplicate") == 1


async def test_metadata_that_no_engine_stores_is_left_out(world: World) -> None:
    await world.deliver(world.turn("same", metadata={"order": 2**64, "deep": [[2**63]], "shop": 2**63 - 1}))
    (row,) = await world.messages()
    assert row.metadata == {"shop": 2**63 - 1}


async def test_the_same_turn_again_is_a_repetition_that_changes_nothing(world: World) -> None:
    turn = world.turn("one", "two")
    await world.deliver(turn)
    before = await world.messages()
    await world.deliver(turn)
    assert await world.messages() == before
    assert world.counted("duplicate") == 0


@pytest.mark.parametrize("other", [("globex", "u1", "s1"), ("acme", "u2", "s1"), ("acme", "u1", "s2")])
async def test_the_same_ids_elsewhere_are_another_turn(world: World, other: tuple[str, str, str]) -> None:
    await world.deliver(world.turn("mine"), world.turn("theirs", session=other))
    assert texts([row for row in await world.messages() if row.session_id == "s1" and row.user_id == "u1"]) == ["mine"]
    theirs = await world.messages(other[0])
    assert "theirs" in texts(theirs)
    assert {row.tenant_id for row in theirs} == {other[0]}


async def test_a_misplaced_turn_is_passed_over(world: World) -> None:
    right = partition_for(ids.session_key(*SESSION).encode(), PARTITIONS)
    await world.deliver(world.turn("x", partition=(right + 1) % PARTITIONS))
    assert await world.messages() == []
    assert world.counted("misplaced") == 1
    assert (world.embedder.calls, world.harness.sent) == ([], [])


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"tenant_id": "acme"}', b"\xff", b"x" * 300_000])
async def test_what_is_refused_is_counted_and_the_observers_to_letter(world: World, value: bytes | None) -> None:
    right = partition_for(ids.session_key(*SESSION).encode(), PARTITIONS)
    await world.deliver(world.topics.record(TURNS.name, b"k", value, partition=right), world.turn("good"))
    assert texts(await world.messages()) == ["good"]
    assert world.harness.sent == []
    (refused,) = world.harness.metrics._metrics.refused.collect()
    assert sum(sample.value for sample in refused.samples if sample.name.endswith("_total")) == 1


async def test_an_embedder_that_is_away_is_waited_for(world: World) -> None:
    world.embedder.fails = 3
    await world.deliver(world.turn("patience"))
    assert texts(await world.messages()) == ["patience"]


async def test_what_the_embedder_refuses_is_kept_and_found_by_its_words(world: World, store: PeriodStore) -> None:
    world.embedder.refuses = "forbidden"
    await world.deliver(world.turn("a forbidden lighthouse"), world.turn("next", turn_id="t2"))
    assert texts(await world.messages()) == ["a forbidden lighthouse", "next"]
    found = await store.lexical(COLLECTION, tenant_id="acme", text="lighthouse", limit=5)
    assert set(texts(found)) == {"a forbidden lighthouse", "next"}
    assert world.counted("not_embedded") == 1, "the next turn goes without windows"
    (dense,) = await HashingEmbedder().embed(["next"], tenant_id="acme")
    assert texts(await store.nearest(COLLECTION, tenant_id="acme", dense=dense, limit=5)) == ["next"]


# ------------------------------------------------------------------------------------------------ windows
async def shown(store: PeriodStore, cue: str, **where: str) -> list[tuple[str, float]]:
    """Return the messages whose windows are nearest, with their scores."""
    (dense,) = await HashingEmbedder().embed([cue], tenant_id="acme")
    conditions: list[Any] = [match(field, value) for field, value in where.items()]
    (found,) = await store.search(
        COLLECTION,
        tenant_id="acme",
        rankings=[DenseRanking(dense, "window")],
        where=models.Filter(must=conditions),
        limit=20,
    )
    rows = await store.get(COLLECTION, tenant_id="acme", ids=[each.id for each in found])
    return [(str(rows[each.id].payload["content"]), round(each.score, 4)) for each in found]


async def test_a_message_is_found_by_the_words_before_and_after_it(world: World, store: PeriodStore) -> None:
    for n, text in enumerate(["anna", "bert", "carl", "dora", "emil"]):
        await world.deliver(world.turn(text, turn_id=f"t{n}"))
    for cue, around in (("anna", {"anna", "bert"}), ("carl", {"bert", "carl", "dora"}), ("emil", {"dora", "emil"})):
        assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text=cue, limit=9))) == around
        assert {text for text, score in await shown(store, cue) if score > 0.1} == around
    assert dict(await shown(store, "bert carl dora"))["carl"] == pytest.approx(1.0)
    assert dict(await shown(store, "anna bert"))["anna"] == pytest.approx(1.0)


async def test_places_count_what_is_said_in_the_order_of_the_log(world: World) -> None:
    tool = {"role": "tool", "content": "{}"}
    call = {"role": "assistant", "content": None}
    await world.deliver(
        world.turn(tool, "a", call, {"role": "assistant", "content": "b"}, occurred_at="2026-01-02T00:00:00Z"),
        world.turn(tool, turn_id="t2", occurred_at="2026-01-01T00:00:00Z"),
        world.turn("c", turn_id="t3", occurred_at="2026-01-01T00:00:00Z"),
    )
    rows = await world.messages()
    assert [(row.session_place, row.first_place) for row in rows] == [
        (None, 0), (0, None), (None, None), (1, None), (None, 2), (2, 2)
    ]  # fmt: skip


async def test_tools_and_silence_stand_outside_the_thread(world: World, store: PeriodStore) -> None:
    tool = {"role": "tool", "content": "zebra"}
    await world.deliver(
        world.turn("anna", {"role": "assistant", "content": None}, tool, {"role": "assistant", "content": "bert"})
    )
    assert texts(await store.lexical(COLLECTION, tenant_id="acme", text="zebra", limit=9)) == ["zebra"]
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="anna", limit=9))) == {"anna", "bert"}
    assert (await shown(store, "zebra"))[0] == ("zebra", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("first", "second", "seen"),
    [
        ({}, {"sensitivity": "secret"}, {"bert"}),
        ({"sensitivity": "secret"}, {}, {"anna", "bert"}),
        ({}, {"scope": "org", "org_id": "o"}, {"bert"}),
    ],
)
async def test_nobody_is_found_by_a_neighbour_that_its_reader_may_not_see(
    world: World, store: PeriodStore, first: dict[str, Any], second: dict[str, Any], seen: set[str]
) -> None:
    await world.deliver(world.turn("anna", **first), world.turn("bert", turn_id="t2", **second))
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="bert", limit=9))) == seen
    assert {text for text, score in await shown(store, "bert") if score > 0.1} == seen


@pytest.mark.parametrize("other", [("globex", "u1", "s1"), ("acme", "u2", "s1"), ("acme", "u1", "s2")])
async def test_windows_end_with_the_session(world: World, store: PeriodStore, other: tuple[str, str, str]) -> None:
    await world.deliver(
        world.turn("anna"), world.turn("bert", session=other, turn_id="t2"), world.turn("x", turn_id="t3")
    )
    found = await store.lexical(COLLECTION, tenant_id=other[0], text="bert", limit=9)
    assert texts(found) == ["bert"]
    assert found[0].payload["session_place"] == 0


async def test_a_turn_that_0_1_recorded_stays_as_it_is(world: World, store: PeriodStore) -> None:
    old = world.turn("anna", "bert")
    await world.deliver(old)
    rows = await world.messages()
    await store.put(
        COLLECTION,
        [
            Point(row.message_id, {**row.to_payload(), "session_place": None, "first_place": None}, text=row.content)
            for row in rows
        ],
    )
    before = await world.messages()
    await world.deliver(old, world.turn("carl", turn_id="t2"), old)
    assert (await world.messages())[:2] == before
    assert texts(await store.lexical(COLLECTION, tenant_id="acme", text="carl", limit=9)) == ["carl"]
    assert texts(await store.lexical(COLLECTION, tenant_id="acme", text="anna", limit=9)) == ["anna"]
    assert (await world.messages())[2].session_place == 0


async def test_a_turn_whose_message_0_is_missing_is_no_neighbour_of_itself(world: World, store: PeriodStore) -> None:
    turn = world.turn("bert", "carl", turn_id="t2")
    await world.deliver(world.turn("anna"), turn)
    before = await world.messages()
    await store.delete(COLLECTION, tenant_id="acme", ids=[before[1].message_id])
    await world.deliver(turn)
    assert await world.messages() == before
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="carl", limit=9))) == {"bert", "carl"}
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="anna", limit=9))) == {"anna", "bert"}


async def test_a_long_neighbour_stands_in_a_window_with_its_nearest_part(world: World, store: PeriodStore) -> None:
    paste = "far " + "x " * NEIGHBOUR_MAX + "near"
    await world.deliver(world.turn("anna"), world.turn(paste, turn_id="t2"), world.turn("bert", turn_id="t3"))
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="near", limit=9))) == {paste, "bert"}
    assert set(texts(await store.lexical(COLLECTION, tenant_id="acme", text="far", limit=9))) == {paste, "anna"}


# ------------------------------------------------------------------------------------------------ killed
class Halting(Points):
    """A store that fails between two messages of a turn, as one may that writes them one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.harness: StageHarness | None = None

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        for point in points:
            await super().insert(collection, [point])
            assert self.harness is not None
            self.harness.pass_step(f"point {point.payload['message_index']}")

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        assert self.harness is not None
        self.harness.pass_step("before window")
        await super().rewindow(collection, tenant_id=tenant_id, points=points)
        self.harness.pass_step("after window")


def halting() -> World:
    world = World(Halting())
    world.store.harness = world.harness
    return world


def talk(world: World) -> list[Record]:
    return [
        world.turn("a", "b"),
        world.turn("other words", "x", "y"),
        world.turn("c", turn_id="t2"),
        world.turn("a", "b"),
        world.turn({"role": "tool", "content": "0"}, "d", turn_id="t3"),
        world.turn("e", turn_id="t4"),
    ]


def stored(world: World) -> list[tuple[Any, ...]]:
    points = world.store.of(COLLECTION).values()
    return sorted(
        (p.payload["turn_id"], p.payload["message_index"], p.payload["session_place"], p.text, p.nearby, p.window)
        for p in points
    )


async def test_killed_anywhere_the_first_turn_is_whole_and_the_other_is_not_there() -> None:
    calm = halting()
    await calm.harness.run(talk(calm))
    rows = [
        ("t1", 0, 0, "a", "b"),
        ("t1", 1, 1, "b", "a\nc"),
        ("t2", 0, 2, "c", "b\nd"),
        ("t3", 0, None, "0", ""),
        ("t3", 1, 3, "d", "c\ne"),
        ("t4", 0, 4, "e", "d"),
    ]
    assert [row[:5] for row in stored(calm)] == rows
    texts = ["a\nb", "a\nb\nc", "b\nc\nd", "0", "c\nd\ne", "d\ne"]
    for (*_, window), text in zip(stored(calm), texts, strict=True):
        (expected,) = await HashingEmbedder().embed([text], tenant_id="acme")
        assert window == pytest.approx(expected)
    hit: set[str | None] = set()
    for kill in kills(len(calm.harness.steps)):
        world = halting()
        await world.harness.run(talk(world), kill=Kill(kill.at, from_start=kill.from_start))
        assert stored(world) == stored(calm), (kill, world.harness.step)
        hit.add(world.harness.step)
    assert {"point 0", "point 1", "before window", "after window", "before store", "decide"} <= hit


async def test_a_message_is_recorded_at_its_own_time(world: World) -> None:
    past = {"role": "user", "content": "I lived in Ghent.", "created_at": "2024-05-01T10:00:00+02:00"}
    ahead = {"role": "user", "content": "I live in Rome.", "created_at": "2999-05-01T10:00:00Z"}
    turn = world.turn(past, "I live in Bruges.", ahead, occurred_at="2026-06-01T21:00:00-05:00")
    await world.deliver(turn)
    rows = [row.to_payload()["occurred_at"] for row in await world.messages()]
    assert rows == ["2024-05-01T08:00:00Z", "2026-06-02T02:00:00Z", "2026-06-02T02:00:00Z"]

"""Turns of one session that wait together: whatever is recorded together, the session log is as if one by one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from qdrant_client import models

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import DenseRanking, LexicalRanking, NewWindow, Point, StoredPoint
from memstream.adapters.vectors.factory import open_store
from memstream.agents.recorder.stage import TOGETHER, Recorder
from memstream.memory.policies import RoutingPolicy, SessionLogPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.collections import LABELS
from memstream.schemas.collections import TURNS as COLLECTION
from memstream.schemas.labels import TurnLabel
from memstream.schemas.periods import Period, parse_period, period_collection
from memstream.schemas.turns import TURN_MAX_BYTES
from memstream.streams.log.port import Record
from tests.stages.test_recorder import PARTITIONS, SESSION, World
from tests.support.observer_world import Points
from tests.support.stage_harness import Kill, Killed, StageHarness

NOW = datetime(2027, 2, 1, tzinfo=UTC)
QUARTERS = {
    "now": NOW,
    "last quarter": datetime(2026, 12, 31, tzinfo=UTC),
    "over": datetime(2024, 1, 1, tzinfo=UTC),
}
FORBIDDEN = "forbidden"
AT = "2023-06-01T00:00:00Z"
"""Before every record, so that a value which is sent again means the same message."""


class Quarters(Points):
    """A store with a collection for each quarter, which may die between any two points of a write, in any order: the
    shards of a server take their parts of it by themselves."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.harness: StageHarness | None = None

    def passed(self, step: str) -> None:
        assert self.harness is not None
        self.harness.pass_step(step)

    # ------------------------------------------------------------------------------------------------ periods
    def parts(self, collection: str) -> list[str]:
        if collection != COLLECTION:
            return [collection]
        return sorted((name for name in self.collections if parse_period(name)), reverse=True)

    async def periods(self, collection: str, *, opened: bool = False) -> tuple[Period, ...]:
        return tuple(sorted(named[1] for name in self.collections if (named := parse_period(name))))

    async def open_period(self, collection: str, period: Period, *, newest: Period) -> str:
        name = period_collection(collection, period)
        self.of(name)
        return name

    # ------------------------------------------------------------------------------------------------ reads
    def every(self, collection: str) -> list[tuple[str, Point]]:
        return [(name, point) for name in self.parts(collection) for point in self.of(name).values()]

    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        self.calls += 1
        return {
            point.id: StoredPoint(point.id, point.payload, dense=point.dense, collection=name)
            for name, point in self.every(collection)
            if point.id in ids
        }

    async def last(
        self, collection: str, *, tenant_id: str, where: models.Filter, order_by: str, limit: int
    ) -> list[StoredPoint]:
        found = [each for name in self.parts(collection) for each in await self._last(name, where, order_by, limit)]
        return sorted(found, key=lambda each: -int(str(each.payload[order_by])))[:limit]

    async def _last(self, name: str, where: models.Filter, order_by: str, limit: int) -> list[StoredPoint]:
        return await super().last(name, tenant_id=SESSION[0], where=where, order_by=order_by, limit=limit)

    async def select(self, collection: str, *, tenant_id: str, where: models.Filter) -> list[StoredPoint]:
        self.calls += 1
        must: Any = where.must
        (range_,) = [each.range for each in must if each.key == "session_place"]
        return [
            StoredPoint(point.id, point.payload, collection=name)
            for name, point in self.every(collection)
            if isinstance(place := point.payload["session_place"], int) and range_.gte <= place <= range_.lte
        ]

    # ------------------------------------------------------------------------------------------------ writes
    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        for point in self.random.sample(points, len(points)):
            await super().insert(collection, [point])
            self.passed("point")

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        await super().rewindow(collection, tenant_id=tenant_id, points=points)
        self.passed("window")

    async def set_payload(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Mapping[str, JsonValue]
    ) -> None:
        for each in ids:
            stands = self.of(collection)[each]
            self.of(collection)[each] = replace(stands, payload={**stands.payload, **fields})
        self.passed("label")


class Together(World):
    """A recorder over quarters, with labels that the observer wrote before."""

    def __init__(self, *, labels: Mapping[str, int] | None = None, seed: int = 0) -> None:
        super().__init__(Quarters(seed))
        self.store.harness = self.harness
        self.store.of(period_collection(COLLECTION, Period.of(NOW)))
        for turn_id, index in (labels or {}).items():
            point = label(turn_id, index)
            self.store.of(LABELS)[point.id] = point
        self.embedder.refuses = FORBIDDEN

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
            now=lambda: NOW,
        )

    def points(self) -> dict[tuple[str, str], Point]:
        return {(name, point.id): point for name, point in self.store.every(COLLECTION)}

    async def run(self, records: Sequence[Record], *, ahead: random.Random | None, kill: Kill | None = None) -> None:
        """Deliver all records. `ahead`: how many are queued behind each one; None: none ever is."""
        self.harness._kill_at = None if kill is None else kill.at
        left = list(records)
        while left:
            queued = 0 if ahead is None else ahead.randint(0, TOGETHER + 2)
            try:
                await self.harness.deliver(left[0], ahead=left[1 : 1 + queued])
                left = [record for record in left[1:] if record not in self.harness.covered]
            except Killed:
                left = list(records) if kill is not None and kill.from_start else left
                self.harness.start()


def label(turn_id: str, index: int) -> Point:
    tenant, user, session = SESSION
    made = TurnLabel(
        label_id=ids.label_id(ids.session_key(*SESSION), turn_id),
        tenant_id=tenant,
        user_id=user,
        session_id=session,
        turn_id=turn_id,
        messages=(index,),
        sensitivity="secret",
        at=NOW,
    )
    return Point(id=made.label_id, payload=made.to_payload())


@dataclass(frozen=True)
class Said:
    """A turn of a generated conversation."""

    turn_id: str
    messages: tuple[tuple[str, str], ...]
    sensitivity: str | None
    quarter: str

    def record(self, world: World) -> Record:
        said = [{"role": role, "content": text} for role, text in self.messages]
        # A turn that is over has an id of its own: if half of a later turn with its id stands, it completes that one,
        # also where turns are recorded one by one.
        turn_id = f"{self.turn_id} over" if self.quarter == "over" else self.turn_id
        record = world.turn(*said, turn_id=turn_id, sensitivity=self.sensitivity, ends_session=not said, occurred_at=AT)
        return replace(record, timestamp=int(QUARTERS[self.quarter].timestamp() * 1000))


messages = st.lists(
    st.tuples(
        st.sampled_from(["user", "user", "assistant", "tool"]),
        st.sampled_from(["anna", "bert", "carl", "dora", "my pin is 4071", " ", FORBIDDEN]),
    ),
    max_size=3,
)
conversations = st.lists(
    st.builds(
        Said,
        turn_id=st.sampled_from([f"t{n}" for n in range(9)]),
        messages=messages.map(tuple),
        sensitivity=st.sampled_from([None, None, None, "secret", "public"]),
        quarter=st.sampled_from(["now", "now", "now", "last quarter", "over"]),
    ),
    min_size=1,
    max_size=12,
)
labels = st.dictionaries(st.sampled_from(["t0", "t1", "t2"]), st.integers(0, 2), max_size=2)


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(said=conversations, labels=labels, seed=st.integers(0, 10_000), kills=st.lists(st.integers(1, 40), max_size=3))
def test_together_or_one_by_one_the_points_are_equal(
    said: list[Said], labels: dict[str, int], seed: int, kills: list[int]
) -> None:
    """Queues of random lengths; the process dies after any point, window or label, and gets its turns again."""

    async def scenario() -> None:
        calm = Together(labels=labels)
        records = [each.record(calm) for each in said]
        await calm.run(records, ahead=None)
        for at in [None, *kills]:
            world = Together(labels=labels, seed=seed)
            kill = None if at is None else Kill(at, from_start=seed % 2 == 1)
            await world.run(records, ahead=random.Random(seed), kill=kill)
            assert world.points() == calm.points(), world.harness.step

    asyncio.run(scenario())


def talk(world: World, count: int = TOGETHER, **fields: Any) -> list[Record]:
    return [world.turn(f"word{n}", f"answer{n}", turn_id=f"t{n}", **fields) for n in range(count)]


async def test_what_waits_together_is_read_embedded_and_labelled_once() -> None:
    world = Together()
    records = talk(world)
    await world.harness.run(records, together=True)
    assert len(world.embedder.calls) == 1
    assert world.harness.steps.count("store") == 1
    assert len(world.harness.covered) == TOGETHER - 1
    assert world.store.calls == TOGETHER * 2 + 4  # messages; known ones, those before, labels before and after
    assert "window" not in world.harness.steps, "each message is inserted with its neighbours"


@pytest.mark.parametrize(("count", "length", "covered"), [(TOGETHER + 3, 10, TOGETHER - 1), (4, 100_000, 1)])
async def test_a_group_is_bounded_by_turns_and_by_bytes(count: int, length: int, covered: int) -> None:
    world = Together()
    first, *rest = [world.turn("x" * length, turn_id=f"t{n}") for n in range(count)]
    assert length * 2 <= TURN_MAX_BYTES
    await world.harness.deliver(first, ahead=rest)
    assert len(world.harness.covered) == covered


async def test_what_the_embedder_refuses_costs_its_neighbours_nothing() -> None:
    world = Together()
    records = [*talk(world, 3), world.turn(FORBIDDEN, turn_id="bad"), *talk(world, 6)[3:]]
    await world.harness.run(records, together=True)
    without = [point.payload["turn_id"] for point in world.points().values() if point.dense is None]
    assert without == ["bad"]
    assert world.counted("not_embedded") == 1


async def test_a_turn_with_a_label_is_recorded_alone() -> None:
    """Its words must not stand in a window of the next turn before its label is seen."""
    world = Together(labels={"t1": 1})
    await world.harness.run(talk(world, 4), together=True)
    assert [record.value for record in world.harness.covered] == [talk(world, 4)[3].value]
    secret = [point for point in world.points().values() if point.payload["sensitivity"] == "secret"]
    assert [point.payload["content"] for point in secret] == ["answer1"]
    others = [f"{point.text}\n{point.nearby}" for point in world.points().values() if point not in secret]
    assert not any("answer1" in str(text) for text in others)


async def test_a_label_that_comes_while_they_are_stored_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Together()
    insert = world.store.insert

    async def meanwhile(collection: str, points: Sequence[Point]) -> None:
        await insert(collection, points)
        come = label("t2", 0)
        world.store.of(LABELS)[come.id] = come

    monkeypatch.setattr(world.store, "insert", meanwhile)
    await world.harness.run(talk(world, 4), together=True)
    secret = [point.payload["content"] for point in world.points().values() if point.payload["sensitivity"] == "secret"]
    assert secret == ["word2"]
    assert len(world.harness.covered) == 3


async def test_turns_of_two_quarters_are_recorded_together_each_in_its_own() -> None:
    world = Together()
    first, second = talk(world, 2)
    first = replace(first, timestamp=int(QUARTERS["last quarter"].timestamp() * 1000))
    second = replace(second, timestamp=int(NOW.timestamp() * 1000))
    await world.harness.run([first, second], together=True)
    assert world.harness.covered == [second]
    assert sorted((name, str(point.payload["content"])) for (name, _), point in world.points().items()) == [
        ("turns_2026q4", "answer0"),
        ("turns_2026q4", "word0"),
        ("turns_2027q1", "answer1"),
        ("turns_2027q1", "word1"),
    ]
    (last,) = [point.nearby for point in world.points().values() if point.payload["content"] == "answer0"]
    assert last == "word0\nword1"


async def test_a_duplicate_among_them_is_counted_once_and_leaves_nothing() -> None:
    world = Together()
    turns = [world.turn("a", turn_id="t1"), world.turn("b", turn_id="t1"), world.turn("a", turn_id="t1")]
    await world.harness.run([*turns, world.turn("c", turn_id="t2")], together=True)
    assert [row.content for row in sorted(map(_row, world.points().values()), key=lambda row: row.place)] == ["a", "c"]
    assert world.counted("duplicate") == 1


@dataclass(frozen=True)
class _Row:
    content: str
    place: int


def _row(point: Point) -> _Row:
    return _Row(str(point.payload["content"]), int(str(point.payload["session_place"])))


async def test_windows_of_a_group_have_their_vectors() -> None:
    world = Together()
    await world.harness.run(talk(world, 3), together=True)
    points = sorted(world.points().values(), key=lambda point: _row(point).place)
    said = [_row(point).content for point in points]
    for place, point in enumerate(points):
        (expected,) = await HashingEmbedder().embed(["\n".join(said[max(0, place - 1) : place + 2])], tenant_id="acme")
        assert point.window == expected


async def test_the_engine_keeps_and_finds_the_same(tmp_path: Path) -> None:
    found = []
    for together in (False, True):
        folder = tmp_path / str(together)
        store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
        try:
            await store.ensure(COLLECTION, LABELS)
            world = World(store)
            await world.harness.run(talk(world, 5), together=together)
            rankings = [LexicalRanking("word2"), DenseRanking(await _vector_of("answer1 word2 answer2"), "window")]
            # three: each other one has no word of the question, and a score of 0
            ranked = await store.search(COLLECTION, tenant_id="acme", rankings=rankings, limit=3)
            scores = [{hit.id: round(hit.score, 4) for hit in hits} for hits in ranked]
            found.append((scores, await world.messages()))
            assert len(world.harness.covered) == 4 * together
        finally:
            await store.close()
    assert found[0] == found[1]
    assert len(found[0][1]) == 10


async def _vector_of(text: str) -> list[float]:
    (vector,) = await HashingEmbedder().embed([text], tenant_id="acme")
    return vector

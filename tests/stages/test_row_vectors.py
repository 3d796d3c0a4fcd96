"""An owner's row keeps no vectors: they are made again from their texts when an outcome is applied again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common.store_writes import with_vectors
from memstream.agents.consolidation.rows import ProgressRow
from memstream.agents.reflector.rows import LedgerRow
from memstream.schemas.outcomes import (
    DeletePoints,
    InsertPoints,
    Outcome,
    OutPoint,
    PutPoints,
    Source,
    SwapPoint,
    Write,
)
from memstream.streams.engine.crash_points import Step
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.record_builders import OWNER
from tests.support.reflector_world import Talk, reflector

KEY = OWNER.key("acme")
SAID = ("Works at Google", "Works at Stripe", "Likes tea")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


async def vectors(bench: Bench) -> dict[str, list[float]]:
    """The vectors of episodes and facts in the store, by id."""
    found = {}
    for collection in ("episodes", "facts"):
        known = [each.id for each in await bench.store.select(collection, tenant_id="acme")]
        stored = await bench.store.get(collection, tenant_id="acme", ids=known, with_dense=True)
        found |= {each: list(point.dense or ()) for each, point in stored.items()}
    return found


async def test_the_row_names_texts_and_has_no_vector(bench: Bench) -> None:
    await Talk(bench).tell("Works at Stripe")
    raw = bench.rows.rows[KEY]
    points = LedgerRow.read(raw).last
    assert points is not None
    assert b'"reembed":true' in raw
    assert all(point.dense is None for write in points.writes for point in _points(write))
    assert len(raw) < 8_000, "two vectors of 2 048 dimensions would have 22 000"


@pytest.mark.parametrize("step", ["table", "store", "publish"])
async def test_a_killed_worker_leaves_the_same_vectors(tmp_path: Path, bench: Bench, step: Step) -> None:
    talk = Talk(bench)
    for text in SAID:
        await bench.killed(talk.turn(talk.says(text)), step)
    other = await open_bench(tmp_path / "other", "reflector")
    other.stage = reflector(other)
    for text, talk in zip(SAID, [Talk(other)] * len(SAID), strict=True):
        await talk.tell(text)
    expected = await vectors(other)
    assert len(expected) > len(SAID)
    found = await vectors(bench)
    assert found.keys() == expected.keys()
    for each, vector in found.items():
        assert vector == pytest.approx(expected[each])
    await other.store.close()


async def test_nothing_is_embedded_twice_where_nobody_was_killed(bench: Bench) -> None:
    asked: list[str] = []
    embed = bench.embedder.embed

    async def counted(texts: Sequence[str], *, tenant_id: str) -> Sequence[Sequence[float]]:
        asked.extend(texts)
        return await embed(texts, tenant_id=tenant_id)

    bench.embedder.embed = counted  # type: ignore[method-assign,assignment]
    talk = Talk(bench)
    await talk.tell("Works at Stripe")
    assert asked == ["Works at Stripe"]
    turn = talk.turn(talk.says("Likes tea"))
    with pytest.raises(Killed):
        await bench.run(turn, crash_after="table")
    await bench.run(turn)
    assert asked == ["Works at Stripe", "Likes tea", "Likes tea"]


def test_a_version_before_this_one_does_not_understand_the_outcome() -> None:
    """Its parts forbid unknown fields, so its worker stops with exit 4 instead of writing a point without a vector."""
    point = OutPoint(id="p", dense=[1.0], text="a", payload={})
    assert "reembed" in point.without_vector().model_dump()
    assert "reembed" not in point.model_dump()
    assert OutPoint.model_config["extra"] == "forbid"


# ------------------------------------------------------------------------------------------------ round trip
POINTS = st.lists(
    st.builds(
        OutPoint,
        id=st.text(max_size=3),
        payload=st.just({}),
        dense=st.none() | st.just([0.5, 0.25]),
        text=st.none() | st.text(max_size=3),
    ),
    max_size=3,
).map(tuple)
WRITES = st.lists(
    st.builds(InsertPoints, collection=st.just("episodes"), points=POINTS)
    | st.builds(PutPoints, collection=st.just("episodes"), points=POINTS)
    | POINTS.filter(bool).map(
        lambda points: SwapPoint(collection="facts", point=points[0], expected_version=None, cause="c")
    )
    | st.just(DeletePoints(collection="facts", tenant_id="acme", ids=("i",))),
    max_size=4,
).map(tuple)


async def embed(texts: Sequence[str]) -> dict[str, Sequence[float]]:
    return {text: [float(len(text)), 1.0] for text in texts}


@given(WRITES)
async def test_vectors_come_back_from_the_row(writes: tuple[Write, ...]) -> None:
    by_text = {point.text: point for write in writes for point in _points(write) if point.text is not None}
    vectors = await embed(list(by_text))
    outcome = Outcome(source=Source(topic="t", partition=0, offset=1, id="i"), writes=writes)
    outcome = outcome.model_copy(
        update={"writes": tuple(_embedded(write, vectors) for write in writes)}  # as a decision makes them
    )
    _, decision = ProgressRow().decide("acme/user/u", outcome)
    assert decision.outcome == outcome
    kept = ProgressRow.read(decision.row or b"").last
    assert kept is not None
    assert all(point.dense is None or point.text is None for write in kept.writes for point in _points(write))
    assert await with_vectors(kept.writes, embed) == outcome.writes


def _points(write: Write) -> tuple[OutPoint, ...]:
    if isinstance(write, SwapPoint):
        return (write.point,)
    return write.points if isinstance(write, InsertPoints | PutPoints) else ()


def _embedded(write: Write, vectors: dict[str, Sequence[float]]) -> Write:
    def whole(point: OutPoint) -> OutPoint:
        if point.dense is None or point.text is None:
            return point
        return point.model_copy(update={"dense": vectors[point.text]})

    if isinstance(write, SwapPoint):
        return write.model_copy(update={"point": whole(write.point)})
    if isinstance(write, InsertPoints | PutPoints):
        return write.model_copy(update={"points": tuple(map(whole, write.points))})
    return write

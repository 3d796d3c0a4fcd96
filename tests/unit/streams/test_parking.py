"""Parked keys: an outcome that cannot be applied holds its own key only, and is applied when it can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from aiokafka.errors import KafkaError

from memstream.schemas.errors import DeploymentFault, Fatal, LaterVersion, OverBudget, Poison, Transient
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.parking import ParkedKey
from memstream.schemas.topics import OBSERVATIONS, PARKED, TURNS
from memstream.streams.engine.error_boundary import CRASHES_MAX, exception_of, is_of_one_key
from memstream.streams.engine.lane_events import RoutedEvent
from memstream.streams.engine.parking import (
    FIRST_WAIT,
    LONGEST_WAIT,
    PARKED_MAX,
    ParkedKeys,
    is_parked,
    parked_row,
    read_parked,
    retry_of,
    retry_record,
)
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.log.port import Position, Record
from tests.support.counting_stage import Counted, Counting
from tests.support.stage_harness import Killed, StageHarness, Topics

BAD, GOOD = "acme/u1/s1", "acme/u2/s1"
NOW = datetime(2026, 11, 23, tzinfo=UTC)


class Refusing(Counting):
    """The counting stage, with commands."""

    def route(self, record: Record) -> RoutedEvent[Counted]:
        if retry_of(record) is None:
            return super().route(record)
        key = (record.key or b"").decode()
        return RoutedEvent(key, Counted(key, "command", "x"))


class World:
    """A stage whose store refuses everything of some keys."""

    def __init__(self) -> None:
        self.refused = {BAD}
        self.error: Callable[[], Exception] = lambda: Fatal("Qdrant answers 400")
        self.stored: list[str] = []
        self.topics = Topics()
        self.harness = StageHarness(name="observer", make=lambda harness: Refusing(sink=self.sink))

    def sink(self, point_id: str, payload: dict[str, object]) -> None:
        if payload["key"] in self.refused:
            raise self.error()
        self.stored.append(point_id)

    def turn(self, key: str, id: str) -> Record:
        return self.topics.record(TURNS.name, key.encode(), json.dumps({"id": id, "value": "x"}).encode())

    async def deliver(self, record: Record) -> int:
        """Deliver an event until it may be acknowledged, as a supervisor does. Return how often the worker ended."""
        for ends in range(10):
            if await exception_of(self.harness.deliver(record)) is None:
                return ends
            self.harness.start()
        raise AssertionError("an endless crash loop")

    async def retry(self, key: str = BAD) -> None:
        sent = retry_record("observer", key, now=NOW)
        await self.deliver(self.topics.record(sent.topic, sent.key, sent.value))

    def letters(self) -> list[tuple[str, str]]:
        """(id, reason) of each dead letter."""
        return [
            (json.loads(letter.value or b"{}")["id"], dict(letter.headers)["memstream-reason"].decode())
            for letter in self.harness.on(TURNS.name + ".dlq")
        ]

    def told(self) -> dict[bytes | None, bytes | None]:
        """The last record of each key on memory-parked."""
        return {record.key: record.value for record in self.harness.on(PARKED.name)}

    def sent(self) -> list[str]:
        return [json.loads(record.value or b"{}")["id"] for record in self.harness.on(OBSERVATIONS.name)]


@pytest.fixture
def world() -> World:
    return World()


async def test_a_key_whose_outcome_fails_three_times_is_parked_and_others_go_on(world: World) -> None:
    assert await world.deliver(world.turn(BAD, "t1")) == CRASHES_MAX - 1
    assert await world.deliver(world.turn(GOOD, "t1")) == 0
    assert await world.deliver(world.turn(BAD, "t2")) == 0, "later events of the key end no worker"
    assert world.letters() == [("t1", "parked"), ("t2", "parked")]
    assert world.stored == [f"{GOOD}/t1"]
    entry, row = read_parked(world.harness.rows.changelog[BAD])
    assert (entry.event_id, entry.error) == ("t1", "Qdrant answers 400")
    assert json.loads(row)["last"]["source"]["id"] == "t1", "the outcome is kept"
    assert ParkedKey.read(world.told()[f"observer/{BAD}".encode()] or b"") == entry
    assert BAD in world.harness.handler.parked.told()


async def test_after_mending_the_outcome_is_applied_and_its_letters_do_the_rest(world: World) -> None:
    await world.deliver(first := world.turn(BAD, "t1"))
    await world.deliver(world.turn(BAD, "t2"))
    await world.retry()
    assert is_parked(world.harness.rows.changelog[BAD]), "still refused"
    world.refused.clear()
    await world.retry()
    assert world.stored == [f"{BAD}/t1"]
    assert world.told() == {f"observer/{BAD}".encode(): None}
    assert len(world.harness.handler.parked) == 0
    for id in ("t1", "t2"):  # the letters, put back
        assert await world.deliver(world.turn(BAD, id)) == 0
    assert world.sent() == ["t1", "t2"], "each once"
    assert await world.deliver(first) == 0
    assert json.loads(world.harness.rows.changelog[BAD])["count"] == 2


async def test_a_worker_that_knows_nothing_of_it_refuses_the_keys_events_too(world: World) -> None:
    await world.deliver(world.turn(BAD, "t1"))
    world.refused.clear()
    world.harness.start()
    await world.deliver(world.turn(BAD, "t2"))
    assert world.letters()[-1] == ("t2", "parked"), "it would overwrite the outcome"
    assert BAD in world.harness.handler.parked


@pytest.mark.slow
async def test_another_worker_may_die_at_each_step(world: World) -> None:
    probe = World()
    for _ in range(CRASHES_MAX):
        before = len(probe.harness.steps)
        record = probe.turn(BAD, "t1")
        probe.topics = Topics()
        try:
            await probe.harness.deliver(record)
        except Fatal:
            probe.harness.start()
    steps = len(probe.harness.steps) - before
    for at in range(1, steps + 1):
        killed = World()
        turn = killed.turn(BAD, "t1")
        for _ in range(CRASHES_MAX - 1):
            with pytest.raises(Fatal):
                await killed.harness.deliver(turn)
            killed.harness.start()
        killed.harness._kill_at = len(killed.harness.steps) + at
        with pytest.raises(Killed):
            await killed.harness.deliver(turn)
        step = killed.harness.steps[-1]
        killed.harness.start()
        assert await killed.deliver(turn) == 0, step
        assert is_parked(killed.harness.rows.changelog[BAD]), step
        assert set(killed.letters()) == {("t1", "parked")}, step
        assert list(killed.told()) == [f"observer/{BAD}".encode()], step
        killed.refused.clear()
        retried = len(killed.harness.steps)
        await killed.retry()
        assert killed.sent() == ["t1"]
        for unparking in range(1, len(killed.harness.steps) - retried + 1):
            again = World()
            await again.deliver(again.turn(BAD, "t1"))
            again.refused.clear()
            again.harness._kill_at = len(again.harness.steps) + unparking
            with pytest.raises(Killed):
                await again.retry()
            step = again.harness.steps[-1]
            again.harness.start()
            await again.retry()
            assert list(dict.fromkeys(again.sent())) == ["t1"], step
            assert again.told() == {f"observer/{BAD}".encode(): None}, step
            await again.deliver(again.turn(BAD, "t2"))
            assert again.stored[-1] == f"{BAD}/t2", step


async def test_what_concerns_every_key_ends_the_worker(world: World) -> None:
    turn = world.turn(BAD, "t1")
    for error in (DeploymentFault("a collection is gone"), LeaseLost("x"), OSError("no space left on device")):
        world.error = lambda error=error: error  # type: ignore[misc]
        with pytest.raises(type(error)):
            await world.harness.deliver(turn)
    assert world.letters() == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Fatal("400"), True),
        (KeyError("x"), True),
        (Poison("invalid", "a lone surrogate"), True),
        (DeploymentFault("404"), False),
        (LaterVersion("x"), False),
        (Transient("store", "x"), False),
        (LeaseLost("x"), False),
        (OverBudget("x", retry_after=1.0), False),
        (OSError(28, "No space left on device"), False),
        (MemoryError(), False),
        (TimeoutError(), False),
        (KafkaError("x"), False),
    ],
)
def test_the_line_between_a_key_and_the_process(error: Exception, expected: bool) -> None:
    assert is_of_one_key(error) is expected


async def test_so_many_keys_are_not_at_fault_by_themselves(world: World) -> None:
    keys = [f"acme/u{n}/s" for n in range(PARKED_MAX + 1)]
    world.refused = set(keys)
    for key in keys[:-1]:
        await world.deliver(world.turn(key, "t1"))
        world.harness.handler.parked.assign(frozenset((0,)), entries(world), count=1)
    assert len(world.harness.handler.parked) == PARKED_MAX
    turn = world.turn(keys[-1], "t1")
    for _ in range(CRASHES_MAX - 1):
        with pytest.raises(Fatal):
            await world.harness.deliver(turn)
    with pytest.raises(DeploymentFault, match=f"{PARKED_MAX} keys of observer are parked"):
        await world.harness.deliver(turn)


def entries(world: World) -> list[ParkedKey]:
    return [ParkedKey.read(value) for value in world.told().values() if value]


async def test_a_stage_without_a_table_refuses_the_event(world: World) -> None:
    class Tableless(Counting):
        def last(self, work, rows):  # type: ignore[no-untyped-def]
            return None

        async def decide(self, work, record, rows, queued):  # type: ignore[no-untyped-def]
            async for decision in super().decide(work, record, rows, queued):
                yield type(decision)(decision.outcome.model_copy(update={"after": {}, "cleanup": ()}))

    world.harness = StageHarness(name="observer", make=lambda harness: Tableless(sink=world.sink))
    assert await world.deliver(world.turn(BAD, "t1")) == CRASHES_MAX - 1
    assert await world.deliver(world.turn(BAD, "t2")) == 0, "known by now"
    assert world.letters() == [("t1", "fatal"), ("t2", "fatal")]
    assert world.told() == {}


# ------------------------------------------------------------------------------------------------------------- when
def entry(key: str, stage: str = "reflector") -> ParkedKey:
    return ParkedKey(
        stage=stage, key=key, topic="t", partition=0, offset=1, event_id="e", parked_at=NOW, error='odd ,"row":{} \\'
    )


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(world: World, clock: Clock) -> ParkedKeys:
    async def send(records: tuple[OutRecord, ...]) -> None:
        return None

    return ParkedKeys(stage="reflector", send=send, metrics=world.harness.metrics, clock=clock, now=lambda: NOW)


async def test_an_outcome_is_tried_again_after_longer_and_longer_waits(keys: ParkedKeys, clock: Clock) -> None:
    await keys.park(entry("acme/user/u1"))
    tried: list[float] = []
    while clock.seconds < 4_000:
        tried += [clock.seconds for _ in keys.due()]
        clock.seconds += 1
    assert [later - before for before, later in zip([0.0, *tried], tried, strict=False)] == [
        FIRST_WAIT, 60, 120, 240, 480, *[LONGEST_WAIT] * 5
    ]  # fmt: skip


async def test_a_partitions_new_owner_tries_at_once_what_is_parked_there(keys: ParkedKeys) -> None:
    known = [entry("acme/user/u1"), entry("acme/user/u1/recalled"), entry("acme/u/s", stage="observer")]
    keys.assign(frozenset((0,)), known, count=1)
    asked = [retry_of(Record(position(record), record.key, record.value)) for record in keys.due()]
    assert [each.key for each in asked if each is not None] == ["acme/user/u1", "acme/user/u1/recalled"]
    assert list(keys.due()) == []
    keys.assign(frozenset(), [], count=1)
    assert len(keys) == 0


def position(record: OutRecord) -> Position:
    return Position(record.topic, 0, 0)


def test_a_marked_row_gives_back_what_was_there() -> None:
    row = b'{"row_version":1,"text":",\\"row\\":"}'
    marked = parked_row(row, entry("k"))
    assert read_parked(marked) == (entry("k"), row)
    assert json.loads(marked)["row_version"] == 2, "an older version must not read it"

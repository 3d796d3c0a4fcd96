"""Which rows of sessions are old: by two clocks, by an index in the order of time, and by nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstream.agents.common.handled_sessions import HandledSessions
from memstream.agents.common.seen_ids import SeenIds
from memstream.agents.common.session_ends import CLOCK_AHEAD, DAY, ENDS, TRIMS, SessionEnds, timed_key
from memstream.agents.consolidation.rows import CountedTurns, ProgressRow, RecentTurns, recent_at
from memstream.memory.policies import RowsPolicy
from memstream.schemas.errors import LaterVersion
from memstream.schemas.row_keys import partition_key
from memstream.schemas.session_epochs import EPOCHS_VERSION, SessionEpochs
from memstream.schemas.topics import TURNS
from memstream.streams.log.port import Position, Record
from tests.support.embedded_stage import MemoryRows

TOPIC, KEY = TURNS.name, "acme/u1/s1"
START = 1_800_000_000
SECONDS = st.integers(0, 400 * DAY)


def record(offset: int, seconds: int, *, topic: str = TOPIC) -> Record:
    return Record(Position(topic, 0, offset), None, None, timestamp=seconds * 1000)


class World:
    """Rows of 90 days. `now`: the worker's clock; `committed`: the group's offset."""

    def __init__(self, *, days: float = 90) -> None:
        self.now = START
        self.committed = 0
        self.monotonic = 0.0
        self.rows = MemoryRows()
        self.ended: list[str] = []
        self.ends = SessionEnds(
            RowsPolicy(session_days=days),
            TURNS,
            committed=lambda topic, partition: self.committed,
            now=lambda: datetime.fromtimestamp(self.now, UTC),
            monotonic=lambda: self.monotonic,
        )

    def handled(self, seconds: int) -> None:
        """A record of this time was handled and committed."""
        self.ends.note(record(self.committed, seconds))
        self.committed += 1

    def write(self, key: str, last_at: int, at: int | None = None, *, index: str = ENDS) -> None:
        self.rows.rows |= {key: json.dumps(last_at).encode(), timed_key(index, key, at or last_at): b"{}"}

    async def look(self, index: str = ENDS) -> list[str]:
        async def end(entry: str, key: str, last_at: int) -> None:
            self.ended.append(key)
            await self.rows.put({key: None, entry: None})

        self.monotonic += 3_600
        await self.ends.look(0, self.rows, last_at=json.loads, old=end, index=index)
        return sorted(self.rows.rows)


@given(last_at=SECONDS, worker=SECONDS, log=SECONDS)
@example(last_at=0, worker=90 * DAY, log=90 * DAY + CLOCK_AHEAD)
@example(last_at=0, worker=90 * DAY, log=90 * DAY + CLOCK_AHEAD + 1)
def test_a_row_is_old_when_both_clocks_say_so(last_at: int, worker: int, log: int) -> None:
    """A record that is too far ahead of the worker's clock does not tell the log's time."""
    world = World()
    world.now = START + worker
    world.handled(START + log)
    told = log <= worker + CLOCK_AHEAD
    assert world.ends.is_old(START + last_at, 0) == (told and min(worker, log) - last_at >= 90 * DAY)


def ahead(world: World) -> None:
    world.now += 400 * DAY


def producer_ahead(world: World) -> None:
    world.handled(START + 400 * DAY)


def uncommitted(world: World) -> None:
    world.now += 400 * DAY
    world.ends.note(record(world.committed, START + 400 * DAY))


def of_another_topic(world: World) -> None:
    world.now += 400 * DAY
    world.ends.note(record(0, START + 400 * DAY, topic="memory.commands.session"))
    world.committed += 1


@pytest.mark.parametrize("wrong", [ahead, producer_ahead, uncommitted, of_another_topic])
async def test_one_wrong_clock_ends_nothing(wrong: Callable[[World], None]) -> None:
    world = World()
    world.handled(START)
    world.write(KEY, START)
    before = sorted(world.rows.rows)
    wrong(world)
    assert await world.look() == before


async def test_a_record_that_is_dated_far_ahead_leaves_the_log_as_a_guard_when_the_workers_clock_goes_wrong() -> None:
    world = World()
    world.write(KEY, START)
    before = sorted(world.rows.rows)
    producer_ahead(world)
    world.handled(START + 60)  # the turns after it are dated right
    ahead(world)
    assert await world.look() == before
    world.now = START + 60
    world.handled(START + 60)
    assert await world.look() == before


@given(behind=st.integers(1, 30 * DAY), turns=st.integers(1, 20))
def test_the_time_of_the_log_follows_a_workers_clock_that_is_behind_all_others(behind: int, turns: int) -> None:
    world = World()
    world.now += behind + 90 * DAY  # the worker's clock says that the row is old
    for _ in range(turns + 2):
        world.handled(world.now + behind)
        world.now += behind // turns + 1
    assert world.ends.is_old(START + behind, 0)


async def test_an_old_row_ends_and_a_younger_one_is_not_read() -> None:
    world = World()
    world.write("acme/u1/old", START)
    world.write("acme/u1/young", START + DAY)
    world.rows.rows["acme/u1/young"] = b"not a time: it would fail"
    world.now += 90 * DAY
    world.handled(world.now)
    await world.look()
    assert world.ended == ["acme/u1/old"]
    assert "acme/u1/young" in world.rows.rows


async def test_a_row_whose_last_turns_are_in_the_owners_row_ends_after_them() -> None:
    world, row_key = World(), f"acme/user/u1/{KEY}"
    sessions = HandledSessions(
        RowsPolicy(session_days=90),
        TURNS,
        committed=lambda topic, partition: world.committed,
        now=lambda: datetime.fromtimestamp(world.now, UTC),
        monotonic=lambda: world.monotonic,
    )
    counted = RecentTurns(session=KEY, numbers=((0, 2),), turn_ids=SeenIds().add("t2"), last_at=START + 60 * DAY)
    owner = ProgressRow(recent=(counted,))
    world.rows.rows["acme/user/u1"] = owner.to_bytes()
    row = CountedTurns(turn_number=1, last_at=START)
    world.rows.rows |= {row_key: row.to_bytes(), timed_key(ENDS, row_key, START): b"{}"}

    async def look(days: int) -> list[str]:
        world.now, world.monotonic = START + days * DAY, world.monotonic + 3_600
        sessions.note(record(world.committed, world.now))
        world.committed += 1
        await sessions.end_rows(0, world.rows, later=lambda key: recent_at(world.rows, key, partition=0))
        return sorted(world.rows.rows)

    assert await look(100) == sorted(["acme/user/u1", row_key, timed_key(ENDS, row_key, START + 60 * DAY)])
    assert row_key in await look(149)
    assert await look(150) == ["acme/user/u1"]


async def test_the_index_row_of_a_row_that_was_written_since_moves_there() -> None:
    world = World()
    world.write(KEY, START + 60 * DAY, at=START)
    world.now += 100 * DAY
    world.handled(world.now)
    assert await world.look() == sorted([KEY, timed_key(ENDS, KEY, START + 60 * DAY)])


async def test_an_index_row_without_its_row_goes() -> None:
    world = World()
    world.rows.rows[timed_key(ENDS, KEY, START)] = b"{}"
    world.now += 100 * DAY
    world.handled(world.now)
    assert await world.look() == []


async def test_a_row_of_an_earlier_version_is_as_old_as_its_index_row() -> None:
    world = World()
    world.write(KEY, 0, at=START)
    world.now += 89 * DAY
    world.handled(world.now)
    assert KEY in await world.look()
    world.now += DAY
    world.handled(world.now)
    assert await world.look() == []


async def test_rows_never_end_without_days() -> None:
    world = World(days=0)
    world.write(KEY, START)
    world.now += 4_000 * DAY
    world.handled(world.now)
    assert KEY in await world.look()


@given(last_at=SECONDS, later=SECONDS)
def test_an_event_of_a_row_that_may_be_ended_writes_the_index_row_again(last_at: int, later: int) -> None:
    world = World()
    at = START + last_at + later
    world.now = at
    world.handled(at)
    if world.ends.is_old(START + last_at, 0):
        assert world.ends.entry(KEY, START + last_at, at) == {timed_key(ENDS, KEY, at): b"{}"}


def test_a_row_is_as_young_as_the_later_clock_says() -> None:
    world = World()
    assert world.ends.written_at(record(0, START - DAY), 0) == START
    assert world.ends.written_at(record(0, START + DAY), 0) == START + DAY
    assert world.ends.written_at(record(0, 0), START + 2 * DAY) == START + 2 * DAY


def test_a_record_that_is_dated_far_ahead_keeps_a_row_for_two_lives_at_most() -> None:
    world = World()
    last_at = 0
    for seconds in (START + 40_000 * DAY, START):
        last_at = world.ends.written_at(record(0, seconds), last_at)
        assert last_at == START + 90 * DAY
    assert world.ends.written_at(record(0, 0), START + 40_000 * DAY) == START + 90 * DAY, "of an earlier version"
    world.now += 180 * DAY
    world.handled(world.now)
    assert world.ends.is_old(last_at, 0)


@pytest.mark.parametrize(("days", "age"), [(90, DAY), (0, DAY), (0.5, DAY // 2)])
async def test_a_row_is_trimmed_after_a_day_or_with_its_end(days: float, age: int) -> None:
    world = World(days=days)
    world.write(KEY, START, index=TRIMS)
    world.now += age - 1
    world.handled(world.now)
    await world.look(TRIMS)
    assert world.ended == []
    world.now += 1
    world.handled(world.now)
    await world.look(TRIMS)
    assert world.ended == [KEY]


@pytest.mark.parametrize("index", [ENDS, TRIMS])
def test_an_index_row_lies_with_its_row(index: str) -> None:
    assert partition_key(timed_key(index, "acme/user/u1/acme/u1/s1", START)) == "acme/user/u1"


@given(ended=st.lists(st.integers(0, 9)))
def test_the_next_epoch_is_above_all_that_ended(ended: list[int]) -> None:
    epochs = SessionEpochs()
    for epoch in ended:
        epochs = epochs.above(epoch)
    assert epochs.next == max((epoch + 1 for epoch in ended), default=0)
    assert SessionEpochs.read(epochs.to_bytes()) == epochs


@pytest.mark.parametrize("raw", [b"[]", b'{"next":-1}', b'{"next":1,"row_version":%d}' % (EPOCHS_VERSION + 1)])
def test_epochs_of_a_later_version_stop_the_worker(raw: bytes) -> None:
    with pytest.raises(LaterVersion):
        SessionEpochs.read(raw)

"""Which partitions a stage looks at after an assignment."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from memstream.schemas.errors import Fatal, Transient
from memstream.streams.engine.decision import Rows
from memstream.streams.engine.handler import Stage
from memstream.streams.engine.no_rows import NoRows
from memstream.streams.faust.timer_ownership import TimerOwnership
from tests.support.faust_fakes import spin


class Found:
    """A stage that notes its partitions. `gate` holds it in the middle of one."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.done: list[int] = []
        self.kept: list[frozenset[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: list[Exception] = []
        self.ended: list[int] = []
        self.ending = asyncio.Event()
        self.ending.set()

    def retain(self, partitions: frozenset[int]) -> None:
        self.kept.append(partitions)

    async def end_rows(self, partition: int, rows: Rows) -> None:
        await self.ending.wait()
        self.ended.append(partition)

    async def rediscover(self, partition: int, rows: Rows) -> None:
        self.began.append(partition)
        if self.failures:
            raise self.failures.pop()
        await self.gate.wait()
        self.done.append(partition)


class World:
    def __init__(self) -> None:
        self.stage = Found()
        self.crashed: list[BaseException] = []
        self.timers = TimerOwnership(cast(Stage[Any], self.stage), NoRows(), crash=self._crash, pause=0, ends_pause=0)

    async def _crash(self, error: BaseException) -> None:
        self.crashed.append(error)

    async def given(self, *partitions: int) -> None:
        """One assignment, and two looks at it once its tables are there."""
        self.timers.stop()
        self.timers.assigned(frozenset(partitions))
        for _ in range(2):
            self.timers.take(frozenset(partitions))
            await spin()


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_partition_that_stays_is_not_looked_at_again(world: World) -> None:
    await world.given(0, 1)
    await world.given(0, 1)
    await world.given(1, 2)
    assert world.stage.done == [0, 1, 2]
    assert world.stage.kept == [frozenset((0, 1)), frozenset((1, 2))]


async def test_a_partition_that_was_given_away_in_between_is_looked_at_again(world: World) -> None:
    await world.given(0, 1)
    world.timers.assigned(frozenset((1,)))  # the tables of this assignment were never ready
    await world.given(0, 1)
    assert world.stage.done == [0, 1, 0]


async def test_a_search_that_was_cut_off_begins_again(world: World) -> None:
    world.stage.gate.clear()
    await world.given(0, 1)
    world.stage.gate.set()
    await world.given(0, 1)
    assert world.stage.done == [0, 1]
    assert world.stage.began == [0, 0, 1]


async def test_nothing_is_searched_after_partitions_are_revoked(world: World) -> None:
    world.stage.gate.clear()
    await world.given(0, 1)
    world.timers.stop()
    world.stage.gate.set()
    await spin()
    assert world.stage.done == []


async def test_a_broker_that_is_away_is_asked_again(world: World) -> None:
    world.stage.failures = [Transient("broker", "away")]
    await world.given(0)
    assert (world.stage.done, world.crashed) == ([0], [])


async def test_what_is_old_ends_in_the_partitions_that_are_known_and_stay(world: World) -> None:
    world.stage.gate.clear()
    await world.given(0, 1)
    assert world.stage.ended == [], "their timers are not complete"
    world.stage.gate.set()
    await spin()
    world.stage.ending.clear()
    world.timers.take(frozenset((0, 1)))
    await spin()
    world.timers.stop()  # revoked
    world.stage.ending.set()
    await spin()
    assert world.stage.ended == []
    await world.given(1, 2)
    await world.given(1, 2)
    assert set(world.stage.ended) == {1, 2}


async def test_a_row_that_is_not_understood_ends_the_worker(world: World) -> None:
    world.stage.failures = [Fatal("a row of a later version")]
    world.timers.assigned(frozenset((0,)))
    world.timers.take(frozenset((0,)))
    await spin()
    assert [str(error) for error in world.crashed] == ["a row of a later version"]

"""Lanes compared with a model under random delays, failures, revocations and redeliveries.

Checked: order per key, no commit past an unfinished event, no lost event, bounds of each partition.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.schemas.errors import OverBudget, StageError, Transient
from memstream.streams.engine.held_events import TP, BeyondTheEnd, LostDelivery
from memstream.streams.engine.lanes import Lanes
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.engine.retry import Interrupted
from memstream.streams.log.port import Position, Record
from tests.support.polling import wait_for

TOPIC_A, TOPIC_B = "a", "b"


def tenant_of(key: str) -> str:
    return "loud" if key in "vwx" else "calm"


def size_of(offset: int) -> int:
    return offset % 4 + 1


class World:
    """A log of several partitions, a consumer that delivers it, and the record of what was handled."""

    def __init__(
        self,
        log: dict[TP, list[str]],
        *,
        seed: int,
        in_flight: int,
        held: int = 1_000,
        fail: float = 0.0,
        held_bytes: int | None = None,
    ) -> None:
        self.log = log
        self.random = random.Random(seed)
        self.fail = fail
        self.committed: dict[TP, int] = {}
        self.acked: dict[TP, int] = {}
        self.handled: dict[tuple[int, str], list[tuple[TP, int]]] = defaultdict(list)
        self.done: set[tuple[TP, int]] = set()
        self.running: set[tuple[int, str]] = set()
        self.deciding: set[tuple[int, str]] = set()
        self.crashed: BaseException | None = None
        self.violations: list[str] = []
        self.generation = 0
        self.this_generation: set[tuple[TP, int]] = set()
        self.held = 0
        self.left: dict[TP, int] = {}
        """By partition: events of the batch that are still to be delivered."""
        self.in_flight, self.held_max = in_flight, held
        self.held_bytes = held_bytes
        """Bytes of a partition, beyond which records are set aside. None: they never are."""
        self.stripped: set[tuple[TP, int]] = set()
        self.lanes = self.start()

    def start(self) -> Lanes[tuple[TP, int]]:
        return Lanes(
            handle=self.handle,
            acknowledged=self.acknowledged,
            commit=self.commit,
            first_at_or_after=self.first_at_or_after,
            crash=self.crash,
            in_flight=self.in_flight,
            unacknowledged=self.held_max,
            drain_timeout=5.0,
            rereads=None if self.held_bytes is None else self,
            **({} if self.held_bytes is None else {"held_bytes": self.held_bytes}),
        )

    # ------------------------------------------------------------------------------------------------ set aside
    def strip(self, item: tuple[TP, int]) -> int:
        self.check(item not in self.stripped, "set aside twice")
        self.stripped.add(item)
        return item[1] % 2

    async def read(self, tp: TP, offset: int) -> AsyncGenerator[Record]:
        if self.random.random() < 0.1:
            raise Transient("broker", "away")
        for at in range(offset, len(self.log[tp])):
            if self.random.random() < 0.3:
                await asyncio.sleep(0)
            yield Record(Position(*tp, at), None, b"x" * size_of(at))

    def restore(self, item: tuple[TP, int], record: Record) -> None:
        self.check(item[1] == record.position.offset, "the record of another event")
        self.stripped.remove(item)

    # ------------------------------------------------------------------------------------------------ work

    async def handle(self, item: tuple[TP, int]) -> None:
        tp, offset = item
        lane = (tp[1], self.log[tp][offset])
        self.check(item not in self.stripped, "started without its record")
        self.check(lane not in self.running, "two events of one lane at once")
        self.check(len(self.deciding) < self.in_flight, "more in flight than allowed")
        held = max(self.lanes.held(tp) for tp in self.log)
        self.check(held <= self.held_max, "more of a partition is held than allowed")
        self.check(item not in self.this_generation, "handled twice in one assignment")
        self.check(not self.drained, "started after its partitions were drained")
        self.this_generation.add(item)
        self.running.add(lane)
        self.deciding.add(lane)
        try:
            for _ in range(self.random.randrange(4)):
                await asyncio.sleep(0)
            if self.random.random() < 0.5:  # what is left are effects; told twice it counts once
                self.deciding.discard(lane)
                self.lanes.release_slot()
                self.lanes.release_slot()
                for _ in range(self.random.randrange(4)):
                    await asyncio.sleep(0)
            if self.random.random() < self.fail:
                raise RuntimeError("on purpose")
            self.handled[lane].append(item)
            self.done.add(item)
            await self.take_along(lane)
        finally:
            self.running.discard(lane)
            self.deciding.discard(lane)

    drained = False

    async def take_along(self, lane: tuple[int, str]) -> None:
        """Have the effects of some of the events that are queued in the lane."""
        taken = list(self.lanes.queued())[: self.random.randrange(3)]
        for each in taken:
            self.check(each not in self.stripped, "taken along without its record")
            self.check(each not in self.this_generation, "covered after it was handled")
            self.this_generation.add(each)
            self.handled[lane].append(each)
            self.done.add(each)
        await self.lanes.cover(len(taken))

    def check(self, holds: bool, what: str) -> None:
        """Note a broken rule. It is not raised, because the lanes would treat it as a failure of the handler."""
        if not holds:
            self.violations.append(what)

    async def acknowledged(self, tp: TP, offset: int) -> None:
        self.check(offset > self.acked.get(tp, 0), "acknowledged out of order")
        self.check(all((tp, before) in self.done for before in range(offset)), "acknowledged past unfinished")
        self.check(self.lanes.committable()[tp] >= offset, "what is acknowledged may be committed")
        self.acked[tp] = offset
        self.committed[tp] = offset

    async def commit(self, offsets: Mapping[TP, int]) -> bool:
        for tp, offset in offsets.items():
            self.check(all((tp, before) in self.done for before in range(offset)), "committed past unfinished")
            self.committed[tp] = max(self.committed.get(tp, 0), offset)
        return True

    async def first_at_or_after(self, tp: TP, offset: int) -> int | None:
        return offset if offset < len(self.log[tp]) else None

    async def crash(self, failure: BaseException) -> None:
        self.crashed = failure

    async def deliver(self, revocations: list[int]) -> None:
        """Deliver from the committed offsets, partitions in random order, with a revocation after each count."""
        pending = {tp: self.committed.get(tp, 0) for tp in self.log}
        self.left.clear()
        began = dict(pending)
        generation = self.generation
        delivered = 0
        while any(pending[tp] < len(self.log[tp]) for tp in pending) and self.crashed is None:
            if revocations and delivered >= revocations[0]:
                revocations.pop(0)
                self.generation += 1
                await self.lanes.drain(frozenset(self.log))
                self.drained = True
                for _ in range(20):
                    await asyncio.sleep(0)
                self.acked.clear()
                self.this_generation.clear()
                self.stripped.clear()
                self.drained = False
                return
            in_hand = self.random.random() < 0.3  # it was fetched before there was no room
            open_tps = [
                tp for tp in pending if pending[tp] < len(self.log[tp]) and (in_hand or self.lanes.has_room(tp))
            ]
            if not open_tps:
                await asyncio.sleep(0)
                continue
            tp = self.random.choice(open_tps)
            offset = pending[tp]
            pending[tp] += 1
            delivered += 1
            in_batch = self.left.get(tp, 0) or self.random.randrange(1, 6)
            self.left[tp] = min(in_batch, len(self.log[tp]) - offset) - 1
            self.lanes.submit(
                tp,
                offset,
                self.log[tp][offset],
                (tp, offset),
                committed=began[tp],
                current=self.generation == generation,
                left=self.left[tp],
                tenant=tenant_of(self.log[tp][offset]),
                size=size_of(offset),
            )
            if self.random.random() < 0.05 and offset > began[tp]:  # the consumer delivers something again
                self.lanes.submit(
                    tp,
                    offset - 1,
                    self.log[tp][offset - 1],
                    (tp, offset - 1),
                    committed=began[tp],
                    current=self.generation == generation,
                    tenant=tenant_of(self.log[tp][offset - 1]),
                    size=size_of(offset - 1),
                )
        await wait_for(
            lambda: (self.lanes.idle() and not any(map(self.lanes.held, self.log))) or self.crashed is not None,
            "empty lanes or a crash",
            deadline=10,
            pause=0,
        )

    def finished_of(self, tp: TP) -> Callable[[], bool]:
        return lambda: self.committed.get(tp, 0) == len(self.log[tp])

    def finished(self) -> bool:
        return all(self.committed.get(tp, 0) == len(keys) for tp, keys in self.log.items())


logs = st.dictionaries(
    st.tuples(st.sampled_from([TOPIC_A, TOPIC_B]), st.integers(0, 1)),
    st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=25),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(
    log=logs,
    seed=st.integers(0, 10_000),
    in_flight=st.integers(1, 6),
    held=st.integers(1, 12),
    revocations=st.lists(st.integers(0, 40), max_size=4),
    fail=st.sampled_from([0.0, 0.0, 0.05]),
    held_bytes=st.sampled_from([None, 3, 8, 30]),
)
def test_order_and_commits_hold_and_no_event_is_lost(
    log: dict[TP, list[str]],
    seed: int,
    in_flight: int,
    held: int,
    revocations: list[int],
    fail: float,
    held_bytes: int | None,
) -> None:
    async def scenario() -> None:
        world = World(log, seed=seed, in_flight=in_flight, held=held, fail=fail, held_bytes=held_bytes)
        for _ in range(200):
            await world.deliver(revocations)
            if world.crashed is not None:  # the supervisor starts it again
                await world.lanes.drain(frozenset(log))
                world.crashed, world.acked, world.lanes = None, {}, world.start()
                world.this_generation.clear()
                world.stripped.clear()
            if world.finished():
                break
        assert world.violations == []
        assert world.finished(), "an event was lost"
        for (_, key), items in world.handled.items():
            first: dict[TP, list[int]] = defaultdict(list)
            for tp, offset in items:
                if offset not in first[tp]:
                    first[tp].append(offset)
            for tp, offsets in first.items():
                expected = [offset for offset, k in enumerate(log[tp]) if k == key and offset in offsets]
                assert offsets == expected, "order of a key broken"
        everything = {(tp, offset) for tp, keys in log.items() for offset in range(len(keys))}
        assert world.done == everything

    asyncio.run(scenario())


async def crashed(world: World) -> None:
    await wait_for(lambda: world.crashed is not None, "a crash", deadline=10, pause=0)


async def test_a_jump_over_an_existing_record_crashes() -> None:
    world = World({(TOPIC_A, 0): ["x", "x", "x"]}, seed=1, in_flight=2)
    world.lanes.submit((TOPIC_A, 0), 2, "x", ((TOPIC_A, 0), 2), committed=0)
    await crashed(world)
    assert isinstance(world.crashed, LostDelivery)
    assert world.done == set()


async def test_an_offset_before_the_committed_one_stops_the_worker() -> None:
    """The consumer began at the start again, because the group's offset lies beyond the end of a new log."""
    world = World({(TOPIC_A, 0): ["x", "x"]}, seed=1, in_flight=2)
    world.lanes.submit((TOPIC_A, 0), 0, "x", ((TOPIC_A, 0), 0), committed=500)
    await crashed(world)
    assert isinstance(world.crashed, BeyondTheEnd)
    assert "500" in str(world.crashed)
    assert "reset the group's offsets" in str(world.crashed)
    assert world.done == set()


async def test_a_jump_over_offsets_that_the_log_lacks_is_accepted() -> None:
    world = World({(TOPIC_A, 0): ["x", "x", "x"]}, seed=1, in_flight=2)

    async def compacted(tp: TP, offset: int) -> int | None:
        return 2

    passed: list[tuple[TP, int, int]] = []

    async def passed_over(tp: TP, first: int, until: int) -> None:
        assert world.lanes.committable() == {}, "it is noted before it can be committed"
        passed.append((tp, first, until))

    world.lanes._first_at_or_after, world.lanes._passed_over = compacted, passed_over
    world.lanes._acknowledged = None
    world.lanes.submit((TOPIC_A, 0), 2, "x", ((TOPIC_A, 0), 2), committed=0)
    await wait_for(lambda: world.lanes.committable() == {(TOPIC_A, 0): 3}, "the event", deadline=10, pause=0)
    assert world.crashed is None
    assert passed == [((TOPIC_A, 0), 0, 2)]


async def test_after_a_failure_nothing_more_of_the_epoch_starts() -> None:
    """Once the lane of a failed event went on with the next event of the key."""
    log = {(TOPIC_A, 0): ["x", "x", "y", "y"]}
    world = World(log, seed=1, in_flight=1)
    handled: list[int] = []

    async def handle(item: tuple[TP, int]) -> None:
        handled.append(item[1])
        if item[1] == 0:
            raise RuntimeError("on purpose")

    world.lanes._handle = handle
    for offset, key in enumerate(log[TOPIC_A, 0]):
        world.lanes.submit((TOPIC_A, 0), offset, key, ((TOPIC_A, 0), offset), committed=0)
    await wait_for(world.lanes.idle, "idle lanes", deadline=10, pause=0)
    assert isinstance(world.crashed, RuntimeError)
    assert handled == [0]
    assert world.committed == {}


async def test_a_lost_lease_holds_the_event_until_it_is_back() -> None:
    world = World({(TOPIC_A, 0): ["x"]}, seed=1, in_flight=1)
    lease = {"ok": False}
    attempts: list[bool] = []

    async def handle(item: tuple[TP, int]) -> None:
        attempts.append(lease["ok"])
        if not lease["ok"]:
            lease["ok"] = len(attempts) >= 1
            raise LeaseLost("away")
        world.done.add(item)

    world.lanes._handle = handle
    world.lanes._lease_ok = lambda: lease["ok"]
    world.lanes.submit((TOPIC_A, 0), 0, "x", ((TOPIC_A, 0), 0), committed=0)
    await wait_for(world.lanes.idle, "idle lanes", deadline=10, pause=0)
    assert attempts == [False, True]
    assert world.committed == {(TOPIC_A, 0): 1}


@pytest.mark.parametrize(
    "failure", [Interrupted("partitions go away"), Transient("store", "away"), OverBudget("spent", retry_after=1.0)]
)
async def test_a_wait_cut_short_by_a_revocation_is_no_failure(failure: StageError) -> None:
    world = World({(TOPIC_A, 0): ["x"]}, seed=1, in_flight=1)
    waiting = asyncio.Event()
    interrupted = asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        waiting.set()
        await interrupted.wait()
        raise failure

    world.lanes._handle = handle
    world.lanes._interrupt = interrupted.set
    world.lanes.submit((TOPIC_A, 0), 0, "x", ((TOPIC_A, 0), 0), committed=0)
    await waiting.wait()
    await world.lanes.drain(frozenset({(TOPIC_A, 0)}))
    assert interrupted.is_set(), "who waits for the outside is told at once"
    assert world.crashed is None
    assert world.committed == {}
    assert world.lanes.stats.held == 0
    assert world.lanes.stats.held_by == {}


async def test_an_event_of_an_older_assignment_is_dropped() -> None:
    world = World({(TOPIC_A, 0): ["x"]}, seed=1, in_flight=1)
    world.lanes.submit((TOPIC_A, 0), 0, "x", ((TOPIC_A, 0), 0), committed=0, current=False)
    await wait_for(world.lanes.idle, "idle lanes", deadline=10, pause=0)
    assert world.done == set()
    assert world.lanes.stats.dropped == 1
    assert world.lanes.stats.held == 0
    assert world.lanes.stats.held_by == {}


@pytest.mark.parametrize("bound", ["events", "bytes"])
async def test_a_partition_without_room_is_fetched_again_when_it_has_room(bound: str) -> None:
    """The bound is 8, of events or of bytes; it opens at 6."""
    tp, other = (TOPIC_A, 0), (TOPIC_A, 1)
    log = {tp: ["x"] * 10, other: ["y"]}
    world = World(log, seed=1, in_flight=1)
    gates = [asyncio.Event() for _ in range(10)]
    again: list[bool] = []
    world.lanes._has_room_again = lambda: again.append(world.lanes.has_room(tp))
    if bound == "events":
        world.lanes._unacknowledged = 8
    else:
        world.lanes._held_bytes, world.lanes._partitions = 16, lambda: 2

    async def handle(item: tuple[TP, int]) -> None:
        if item[0] == tp:
            await gates[item[1]].wait()
        world.done.add(item)

    world.lanes._handle = handle
    for offset in range(10):  # the last two were in the consumer's hand
        assert world.lanes.has_room(tp) is (offset < 8)
        world.lanes.submit(tp, offset, "x", (tp, offset), committed=0, size=1)
    assert (world.lanes.stats.held, world.lanes.stats.held_bytes, world.lanes.full()) == (10, 10, 1)
    assert world.lanes.held(tp) == (8 if bound == "events" else 10)
    assert world.lanes.has_room(other), "only this partition has no room"
    for offset in range(3):
        gates[offset].set()
        await wait_for(lambda: world.committed.get(tp) == offset + 1, "the event", deadline=10, pause=0)  # noqa: B023
        assert not world.lanes.has_room(tp)
    gates[3].set()
    await wait_for(lambda: again == [True], "room again, told once", deadline=10, pause=0)
    for gate in gates:
        gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)
    assert (again, world.lanes.stats.held_bytes) == ([True], 0)


async def test_bytes_of_done_events_make_room_behind_an_unfinished_head() -> None:
    tp = (TOPIC_A, 0)
    world = World({tp: ["slow"] + ["x"] * 7}, seed=1, in_flight=2)
    world.lanes._held_bytes = 8
    gate = asyncio.Event()
    again: list[bool] = []
    world.lanes._has_room_again = lambda: again.append(world.lanes.has_room(tp))

    async def handle(item: tuple[TP, int]) -> None:
        if item[1] == 0:
            await gate.wait()
        world.done.add(item)

    world.lanes._handle = handle
    for offset, key in enumerate(world.log[tp]):
        world.lanes.submit(tp, offset, key, (tp, offset), committed=0, size=1)
    assert not world.lanes.has_room(tp)
    await wait_for(lambda: again == [True], "room, though the head is not done", deadline=10, pause=0)
    gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)


@pytest.mark.parametrize("lanes", [50, 500])
async def test_a_backlog_of_large_records_keeps_no_other_tenant_from_being_delivered(lanes: int) -> None:
    """A tenant's records of 20 KB filled the bytes of its partition, and the records behind them were not fetched."""
    tp, size = (TOPIC_A, 0), 20_000
    keys = [f"loud-{n % lanes}" for n in range(500)] + ["calm"]
    world = World({tp: keys}, seed=1, in_flight=8, held_bytes=100 * size)
    gate = asyncio.Event()
    most = 0

    async def handle(item: tuple[TP, int]) -> None:
        nonlocal most
        world.check(item not in world.stripped, "started without its record")
        most = max(most, world.lanes.stats.held_bytes)
        if keys[item[1]] != "calm" and item[1] >= 10:
            await gate.wait()
        world.done.add(item)

    async def read(tp: TP, offset: int) -> AsyncGenerator[Record]:
        for at in range(offset, len(keys)):
            yield Record(Position(*tp, at), None, b"x" * size)

    world.lanes._handle, world.read = handle, read  # type: ignore[method-assign]
    world.random.random = lambda: 1.0  # type: ignore[method-assign]
    for offset, key in enumerate(keys):
        assert world.lanes.has_room(tp), f"record {offset} would not be fetched"
        tenant = key.partition("-")[0]
        world.lanes.submit(tp, offset, key, (tp, offset), committed=0, tenant=tenant, size=size)
    await wait_for(lambda: (tp, 500) in world.done, "the calm tenant's event", deadline=10, pause=0)
    assert world.committed[tp] <= 10, "nothing is committed before an event that is not done"
    assert world.lanes.stats.held == 490
    gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)
    assert world.violations == []
    assert most <= 101 * size
    assert (world.lanes.stats.held_bytes, world.stripped) == (0, set())
    assert world.lanes.stats.held == 0


async def test_a_tenant_whose_only_event_to_start_has_started_gets_another_record() -> None:
    """`v` starts and is blocked, with no event of the partition done after it. The record of `w` is read again, and is
    not set aside again, although the partition holds more than its bytes.
    """
    tp = (TOPIC_A, 0)
    keys = ["free", "hog", "last", "v", "v", "v", "v", "w", "more"]
    sizes = [3, 14, 1, 4, 4, 4, 4, 4, 4]
    world = World({tp: keys}, seed=1, in_flight=3, held_bytes=38)
    gates = {key: asyncio.Event() for key in keys}
    stripped: list[str] = []

    async def handle(item: tuple[TP, int]) -> None:
        await gates[keys[item[1]]].wait()
        world.done.add(item)

    def strip(item: tuple[TP, int]) -> int:
        stripped.append(keys[item[1]])
        world.stripped.add(item)
        return 0

    async def read(tp: TP, offset: int) -> AsyncGenerator[Record]:
        for at in range(offset, len(keys)):
            yield Record(Position(*tp, at), None, b"x" * 4)

    world.lanes._handle, world.strip, world.read = handle, strip, read  # type: ignore[method-assign]
    submit = partial(world.lanes.submit, committed=0)
    for offset, (key, size) in enumerate(zip(keys[:-1], sizes, strict=False)):
        submit(tp, offset, key, (tp, offset), tenant="loud" if key in "vw" else key, size=size)
        await asyncio.sleep(0)
    assert stripped == ["w"]
    gates["free"].set()
    await wait_for(lambda: not world.stripped, "the record of w", deadline=10, pause=0)
    assert world.lanes.stats.held_bytes == 35
    submit(tp, 8, "more", (tp, 8), tenant="more", size=4)
    assert stripped == ["w", "v"]
    for gate in gates.values():
        gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)


async def test_records_of_a_starving_tenant_use_a_quarter_of_the_bytes() -> None:
    """Blocked events of two tenants hold more than half of the bytes. The third tenant gets records nevertheless, and
    no more than its share, although it has more events without their records.
    """
    tp = (TOPIC_A, 0)
    keys = ["x", "y", *(f"loud-{n}" for n in range(12))]
    world = World({tp: keys}, seed=1, in_flight=20, held_bytes=40)
    blocked, loud = asyncio.Event(), asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        if keys[item[1]] in "xy":
            await blocked.wait()
        elif item[1] >= 6:
            await loud.wait()
        world.done.add(item)

    def strip(item: tuple[TP, int]) -> int:
        world.stripped.add(item)
        return 0

    async def read(tp: TP, offset: int) -> AsyncGenerator[Record]:
        for at in range(offset, len(keys)):
            yield Record(Position(*tp, at), None, b"x" * 4)

    world.lanes._handle, world.strip, world.read = handle, strip, read  # type: ignore[method-assign]
    for offset, key in enumerate(keys):
        tenant, _, lane = key.partition("-")
        world.lanes.submit(
            tp,
            offset,
            key,
            (tp, offset),
            committed=0,
            tenant=tenant,
            size=4 if lane else 11,
            left=len(keys) - offset - 1,
        )
    await wait_for(lambda: len(world.stripped) == 5, "three more records", deadline=10, pause=0)
    assert world.lanes.stats.held_bytes == 22 + 12
    loud.set()
    await wait_for(lambda: len(world.done) == 12, "every event of the third tenant", deadline=10, pause=0)
    blocked.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)


@given(
    keys=st.lists(st.sampled_from("abvwx"), min_size=1, max_size=80),
    blocked=st.sampled_from(["", "a", "ab", "v", "vw"]),
    seed=st.integers(0, 9),
    limit=st.sampled_from([12, 20, 40]),
)
def test_a_tenants_blocked_lanes_hold_up_no_other_tenant_whatever_was_set_aside(
    keys: list[str], blocked: str, seed: int, limit: int
) -> None:
    tp = (TOPIC_A, 0)

    async def scenario() -> None:
        world = World({tp: keys}, seed=seed, in_flight=4, held_bytes=limit)
        gate = asyncio.Event()

        async def handle(item: tuple[TP, int]) -> None:
            world.check(item not in world.stripped, "started without its record")
            if keys[item[1]] in blocked:
                await gate.wait()
            world.done.add(item)

        def strip(item: tuple[TP, int]) -> int:
            world.stripped.add(item)
            return 0

        world.lanes._handle, world.strip = handle, strip  # type: ignore[method-assign]
        for offset, key in enumerate(keys):
            await wait_for(partial(world.lanes.has_room, tp), f"room for {offset}", deadline=10, pause=0)
            world.lanes.submit(tp, offset, key, (tp, offset), committed=0, tenant=tenant_of(key), size=size_of(offset))
        others = {(tp, offset) for offset, key in enumerate(keys) if tenant_of(key) not in map(tenant_of, blocked)}
        await wait_for(lambda: others <= world.done, "every event of the other tenants", deadline=10, pause=0)
        gate.set()
        await wait_for(lambda: len(world.done) == len(keys), "every event", deadline=10, pause=0)
        assert world.violations == []
        assert world.crashed is None
        assert (world.lanes.stats.held_bytes, world.stripped) == (0, set())

    asyncio.run(scenario())


@pytest.mark.parametrize("failure", [None, RuntimeError("nobody expected this")])
async def test_a_record_that_cannot_be_read_again_stops_the_worker(failure: Exception | None) -> None:
    """A record that is gone from the log (None) is noted as a hole after the restart."""
    tp = (TOPIC_A, 0)
    world = World({tp: ["x"] * 20}, seed=1, in_flight=1, held_bytes=8)
    gate = asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        await gate.wait()
        world.done.add(item)

    async def read(tp: TP, offset: int) -> AsyncGenerator[Record]:
        if failure is not None:
            raise failure
        yield Record(Position(*tp, 15), None, b"x")

    world.lanes._handle, world.read = handle, read  # type: ignore[method-assign]
    for offset in range(20):
        world.lanes.submit(tp, offset, "x", (tp, offset), committed=0, tenant="loud", size=1)
    gate.set()
    await crashed(world)
    assert isinstance(world.crashed, LostDelivery if failure is None else RuntimeError)
    assert world.violations == []
    assert world.committed.get(tp, 0) < 15


async def test_a_large_record_that_comes_again_leaves_no_partition_without_room() -> None:
    tp = (TOPIC_A, 0)
    world = World({tp: ["x"]}, seed=1, in_flight=2)
    world.lanes._held_bytes = 8
    for _ in range(2):
        world.lanes.submit(tp, 0, "x", (tp, 0), committed=0, size=100)
        await wait_for(world.finished_of(tp), "the event", deadline=10, pause=0)
    assert (world.lanes.stats.redelivered, world.lanes.stats.held_bytes) == (1, 0)
    assert world.lanes.has_room(tp)


async def test_a_hot_key_holds_up_nobody_else() -> None:
    """Once the waiting events of one session filled the backlog that all partitions shared."""
    tp, other = (TOPIC_A, 0), (TOPIC_A, 1)
    log = {tp: ["hot"] * 300 + ["x"], other: ["y"]}
    world = World(log, seed=1, in_flight=2)
    gate = asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        if log[item[0]][item[1]] == "hot":
            await gate.wait()
        world.done.add(item)

    world.lanes._handle = handle
    for each, keys in log.items():
        for offset, key in enumerate(keys):
            world.lanes.submit(each, offset, key, (each, offset), committed=0)
    await wait_for(lambda: world.done == {(tp, 300), (other, 0)}, "the two others", deadline=10, pause=0)
    assert world.lanes.stats.most_running == 2
    gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)


async def test_a_done_event_behind_an_unfinished_one_keeps_neither_record_nor_work() -> None:
    tp = (TOPIC_A, 0)
    world = World({tp: ["slow", "x"]}, seed=1, in_flight=2)
    gate = asyncio.Event()

    class Item:
        """What the runner keeps of an event."""

    items = [Item(), Item()]
    kept = [weakref.ref(item) for item in items]

    async def handle(item: object) -> None:
        if item is kept[0]():
            del item
            await gate.wait()

    world.lanes._handle = handle  # type: ignore[assignment]
    for offset, key in enumerate(world.log[tp]):
        world.lanes.submit(tp, offset, key, items[offset], committed=0, size=100)  # type: ignore[arg-type]
    items.clear()
    await wait_for(lambda: kept[1]() is None, "the done event to be forgotten", deadline=10, pause=0)
    assert (world.lanes.held(tp), world.lanes.stats.held, world.lanes.stats.held_bytes) == (2, 1, 100)
    world.lanes._acknowledged = None
    gate.set()
    await wait_for(lambda: world.lanes.committable() == {tp: 2}, "both events", deadline=10, pause=0)


async def test_a_free_slot_goes_to_the_tenant_with_the_fewest() -> None:
    """Three slots; one tenant has all of them and five more sessions waiting when another one comes."""
    tp = (TOPIC_A, 0)
    log = {tp: [f"flood/{n}" for n in range(8)] + ["calm/0", "calm/1"]}
    world = World(log, seed=1, in_flight=3)
    gates = [asyncio.Event() for _ in log[tp]]
    begun: list[int] = []

    async def handle(item: tuple[TP, int]) -> None:
        begun.append(item[1])
        await gates[item[1]].wait()
        world.done.add(item)

    world.lanes._handle = handle
    for offset, key in enumerate(log[tp]):
        world.lanes.submit(tp, offset, key, (tp, offset), committed=0, tenant=key.partition("/")[0])
    await wait_for(lambda: begun == [0, 1, 2], "three events", deadline=10, pause=0)
    gates[0].set()
    await wait_for(lambda: begun[3:] == [8], "the next place is the other tenant's", deadline=10, pause=0)
    gates[1].set()
    await wait_for(lambda: begun[4:] == [3] or begun[4:] == [9], "a tie", deadline=10, pause=0)
    for gate in gates:
        gate.set()
    await wait_for(world.finished_of(tp), "every event", deadline=10, pause=0)


@pytest.mark.parametrize(("follows", "asked"), [(0, 0), (1, 0), (2, 1), (None, 1)])
async def test_the_log_is_asked_about_a_hole_that_the_fetches_do_not_explain(follows: int | None, asked: int) -> None:
    """Offsets 0 and 3; the consumer has seen from `follows` on that nothing lies before 3."""
    tp = (TOPIC_A, 0)
    world = World({tp: ["x"] * 4}, seed=1, in_flight=2)
    questions: list[int] = []

    async def first_at_or_after(tp: TP, offset: int) -> int | None:
        questions.append(offset)
        return 3

    world.lanes._first_at_or_after = first_at_or_after
    world.lanes._acknowledged = None
    world.lanes.submit(tp, 0, "x", (tp, 0), committed=0, follows=0)
    world.lanes.submit(tp, 3, "x", (tp, 3), committed=0, follows=follows)
    await wait_for(lambda: world.lanes.committable() == {tp: 4}, "both events", deadline=10, pause=0)
    assert questions == [1] * asked


async def test_a_record_that_was_fetched_and_not_delivered_is_missed() -> None:
    """The fetches prove that nothing lies between offsets 2 and 4; offset 2 itself never came."""
    tp = (TOPIC_A, 0)
    world = World({tp: ["x"] * 5}, seed=1, in_flight=2)
    world.lanes.submit(tp, 0, "x", (tp, 0), committed=0, follows=0)
    world.lanes.submit(tp, 4, "x", (tp, 4), committed=0, follows=3)
    await crashed(world)
    assert isinstance(world.crashed, LostDelivery)


async def test_a_hole_that_the_log_does_not_explain_yet_holds_up_its_own_partition() -> None:
    tp, other = (TOPIC_A, 0), (TOPIC_A, 1)
    world = World({tp: ["x"] * 3, other: ["y"]}, seed=1, in_flight=2)
    answer = asyncio.Event()

    async def first_at_or_after(tp: TP, offset: int) -> int | None:
        await answer.wait()
        return 1

    world.lanes._first_at_or_after = first_at_or_after
    world.lanes._acknowledged = None
    world.lanes.submit(tp, 1, "x", (tp, 1), committed=0)
    world.lanes.submit(tp, 2, "x", (tp, 2), committed=0)
    world.lanes.submit(other, 0, "y", (other, 0), committed=0)
    await wait_for(lambda: world.done == {(other, 0)}, "the other partition", deadline=10, pause=0)
    answer.set()
    await wait_for(lambda: world.lanes.committable() == {tp: 3, other: 1}, "all", deadline=10, pause=0)
    assert [item[1] for item in world.handled[0, "x"]] == [1, 2]


async def test_a_drain_drops_what_has_not_started_and_commits_what_ran() -> None:
    log = {(TOPIC_A, 0): ["x"] * 5}
    world = World(log, seed=1, in_flight=1)
    started, gate = asyncio.Event(), asyncio.Event()
    handled: list[int] = []

    async def handle(item: tuple[TP, int]) -> None:
        started.set()
        await gate.wait()
        handled.append(item[1])
        world.done.add(item)

    world.lanes._handle = handle
    for offset in range(5):
        world.lanes.submit((TOPIC_A, 0), offset, "x", ((TOPIC_A, 0), offset), committed=0)
    await started.wait()
    draining = asyncio.create_task(world.lanes.drain(frozenset(log)))
    await asyncio.sleep(0)
    gate.set()
    await draining
    assert handled == [0], "only the one that ran"
    assert world.acked == {}, "Faust has forgotten its acks by then: the offsets are committed by name"
    assert world.committed == {(TOPIC_A, 0): 1}
    assert world.lanes.stats.held == 0
    assert world.lanes.stats.held_by == {}


async def test_a_stop_finishes_events_before_one_that_began_so_that_it_is_committed() -> None:
    """Offsets 0 to 5 of the keys x y x y x y, two slots. The first of y is done, the first of x runs."""
    tp = (TOPIC_A, 0)
    log = {tp: ["x", "y", "x", "y", "x", "y"]}
    world = World(log, seed=1, in_flight=2)
    gates = {offset: asyncio.Event() for offset in range(6)}
    begun: list[int] = []

    async def handle(item: tuple[TP, int]) -> None:
        begun.append(item[1])
        await gates[item[1]].wait()
        world.done.add(item)

    world.lanes._handle = handle
    for offset in range(6):
        world.lanes.submit(tp, offset, log[tp][offset], (tp, offset), committed=0)
    gates[1].set()
    await wait_for(lambda: 3 in begun, "the start of event 3", deadline=10, pause=0)
    assert begun == [0, 1, 3]
    stopping = asyncio.create_task(world.lanes.finish())
    await asyncio.sleep(0)
    held = world.lanes.stats.held
    world.lanes.submit(tp, 6, "z", (tp, 6), committed=0)
    assert world.lanes.stats.held == held, "nothing new is taken"
    for gate in gates.values():
        gate.set()
    await stopping
    assert begun == [0, 1, 3, 2], "2 lies before 3, which began; 4 and 5 come again"
    await world.lanes.drain(frozenset(log))
    assert world.committed == {tp: 4}
    assert world.lanes.stats.held == 0
    assert world.lanes.stats.held_by == {}


async def test_a_stop_does_not_wait_for_ever() -> None:
    tp = (TOPIC_A, 0)
    world = World({tp: ["x"]}, seed=1, in_flight=1)
    world.lanes._finish_timeout = world.lanes._drain_timeout = 0.01

    async def handle(item: tuple[TP, int]) -> None:
        await asyncio.Event().wait()

    world.lanes._handle = handle
    world.lanes.submit(tp, 0, "x", (tp, 0), committed=0)
    await world.lanes.finish()
    await world.lanes.drain(frozenset({tp}))
    assert world.committed == {}


async def test_the_events_behind_a_slow_one_are_bounded() -> None:
    """After a crash no more events of a key may be redelivered than a stage remembers."""
    log = {(TOPIC_A, 0): ["slow"] + ["x"] * 30, (TOPIC_B, 0): ["y"] * 3}
    world = World(log, seed=1, in_flight=4, held=10)
    gate = asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        if item == ((TOPIC_A, 0), 0):
            await gate.wait()
        world.done.add(item)

    world.lanes._handle = handle
    for tp, keys in log.items():
        for offset, key in enumerate(keys):
            world.lanes.submit(tp, offset, key, (tp, offset), committed=0)
    await wait_for(lambda: len(world.done) == 9 + 3, "12 finished events", deadline=10, pause=0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(world.done) == 9 + 3, "the slow one and nine behind it, and no more"
    assert world.committed == {(TOPIC_B, 0): 3}
    gate.set()
    await wait_for(world.finished, "every event", deadline=10, pause=0)


@pytest.mark.parametrize("how", ["drain", "crash"])
async def test_nothing_waits_for_room_when_the_epoch_ends(how: str) -> None:
    log = {(TOPIC_A, 0): ["slow", "x", "y", "z"]}
    world = World(log, seed=1, in_flight=4, held=2)
    fail = asyncio.Event()

    async def handle(item: tuple[TP, int]) -> None:
        if item[1] == 0:
            await fail.wait()
            raise RuntimeError("on purpose")
        world.done.add(item)

    world.lanes._handle = handle
    for offset, key in enumerate(log[TOPIC_A, 0]):
        world.lanes.submit((TOPIC_A, 0), offset, key, ((TOPIC_A, 0), offset), committed=0)
    await wait_for(lambda: len(world.done) == 1, "one finished event", deadline=10, pause=0)
    assert not world.lanes.has_room((TOPIC_A, 0))
    if how == "drain":
        world.lanes._drain_timeout = 0.01
        await world.lanes.drain(frozenset(log))
        assert world.lanes.has_room((TOPIC_A, 0))
    else:
        fail.set()
    await wait_for(world.lanes.idle, "idle lanes", deadline=10, pause=0)
    assert (world.committed, world.lanes.committable()) == ({}, {})
    assert (len(world.done), world.lanes.stats.held) == (1, 0)


async def test_a_jump_is_checked_again_after_an_outage_of_the_log() -> None:
    world = World({(TOPIC_A, 0): ["x", "x", "x"]}, seed=1, in_flight=2)
    answers: list[int | Exception] = [Transient("broker", "away"), Transient("broker", "away"), 2]

    async def first_at_or_after(tp: TP, offset: int) -> int | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    world.lanes._first_at_or_after = first_at_or_after
    world.lanes._acknowledged = None
    world.lanes.submit((TOPIC_A, 0), 2, "x", ((TOPIC_A, 0), 2), committed=0)
    await wait_for(lambda: world.lanes.committable() == {(TOPIC_A, 0): 3}, "the event", deadline=10, pause=0)
    assert (answers, world.crashed) == ([], None)


@pytest.mark.parametrize("by", ["a failed event", "the app"])
async def test_a_drain_after_a_crash_does_not_wait(by: str) -> None:
    """A crash ends the producer's buffer, so a wait for a changelog entry would never end."""
    log = {(TOPIC_A, 0): ["done", "stuck", "odd"]}
    world = World(log, seed=1, in_flight=4)
    crashed = [False]
    world.lanes._crashed = lambda: crashed[0]
    world.lanes._drain_timeout = 60.0
    cancelled: list[int] = []

    async def handle(item: tuple[TP, int]) -> None:
        if item[1] == 1:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(1)
        if item[1] == 2 and by == "a failed event":
            raise RuntimeError("on purpose")
        world.done.add(item)

    world.lanes._handle = handle
    world.lanes._acknowledged = None
    for offset, key in enumerate(log[TOPIC_A, 0]):
        item = ((TOPIC_A, 0), offset)
        world.lanes.submit((TOPIC_A, 0), offset, key, item, committed=0)
    await wait_for(
        lambda: world.crashed is not None or len(world.done) == 2,
        "a crash or two finished events",
        deadline=10,
        pause=0,
    )
    crashed[0] = by == "the app"
    await asyncio.wait_for(world.lanes.drain(frozenset(log)), 5)
    assert cancelled == [1]
    assert world.committed == {}, "a worker that crashes commits nothing"


async def test_an_event_whose_decision_stands_gives_its_slot_back() -> None:
    """With one slot, the second event is decided while the first one's effects are applied."""
    effects, decided = asyncio.Event(), asyncio.Event()

    async def handle(item: str) -> None:
        if item == "second":
            decided.set()
            return
        lanes.release_slot()
        await effects.wait()

    async def nothing(*_: object) -> None:
        return None

    async def committed(offsets: object) -> bool:
        return True

    lanes: Lanes[str] = Lanes(
        handle=handle,
        commit=committed,
        first_at_or_after=nothing,
        crash=nothing,
        in_flight=1,
    )
    for offset, item in enumerate(("first", "second")):
        lanes.submit((TOPIC_A, 0), offset, item, item, committed=0)
    await asyncio.wait_for(decided.wait(), 5)
    assert lanes.stats.running == 1
    effects.set()
    await lanes.close()

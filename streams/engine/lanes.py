"""Keyed lanes: events of different keys side by side, those of one key strictly in order, offsets acknowledged
strictly in order per partition.

A lane is (partition number, key) over all topics of the stage. The module knows nothing of Faust or Kafka; the
runner (streams/faust/runner.py) gives it what it needs, and the property tests drive it against a model.

What holds, whatever happens:
- the committed offset of a partition never passes an event that is not done;
- two events of one lane never run together, and a later one never starts before an earlier one is done;
- after a failure nothing more of that epoch starts, and nothing more is committed than was done;
- at most `in_flight` events have not come to their first decision (`release_slot`; further decisions of one event, such
  as rounds of waiting turns, are made without a place: what bounds calls of a model is its client), at most `backlog`
  are held, and at most `unacknowledged` per partition wait for one before them that is not done: `submit` waits, so
  that the consumer's queues fill and fetching pauses.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from ...schemas.errors import Fatal, OverBudget, Relinquished, Transient
from .error_boundary import failure_of
from .process_exit import LeaseLost

log = structlog.get_logger(__name__)

TP = tuple[str, int]
TRANSIENT_PAUSE = 0.2
UNACKNOWLEDGED = 1_000
"""What a stage remembers of a key (the last 1 000 ids): were more than that to come again after a death, because one
slow event held the commit back, then the first of them would be taken for new. It bounds the memory too."""
T = TypeVar("T")


def beyond_the_end(tp: TP, committed: int) -> str:
    """What to do when a group has committed an offset that its log does not have (yet, or any more)."""
    return (
        f"{tp[0]}[{tp[1]}]: the committed offset {committed} lies beyond the end of the log: the topic was made anew "
        "or cut, or the group's offsets are of another cluster. Nothing was read. If the log is right, reset the "
        "group's offsets on this topic to the earliest (kafka-consumer-groups --reset-offsets --to-earliest) and "
        "start again"
    )


class BeyondTheEnd(Fatal):
    """See `beyond_the_end`."""


class LostDelivery(RuntimeError):
    """The consumer skipped an offset that exists; going on would commit over it."""


@dataclass(eq=False, slots=True)
class Slot(Generic[T]):
    """One event on its way. `item` is the runner's."""

    tp: TP
    offset: int
    item: T
    epoch: Epoch[T]
    done: bool = False


@dataclass(eq=False, slots=True)
class Epoch(Generic[T]):
    """What belongs to one assignment of partitions."""

    pending: dict[TP, deque[Slot[T]]] = field(default_factory=dict)
    highest: dict[TP, int] = field(default_factory=dict)
    """Greatest offset opened: what is delivered again is dropped."""
    begun: dict[TP, int] = field(default_factory=dict)
    """Greatest offset whose handling began."""
    next_offset: dict[TP, int] = field(default_factory=dict)
    """Contiguous: safe to commit."""
    active: bool = True
    broken: bool = False
    """An event failed: nothing more is started or committed."""

    def open(self, tp: TP, offset: int, item: T) -> Slot[T] | None:
        known = self.highest.get(tp)
        if known is not None and offset <= known:
            return None
        self.highest[tp] = offset
        slot = Slot(tp, offset, item, self)
        self.pending.setdefault(tp, deque()).append(slot)
        return slot

    def complete(self, slot: Slot[T]) -> list[Slot[T]]:
        """Mark as done; returns the slots that may now be acknowledged, in offset order."""
        slot.done = True
        queue = self.pending[slot.tp]
        ready: list[Slot[T]] = []
        while queue and queue[0].done:
            ready.append(queue.popleft())
            self.next_offset[slot.tp] = ready[-1].offset + 1
        return ready


@dataclass(slots=True)
class LaneStats:
    """Counts since the start."""

    done: int = 0
    dropped: int = 0
    redelivered: int = 0
    gaps: int = 0
    running: int = 0
    held: int = 0
    most_running: int = 0


class Lanes(Generic[T]):
    """See the module. All callables are the runner's:

    `handle(item)`: do all that the event asks for; an exception that leaves it is fatal.
    `acknowledge(item)`: the event may be committed. Called in offset order per partition.
    `commit(offsets)`: commit now, within a revocation (the next offset to read per partition).
    `first_at_or_after(tp, offset)`: the first offset that really is in the log, or None.
    `crash(exception)`: stop the worker. `crashed()`: it is on its way to its end, nothing becomes durable any more.
    `interrupt()`: whoever waits for something outside gives up.
    """

    def __init__(
        self,
        *,
        handle: Callable[[T], Awaitable[None]],
        acknowledge: Callable[[T], Awaitable[None]],
        commit: Callable[[Mapping[TP, int]], Awaitable[bool]],
        first_at_or_after: Callable[[TP, int], Awaitable[int | None]],
        crash: Callable[[BaseException], Awaitable[None]],
        crashed: Callable[[], bool] = lambda: False,
        interrupt: Callable[[], None] = lambda: None,
        lease_ok: Callable[[], bool] = lambda: True,
        in_flight: int = 64,
        backlog: int = 256,
        unacknowledged: int = UNACKNOWLEDGED,
        drain_timeout: float = 20.0,
        finish_timeout: float = 10.0,
    ) -> None:
        self._handle = handle
        self._acknowledge = acknowledge
        self._commit = commit
        self._first_at_or_after = first_at_or_after
        self._crash = crash
        self._crashed = crashed
        self._interrupt = interrupt
        self._lease_ok = lease_ok
        self._slots = asyncio.Semaphore(in_flight)
        self._backlog = asyncio.Semaphore(max(backlog, in_flight))
        self._unacknowledged = unacknowledged
        self._room = asyncio.Event()
        """Set when events were acknowledged, or never will be."""
        self._drain_timeout = drain_timeout
        self._finish_timeout = finish_timeout
        self._finishing = False
        self._epoch: Epoch[T] = Epoch()
        self._lanes: dict[tuple[int, str], deque[Slot[T]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._placed: set[asyncio.Task[None] | None] = set()
        """The lanes' tasks that hold one of the slots."""
        self._stopping = False
        self.stats = LaneStats()

    # ------------------------------------------------------------------------------------------------ in
    async def submit(
        self, tp: TP, offset: int, key: str, item: T, *, committed: int | None, current: Callable[[], bool]
    ) -> None:
        """Take an event in delivery order. Waits while the backlog is full, or while too many of its partition wait for
        one that is not done.

        `committed` is where this partition's consumption began (None: from the start of the log); `current` says
        whether the event still belongs to the assignment of now.
        """
        epoch = self._epoch  # before any await
        while len(epoch.pending.get(tp, ())) >= self._unacknowledged and epoch is self._epoch and not epoch.broken:
            self._room.clear()
            await self._room.wait()
        await self._backlog.acquire()
        self.stats.held += 1
        try:
            slot = await self._admit(epoch, tp, offset, item, committed, current)
        except BaseException:
            self._release()
            raise
        if slot is None:
            self._release()
            return
        lane_key = (tp[1], key)
        lane = self._lanes.get(lane_key)
        if lane is not None:
            lane.append(slot)
            return
        lane = self._lanes[lane_key] = deque([slot])
        task = asyncio.create_task(self._run(lane_key, lane), name=f"lane {tp[1]}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admit(
        self, epoch: Epoch[T], tp: TP, offset: int, item: T, committed: int | None, current: Callable[[], bool]
    ) -> Slot[T] | None:
        if epoch is not self._epoch or epoch.broken or not current():
            self.stats.dropped += 1  # belongs to an older assignment: it comes again
            return None
        if not await self._no_hole(epoch, tp, offset, committed):
            return None
        if epoch is not self._epoch or self._finishing:
            self.stats.dropped += 1
            return None
        slot = epoch.open(tp, offset, item)
        if slot is None:
            self.stats.redelivered += 1
        return slot

    async def _no_hole(self, epoch: Epoch[T], tp: TP, offset: int, committed: int | None) -> bool:
        """Offsets follow each other from the committed one. A jump is checked against the log: only what really is
        not there (compaction, retention, transaction markers) may be passed over."""
        known = epoch.highest.get(tp)
        expected = known + 1 if known is not None else (committed or 0)
        if known is None and offset < expected:
            epoch.broken = True
            await self._crash(BeyondTheEnd(beyond_the_end(tp, expected)))
            return False
        if offset <= expected:
            return True
        first = await self._look(epoch, tp, expected)
        if epoch is not self._epoch or (first is not None and first >= offset):
            self.stats.gaps += 1
            return True
        self._break(epoch)
        await self._crash(
            LostDelivery(f"{tp[0]}[{tp[1]}]: expected offset {expected}, got {offset}, but {first} is in the log")
        )
        return False

    async def _look(self, epoch: Epoch[T], tp: TP, offset: int) -> int | None:
        """The first offset that is there, however long the log is away."""
        while epoch is self._epoch:
            try:
                return await self._first_at_or_after(tp, offset)
            except Transient as away:
                log.warning("gap_not_checked", topic=tp[0], partition=tp[1], offset=offset, why=str(away))
                await asyncio.sleep(random.uniform(0, TRANSIENT_PAUSE))
        return None

    # ------------------------------------------------------------------------------------------------ work
    async def _run(self, lane_key: tuple[int, str], lane: deque[Slot[T]]) -> None:
        try:
            while lane:
                await self._slots.acquire()
                self._placed.add(asyncio.current_task())
                try:
                    if not lane:  # drained while it waited
                        break
                    slot = lane.popleft()
                    try:
                        if slot.epoch.broken:  # a later event must not overtake the one that failed
                            self.stats.dropped += 1
                            continue
                        slot.epoch.begun[slot.tp] = max(slot.offset, slot.epoch.begun.get(slot.tp, 0))
                        self.stats.running += 1
                        self.stats.most_running = max(self.stats.most_running, self.stats.running)
                        try:
                            await self._one(slot)
                        finally:
                            self.stats.running -= 1
                    finally:
                        self._release()
                finally:
                    self.release_slot()
        finally:
            if self._lanes.get(lane_key) is lane:
                del self._lanes[lane_key]

    def release_slot(self) -> None:
        """For `handle`, in its own task: mostly what is left to do waits for a log or a store, not for a model; another
        event may begin meanwhile. The event counts as held until it is done, so `backlog` bounds how many there are."""
        task = asyncio.current_task()
        if task in self._placed:
            self._placed.discard(task)
            self._slots.release()

    async def _one(self, slot: Slot[T]) -> None:
        while True:
            failure = await failure_of(self._handle(slot.item))
            if failure is None:
                break
            if isinstance(failure, LeaseLost):
                # The group takes a heartbeat again: the event is handled again. Or it has moved on: drain starts a new
                # epoch, and the partition's owner gets the event.
                log.warning("lease_lost", topic=slot.tp[0], partition=slot.tp[1], offset=slot.offset, why=str(failure))
                if not await self._lease_back(slot.epoch):
                    if slot.epoch is self._epoch:
                        self._break(slot.epoch)
                    return
                continue
            if isinstance(failure, Relinquished | Transient | OverBudget):
                # Once more here, or with the partition's next owner.
                await asyncio.sleep(random.uniform(0, TRANSIENT_PAUSE))
                if slot.epoch is not self._epoch:
                    return
                continue
            self._break(slot.epoch)
            await self._crash(failure)  # never acknowledged: after the restart it comes again
            return
        self.stats.done += 1
        if slot.epoch.broken:
            slot.done = True
            return
        finished = slot.epoch.complete(slot)
        if finished:
            self._room.set()
        for ready in finished:
            if slot.epoch.active:
                await self._acknowledge(ready.item)

    def _break(self, epoch: Epoch[T]) -> None:
        """Nothing more of this epoch starts or is committed."""
        epoch.broken = True
        self._room.set()

    async def _lease_back(self, epoch: Epoch[T]) -> bool:
        while epoch is self._epoch and not self._stopping:
            if self._lease_ok():
                return True
            await asyncio.sleep(0.1)
        return False

    def _release(self) -> None:
        self.stats.held -= 1
        self._backlog.release()

    # ------------------------------------------------------------------------------------------------ looking
    def queued(self, partition: int, key: str) -> Iterator[T]:
        """The events of a lane that have not started, the next one first."""
        return (slot.item for slot in self._lanes.get((partition, key), ()))

    def held(self, tp: TP) -> int:
        """How many events of a partition were taken and are not done, or wait for one before them to be done."""
        return len(self._epoch.pending.get(tp, ()))

    def taken_until(self, tp: TP) -> int | None:
        """The offset after the last event that was taken in; None: none was in this assignment."""
        highest = self._epoch.highest.get(tp)
        return None if highest is None else highest + 1

    # ------------------------------------------------------------------------------------------------ out
    def idle(self) -> bool:
        return not self._tasks

    async def finish(self) -> None:
        """At a stop, before `drain`: end what has begun and what lies before it in its partition (bounded), drop the
        rest. Else an event that is done, behind one that never began, would not be committed, and its records would
        be sent once more after the restart.
        """
        self._finishing = True
        epoch = self._epoch
        for lane in self._lanes.values():
            kept = 0
            while kept < len(lane) and lane[kept].offset < epoch.begun.get(lane[kept].tp, -1):
                kept += 1
            while len(lane) > kept:
                lane.pop()
                self._release()
                self.stats.dropped += 1
        self._room.set()
        running = set(self._tasks)
        if running and not (epoch.broken or self._crashed()):
            await asyncio.wait(running, timeout=self._finish_timeout)

    async def drain(self, revoked: frozenset[TP]) -> None:
        """Drop what has not started, wait for what runs (bounded), commit the contiguous offsets of `revoked`. After a
        crash nobody is waited for, and nothing is committed.

        Called while the group waits for us, or at a stop. What stays assigned is delivered again from its committed
        offset, as Faust seeks after every rebalance.
        """
        began = time.monotonic()
        old, self._epoch = self._epoch, Epoch()
        old.active = False
        self._room.set()
        dropped = 0
        for lane in self._lanes.values():
            while lane:
                lane.popleft()
                self._release()
                dropped += 1
        self.stats.dropped += dropped
        self._lanes.clear()
        self._interrupt()
        doomed = old.broken or self._crashed()
        running = set(self._tasks) - {task for task in (asyncio.current_task(),) if task is not None}
        late: set[asyncio.Task[None]] = set()
        if running:
            _, late = await asyncio.wait(running, timeout=0 if doomed else self._drain_timeout)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5)
        offsets = {tp: offset for tp, offset in old.next_offset.items() if tp in revoked}
        committed: bool | str | None = None
        if offsets and not doomed:
            try:
                committed = await asyncio.wait_for(self._commit(offsets), self._drain_timeout)
            except TimeoutError:  # not committed = delivered again, never lost
                committed = "timed out"
        if running or dropped or offsets:
            log.info(
                "drained",
                waited_for=len(running),
                dropped=dropped,
                cancelled=len(late),
                partitions=len(offsets),
                committed=committed,
                seconds=round(time.monotonic() - began, 3),
            )

    async def close(self) -> None:
        """After the last drain: whoever waits for a lease gives up."""
        self._stopping = True

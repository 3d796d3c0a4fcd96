"""Keyed lanes: events of different keys run side by side, events of one key in order. Acknowledgement is in order.

A lane is (partition number, key) over all topics of the stage. The module knows nothing of Faust or Kafka. The runner
(streams/faust/runner.py) passes in the callables, and property tests compare the lanes with a model.

These rules always hold:
- The committed offset of a partition never passes an event that is not done.
- Two events of one lane never run together. A later one never starts before an earlier one is done.
- After a failure no further event of that epoch starts, and only events that are done are committed.
- At most `in_flight` events run that have no decision yet (`release_slot`). Further decisions of one event, such as
  those on waiting turns, need no slot; the client of the model bounds its calls.
- At most `backlog` events are held. At most `unacknowledged` events of a partition wait for an event before them.
  Beyond these bounds `submit` waits, so the consumer's queues fill and fetching pauses.
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
"""Events of a partition that may wait behind one that is not done. It equals the number of ids that a stage remembers
of a key: if more events were redelivered after a crash, the first of them would count as new. It bounds memory, too."""
T = TypeVar("T")


def beyond_the_end(tp: TP, committed: int) -> str:
    """Build the message for a group whose committed offset lies beyond the end of the log."""
    return (
        f"{tp[0]}[{tp[1]}]: the committed offset {committed} lies beyond the end of the log: the topic was made anew "
        "or cut, or the group's offsets are of another cluster. Nothing was read. If the log is right, reset the "
        "group's offsets on this topic to the earliest (kafka-consumer-groups --reset-offsets --to-earliest) and "
        "start again"
    )


class BeyondTheEnd(Fatal):
    """A committed offset lies beyond the end of the log (see `beyond_the_end`)."""


class LostDelivery(RuntimeError):
    """The consumer skipped an offset that the log has. To go on would commit past it."""


@dataclass(eq=False, slots=True)
class Slot(Generic[T]):
    """One event that was taken in. `item` belongs to the runner."""

    tp: TP
    offset: int
    item: T
    epoch: Epoch[T]
    done: bool = False


@dataclass(eq=False, slots=True)
class Epoch(Generic[T]):
    """The state of one assignment of partitions."""

    pending: dict[TP, deque[Slot[T]]] = field(default_factory=dict)
    highest: dict[TP, int] = field(default_factory=dict)
    """The greatest offset taken in. A redelivered event is dropped."""
    begun: dict[TP, int] = field(default_factory=dict)
    """The greatest offset whose handling began."""
    next_offset: dict[TP, int] = field(default_factory=dict)
    """The offset after the last of the contiguous events that are done. It is safe to commit."""
    active: bool = True
    broken: bool = False
    """An event failed. No further event is started or committed."""

    def open(self, tp: TP, offset: int, item: T) -> Slot[T] | None:
        """Take an event in; None for one that was taken in before."""
        known = self.highest.get(tp)
        if known is not None and offset <= known:
            return None
        self.highest[tp] = offset
        slot = Slot(tp, offset, item, self)
        self.pending.setdefault(tp, deque()).append(slot)
        return slot

    def complete(self, slot: Slot[T]) -> list[Slot[T]]:
        """Mark a slot as done. Return the slots that may be acknowledged now, in offset order."""
        slot.done = True
        queue = self.pending[slot.tp]
        ready: list[Slot[T]] = []
        while queue and queue[0].done:
            ready.append(queue.popleft())
            self.next_offset[slot.tp] = ready[-1].offset + 1
        return ready


@dataclass(slots=True)
class LaneStats:
    """Counts of events since the start; `running` and `held` are those of now."""

    done: int = 0
    dropped: int = 0
    redelivered: int = 0
    gaps: int = 0
    running: int = 0
    held: int = 0
    most_running: int = 0


class Lanes(Generic[T]):
    """The lanes of one stage (see the module). The runner passes in the callables:

    `handle(item)`: handle the event in full. Transient, OverBudget and Relinquished mean: again; any other exception
    stops the worker.
    `acknowledge(item)`: allow the event to be committed. Called in offset order per partition.
    `commit(offsets)`: commit now, during a revocation; by partition the next offset to read.
    `first_at_or_after(tp, offset)`: return the first offset that the log has, or None.
    `crash(exception)`: stop the worker. `crashed()`: whether it is stopping so; nothing becomes durable any more.
    `interrupt()`: cut short every wait for a component.
    `lease_ok()`: whether this worker surely owns its partitions.
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
        """Set when events were acknowledged, or when they never will be."""
        self._drain_timeout = drain_timeout
        self._finish_timeout = finish_timeout
        self._finishing = False
        self._epoch: Epoch[T] = Epoch()
        self._lanes: dict[tuple[int, str], deque[Slot[T]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slot_holders: set[asyncio.Task[None] | None] = set()
        """Tasks of lanes that hold one of the slots."""
        self._stopping = False
        self.stats = LaneStats()

    # ------------------------------------------------------------------------------------------------ in
    async def submit(
        self, tp: TP, offset: int, key: str, item: T, *, committed: int | None, current: Callable[[], bool]
    ) -> None:
        """Take an event in; called in delivery order.

        Waits while the backlog is full, or while too many events of the partition wait for one that is not done.
        `committed` is the offset at which the consumption of the partition began (None: the start of the log).
        `current` returns whether the event still belongs to the present assignment.
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
            self.stats.dropped += 1  # of an older assignment: it is delivered again
            return None
        if not await self._is_contiguous(epoch, tp, offset, committed):
            return None
        if epoch is not self._epoch or self._finishing:
            self.stats.dropped += 1
            return None
        slot = epoch.open(tp, offset, item)
        if slot is None:
            self.stats.redelivered += 1
        return slot

    async def _is_contiguous(self, epoch: Epoch[T], tp: TP, offset: int, committed: int | None) -> bool:
        """Whether no existing event was skipped between the last offset and this one.

        Offsets follow each other from the committed one. At a jump this checks the log. Only offsets that the log does
        not have (compaction, retention, transaction markers) may be skipped. Otherwise the worker crashes.
        """
        known = epoch.highest.get(tp)
        expected = known + 1 if known is not None else (committed or 0)
        if known is None and offset < expected:
            epoch.broken = True
            await self._crash(BeyondTheEnd(beyond_the_end(tp, expected)))
            return False
        if offset <= expected:
            return True
        first = await self._ask_log(epoch, tp, expected)
        if epoch is not self._epoch or (first is not None and first >= offset):
            self.stats.gaps += 1
            return True
        self._break(epoch)
        await self._crash(
            LostDelivery(f"{tp[0]}[{tp[1]}]: expected offset {expected}, got {offset}, but {first} is in the log")
        )
        return False

    async def _ask_log(self, epoch: Epoch[T], tp: TP, offset: int) -> int | None:
        """Ask the log for its first offset from here on, however long it does not answer."""
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
                self._slot_holders.add(asyncio.current_task())
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
                            await self._run_slot(slot)
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
        """Let another event begin. Called by `handle` within its own task, when its decision stands.

        The remaining steps mostly wait for a log or a store, not for a model. The event counts as held until it is
        done, so `backlog` bounds the number of such events.
        """
        task = asyncio.current_task()
        if task in self._slot_holders:
            self._slot_holders.discard(task)
            self._slots.release()

    async def _run_slot(self, slot: Slot[T]) -> None:
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
        """Start and commit no further event of this epoch."""
        epoch.broken = True
        self._room.set()

    async def _lease_back(self, epoch: Epoch[T]) -> bool:
        """Wait until the lease is back; False when the epoch ends before."""
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
        """Iterate over the events of a lane that have not started, the next one first."""
        return (slot.item for slot in self._lanes.get((partition, key), ()))

    def held(self, tp: TP) -> int:
        """Count the events of a partition that were taken in and are not acknowledged."""
        return len(self._epoch.pending.get(tp, ()))

    def taken_until(self, tp: TP) -> int | None:
        """Return the offset after the last event taken in, None before the first one of this assignment."""
        highest = self._epoch.highest.get(tp)
        return None if highest is None else highest + 1

    # ------------------------------------------------------------------------------------------------ out
    def idle(self) -> bool:
        """Whether no event is being handled."""
        return not self._tasks

    async def finish(self) -> None:
        """At a stop, before `drain`: finish events that began and those before them in their partitions; drop the rest.

        Otherwise an event that is done, behind one that never began, would not be committed, and its records would be
        sent again after the restart. Waits for `finish_timeout` seconds at most.
        """
        self._finishing = True
        epoch = self._epoch
        for lane in self._lanes.values():
            still_needed = 0
            while still_needed < len(lane) and lane[still_needed].offset < epoch.begun.get(lane[still_needed].tp, -1):
                still_needed += 1
            while len(lane) > still_needed:
                lane.pop()
                self._release()
                self.stats.dropped += 1
        self._room.set()
        running = set(self._tasks)
        if running and not (epoch.broken or self._crashed()):
            await asyncio.wait(running, timeout=self._finish_timeout)

    async def drain(self, revoked: frozenset[TP]) -> None:
        """Drop events that have not started, wait for the running ones, commit the contiguous offsets of `revoked`.

        The wait has a limit (`drain_timeout`). After a crash it waits for no event and commits nothing. Called while
        the group waits for this worker, or at a stop. Partitions that stay assigned are delivered again from their
        committed offsets, because Faust seeks after every rebalance.
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
        nothing_durable = old.broken or self._crashed()
        running = set(self._tasks) - {task for task in (asyncio.current_task(),) if task is not None}
        late: set[asyncio.Task[None]] = set()
        if running:
            _, late = await asyncio.wait(running, timeout=0 if nothing_durable else self._drain_timeout)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5)
        offsets = {tp: offset for tp, offset in old.next_offset.items() if tp in revoked}
        committed: bool | str | None = None
        if offsets and not nothing_durable:
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
        """End every wait for the lease. Called after the last drain."""
        self._stopping = True

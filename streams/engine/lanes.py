"""Keyed lanes: events of one key run in order, and events of different keys run concurrently.

A lane contains the events of one partition number and one key, over all topics of the stage. The module knows neither
Faust nor Kafka: the runner (streams/faust/runner.py) passes in callables. Property tests compare the lanes with a
model. held_events.py has the state of each partition, fair_queue.py the order of tenants.

An epoch is one assignment of partitions; `drain` ends it. A slot is the permission to run an event until its first
decision is final (`release_slot`).

These rules always hold:
- The committed offset of a partition never passes an event that is not done.
- Two events of one lane never run at the same time. An event starts only when all earlier events of its lane are done.
- After a failure, no further event of the epoch starts or is committed.
- At most `in_flight` events hold a slot. At most four times as many events (`EFFECTS`) run in total. Later decisions of
  an event, for example on waiting turns, need no slot; the client of the model limits its own calls.
- An event that waits for an earlier event of its key holds no slot. A free slot goes to the tenant with the fewest
  running events. Among tenants with equally many, the tenant that has used the least processor time comes first.
- An event of a backlog starts only after the whole fetch of its partition is delivered, so that its decision can
  include later events. It waits at most `GATHER_SECONDS`. An event of a tenant without a backlog does not wait.
- One outcome may cover an event and the next events of its lane (`cover`). The covered events never start.
- `submit` never waits. Each partition has a limit in events and a limit in bytes. When a partition is at a limit,
  `has_room` returns False, and the consumer fetches no more of that partition. Other partitions continue.
- When a partition is at its limit in bytes, records of a backlog are set aside: dropped now and read again later
  (set_aside.py). So one tenant's backlog of large records does not block the delivery of other tenants' records.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Generic, TypeVar

import structlog

from ...schemas.errors import OverBudget, Relinquished, Transient
from .error_boundary import exception_of
from .fair_queue import FairQueue
from .held_events import TP, BeyondTheEnd, Epoch, Lane, LaneStats, LostDelivery, Slot, Window, beyond_the_end
from .process_exit import LeaseLost
from .processor_shares import ProcessorShares
from .set_aside import Rereads, SetAside

log = structlog.get_logger(__name__)

TRANSIENT_PAUSE = 0.2
UNACKNOWLEDGED = 1_000
"""Maximum number of admitted events of a partition that are not acknowledged. A crash redelivers at most this number.
The number equals the number of ids that a stage remembers of a key: if a crash redelivered more events, the stage would
treat the first of these events as new."""
HELD_BYTES = 64 * 1024 * 1024
"""Maximum bytes of records that one stage holds in a worker. The partitions of the worker share this limit equally."""
HELD_BYTES_PARTITION = 16 * 1024 * 1024
"""Maximum bytes of records that one partition holds."""
GATHER_SECONDS = 5.0
"""Maximum wait for the rest of a delivery. On a busy machine, the delivery of 3 000 events takes this long."""
FEW = 16
"""Maximum number of held events of a tenant without a backlog. Its events do not wait for later events."""
EFFECTS = 4
"""Number of running events per slot: one event makes its decision, the others apply their effects."""
T = TypeVar("T")


class Lanes(Generic[T]):
    """The lanes of one stage (see the module docstring). The runner passes in callables and values:

    `handle(item)`: handle the event completely. After Transient, OverBudget or Relinquished, the lanes call it again.
    Any other exception stops the worker.
    `acknowledged(tp, offset)`: called when all events of a partition before this offset are done, so that the offset
    may be committed.
    `commit(offsets)`: commit immediately, during a revocation. `offsets` has the next offset to read by partition.
    `first_at_or_after(tp, offset)`: return the first offset of the log at or after `offset`, or None.
    `passed_over(tp, first, until)`: called before the lanes skip a hole, when the log has no record in [first, until).
    `crash(exception)`: stop the worker.
    `crashed()`: return whether the worker is stopping after a crash. Then nothing is committed.
    `interrupt()`: end every wait for a component.
    `lease_ok()`: return whether this worker certainly owns its partitions.
    `has_room_again()`: called when the consumer may fetch again from a partition that had no room.
    `partitions()`: return the number of partitions that this worker reads. They share `held_bytes` equally.
    `rereads`: drops records and reads them again. If it is None, no record is set aside.
    `shares`: the processor time that each tenant has used, for the order of tenants with equally many running events.
    """

    def __init__(
        self,
        *,
        handle: Callable[[T], Awaitable[None]],
        commit: Callable[[Mapping[TP, int]], Awaitable[bool]],
        first_at_or_after: Callable[[TP, int], Awaitable[int | None]],
        crash: Callable[[BaseException], Awaitable[None]],
        acknowledged: Callable[[TP, int], Awaitable[None]] | None = None,
        passed_over: Callable[[TP, int, int], Awaitable[None]] | None = None,
        crashed: Callable[[], bool] = lambda: False,
        interrupt: Callable[[], None] = lambda: None,
        lease_ok: Callable[[], bool] = lambda: True,
        has_room_again: Callable[[], None] = lambda: None,
        partitions: Callable[[], int] = lambda: 1,
        in_flight: int = 64,
        unacknowledged: int = UNACKNOWLEDGED,
        held_bytes: int = HELD_BYTES,
        drain_timeout: float = 20.0,
        finish_timeout: float = 10.0,
        rereads: Rereads[T] | None = None,
        shares: ProcessorShares | None = None,
    ) -> None:
        self._handle = handle
        self._acknowledged = acknowledged
        self._passed_over = passed_over
        self._commit = commit
        self._first_at_or_after = first_at_or_after
        self._crash = crash
        self._crashed = crashed
        self._interrupt = interrupt
        self._lease_ok = lease_ok
        self._has_room_again = has_room_again
        self._partitions = partitions
        self._in_flight = in_flight
        self._unacknowledged = unacknowledged
        self._held_bytes = held_bytes
        self._drain_timeout = drain_timeout
        self._finish_timeout = finish_timeout
        self._finishing = False
        self._epoch: Epoch[T] = Epoch()
        self._ready: FairQueue[Lane[T]] = FairQueue(shares)
        """Lanes of the current epoch whose next event may start."""
        self._tasks: dict[asyncio.Task[None], tuple[Epoch[T], Lane[T]]] = {}
        """Running events."""
        self._deciding: set[asyncio.Task[None]] = set()
        """Running events that hold a slot."""
        self._background: set[asyncio.Task[None]] = set()
        """Tasks that run no event: checks of holes, rereads of records, and calls of `crash`."""
        self._stopping = False
        self.stats = LaneStats()
        self._records = None if rereads is None else self._set_aside(rereads)

    def _set_aside(self, rereads: Rereads[T]) -> SetAside[T]:
        def restored(lane: Lane[T]) -> None:
            self._line_up(lane)
            self._dispatch()

        return SetAside(
            rereads,
            self.stats,
            withdraw=self._withdraw,
            line_up=restored,
            background=self._in_background,
            end=self._end,
            is_over=self._is_over,
        )

    # ------------------------------------------------------------------------------------------------ in
    def submit(
        self,
        tp: TP,
        offset: int,
        key: str,
        item: T,
        *,
        committed: int | None,
        current: bool = True,
        tenant: str = "",
        size: int = 0,
        follows: int | None = None,
        left: int = 0,
    ) -> None:
        """Add a delivered event. The calls must have the order of delivery. A call never waits (see `has_room`).

        `committed`: the offset at which the consumption of the partition began (None: the start of the log).
        `current`: whether the event belongs to the present assignment; if not, it is dropped. `tenant`: the tenant of
        the event, for the order of tenants. `size`: bytes of the record. `follows`: the consumer has seen that no
        record exists from this offset up to `offset`. `left`: number of later events of the partition in the same
        delivery.
        """
        epoch = self._epoch
        if epoch.broken or self._finishing or not current:
            self.stats.dropped += 1  # it is delivered again
            return
        window = epoch.windows.get(tp)
        if window is None:
            limit = min(self._held_bytes // max(1, self._partitions()), HELD_BYTES_PARTITION)
            window = epoch.windows[tp] = Window(tp, self._unacknowledged, limit, committed or 0)
        self.stats.take(tenant, size)
        window.arrive(Slot(window, offset, key, tenant, item, size, follows))
        follow = left > 0 and not window.full
        if follow and window.gathering is None:
            window.gathering = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._gathered, epoch, window)
        self._feed(epoch, window)
        window.fill()
        if not follow or window.full:
            self._gathered(epoch, window)

    def has_room(self, tp: TP) -> bool:
        """Return whether the consumer may fetch more of a partition. Other threads may call this method."""
        window = self._epoch.windows.get(tp)
        return window is None or not window.full

    def _feed(self, epoch: Epoch[T], window: Window[T]) -> None:
        """Admit arrivals in order, until no place is free or the hole before the next arrival must be checked."""
        while window.arrivals and window.has_place() and not window.checking and not epoch.broken:
            slot = window.arrivals[0]
            if window.highest is None and slot.offset < window.began:
                self._end(epoch, BeyondTheEnd(beyond_the_end(window.tp, window.began)))
            elif slot.offset > window.expected and (slot.follows is None or slot.follows > window.expected):
                window.checking = True
                self._in_background(self._check_hole(epoch, window, slot))
            else:
                self._admit(epoch, window)
        self._make_room(epoch, window)
        self._dispatch()

    def _admit(self, epoch: Epoch[T], window: Window[T]) -> None:
        tenant, size = window.arrivals[0].tenant, window.arrivals[0].size
        slot = window.admit()
        if slot is None:
            self.stats.redelivered += 1
            self.stats.let_go(tenant, size)
            if window.reopen():  # the dropped event alone may have filled the window
                self._has_room_again()
            return
        place = (window.tp[1], slot.key)
        lane = epoch.lanes.get(place)
        if lane is None:
            lane = epoch.lanes[place] = Lane(place, slot.tenant)
        lane.slots.append(slot)
        if self._records is not None and tenant in window.aside:
            self._records.set_aside(epoch, slot)
        elif len(lane.slots) == 1 and not lane.busy:
            if window.gathering is None or self.stats.held_by[tenant] <= FEW:
                self._ready.push(lane.tenant, lane)
            else:
                window.gathered.append(lane)

    def _gathered(self, epoch: Epoch[T], window: Window[T]) -> None:
        """End the wait for the rest of a delivery: let the lanes of the partition that waited for it start."""
        lanes = window.end_gathering()
        if epoch is not self._epoch or epoch.broken:
            return
        for lane in lanes:
            self._line_up(lane)
        self._dispatch()

    def _line_up(self, lane: Lane[T]) -> None:
        """Let the next event of a lane wait for a slot, if it can start."""
        if not lane.slots or lane.busy:
            return
        if lane.slots[0].aside:
            self._make_room(self._epoch, lane.slots[0].window)
        else:
            self._ready.push(lane.tenant, lane)

    def _withdraw(self, lane: Lane[T]) -> None:
        """Remove a lane from the queue for slots, or from the lanes that wait for the rest of a delivery."""
        if not self._ready.remove(lane.tenant, lane):
            for window in self._epoch.windows.values():
                if lane in window.gathered:
                    window.gathered.remove(lane)

    def _make_room(self, epoch: Epoch[T], window: Window[T]) -> None:
        if self._records is not None:
            self._records.make_room(epoch, window)

    def _is_over(self, epoch: Epoch[T]) -> bool:
        return epoch is not self._epoch or epoch.broken or self._finishing

    async def _check_hole(self, epoch: Epoch[T], window: Window[T], slot: Slot[T]) -> None:
        """Ask the log whether the hole before an event contains records. Other partitions continue meanwhile.

        Only offsets without a record (compaction, retention, transaction markers) may be skipped. If the hole contains
        a record, the worker crashes.
        """
        expected = window.expected
        first = await self._ask_log(epoch, window.tp, expected)
        if self._passed_over is not None and (first is None or first >= slot.offset):
            await self._passed_over(window.tp, expected, slot.offset)
        if epoch is not self._epoch or epoch.broken:
            return
        window.checking = False
        if first is None or first >= slot.offset:
            if window.arrivals and window.arrivals[0] is slot:  # the event was not dropped meanwhile
                self._admit(epoch, window)
            self._feed(epoch, window)
            return
        where = f"{window.tp[0]}[{window.tp[1]}]"
        why = f"{where}: expected offset {expected}, got {slot.offset}, but {first} is in the log"
        self._end(epoch, LostDelivery(why))

    async def _ask_log(self, epoch: Epoch[T], tp: TP, offset: int) -> int | None:
        """Return the log's first offset at or after `offset`. Repeat without limit while the log does not answer.

        Return None if the log has no such offset, or if the epoch ends first.
        """
        while epoch is self._epoch:
            try:
                return await self._first_at_or_after(tp, offset)
            except Transient as away:
                log.warning("gap_not_checked", topic=tp[0], partition=tp[1], offset=offset, why=str(away))
                await asyncio.sleep(random.uniform(0, TRANSIENT_PAUSE))
        return None

    def _in_background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # ------------------------------------------------------------------------------------------------ work
    def _dispatch(self) -> None:
        """Start events while slots are free, at most one event of each lane at a time."""
        while len(self._deciding) < self._in_flight and self.stats.running < EFFECTS * self._in_flight:
            found = self._ready.pop()
            if found is None:
                return
            _, lane = found
            slot = lane.slots.popleft()
            slot.started = lane.busy = True
            slot.window.begun = max(slot.window.begun, slot.offset)
            self.stats.running += 1
            self.stats.most_running = max(self.stats.most_running, self.stats.running)
            task = asyncio.create_task(self._run(self._epoch, slot), name=f"lane {lane.place[0]}")
            self._tasks[task] = (self._epoch, lane)
            self._deciding.add(task)
            task.add_done_callback(partial(self._ended, self._epoch, lane, slot))
            if slot.window.aside:
                self._make_room(self._epoch, slot.window)

    def _ended(self, epoch: Epoch[T], lane: Lane[T], slot: Slot[T], task: asyncio.Task[None]) -> None:
        """Let the lane continue after an event's task. Also called for a task that was cancelled before it began."""
        del self._tasks[task]
        self.stats.running -= 1
        self._ready.release(lane.tenant)
        lane.busy = False
        if lane.slots:
            self._line_up(lane)
        elif epoch.lanes.get(lane.place) is lane:
            del epoch.lanes[lane.place]
        if slot.item is not None:
            self._drop(slot)
        self._give_slot_back(task)

    def running_by(self) -> Mapping[str, int]:
        """Return the number of running events by tenant. Tenants without a running event are left out."""
        return self._ready.shares()

    def release_slot(self) -> None:
        """Release the slot of the current event, so that another event may start.

        `handle` calls this in the event's task when the decision is final. The remaining steps mostly wait for a log or
        a store, not for a model. `EFFECTS` limits the total number of running events.
        """
        self._give_slot_back(asyncio.current_task())

    def _give_slot_back(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            self._deciding.discard(task)
        self._dispatch()

    async def _run(self, epoch: Epoch[T], slot: Slot[T]) -> None:
        window, item = slot.window, slot.item
        assert item is not None
        while True:
            failure = await exception_of(self._handle(item))
            if failure is None:
                break
            if isinstance(failure, LeaseLost):
                # If the group accepts a heartbeat again, the event is handled again here. If the group has reassigned
                # the partition, `drain` starts a new epoch, and the partition's next owner gets the event.
                topic, partition = window.tp
                log.warning("lease_lost", topic=topic, partition=partition, offset=slot.offset, why=str(failure))
                if not await self._lease_back(epoch):
                    if epoch is self._epoch:
                        self._break(epoch)
                    return
                continue
            if isinstance(failure, Relinquished | Transient | OverBudget):
                # The event is handled again: here, or by the partition's next owner.
                await asyncio.sleep(random.uniform(0, TRANSIENT_PAUSE))
                if epoch is not self._epoch:
                    return
                continue
            self._break(epoch)
            await self._crash(failure)  # the event is not acknowledged: it is redelivered after the restart
            return
        await self._complete(epoch, slot)

    async def _complete(self, epoch: Epoch[T], slot: Slot[T]) -> None:
        """Record that an event is done."""
        window = slot.window
        self.stats.done += 1
        self.stats.let_go(slot.tenant, slot.size)
        moved = window.complete(slot)
        if epoch.broken or epoch is not self._epoch:
            return  # after a failure nothing is committed; for an ended epoch, `drain` commits
        if moved:
            self._feed(epoch, window)
        self._make_room(epoch, window)
        if window.reopen():
            self._has_room_again()
        if moved and self._acknowledged is not None and window.next_offset is not None:
            await self._acknowledged(window.tp, window.next_offset)

    async def cover(self, count: int) -> None:
        """Record that the next `count` events of the running event's lane are done.

        The outcome of the running event includes the effects of these events, so they never start. `handle` calls this
        in the running event's task, when the effects are durable. If some of these events were dropped meanwhile, they
        are delivered again.
        """
        epoch, lane = self._running()
        for _ in range(min(count, len(lane.slots))):
            await self._complete(epoch, lane.slots.popleft())

    def _break(self, epoch: Epoch[T]) -> None:
        """Mark an epoch as failed: no further event of it starts or is committed."""
        epoch.broken = True
        if epoch is self._epoch:
            self._drop_waiting(epoch)

    def _end(self, epoch: Epoch[T], failure: Exception) -> None:
        """Mark an epoch as failed, and stop the worker."""
        self._break(epoch)

        async def crash() -> None:
            await self._crash(failure)

        self._in_background(crash())

    async def _lease_back(self, epoch: Epoch[T]) -> bool:
        """Wait until the lease is valid again. Return False if the epoch ends or the worker stops first."""
        while epoch is self._epoch and not self._stopping:
            if self._lease_ok():
                return True
            await asyncio.sleep(0.1)
        return False

    # ------------------------------------------------------------------------------------------------ dropping
    def _drop(self, slot: Slot[T]) -> None:
        self.stats.let_go(slot.tenant, slot.size)
        slot.window.drop(slot)
        self.stats.dropped += 1

    def _drop_waiting(self, epoch: Epoch[T], *, needed: bool = False) -> int:
        """Drop the events that have not started. Return the number of dropped events.

        `needed`: keep the events that precede a begun event of their partition. Without these events, the begun event
        could not be committed.
        """
        dropped = 0
        for window in epoch.windows.values():
            window.end_gathering()
            while window.arrivals:
                self._drop(window.arrivals.pop())
                dropped += 1
        for lane in list(epoch.lanes.values()):
            keep = 0
            while needed and keep < len(lane.slots) and lane.slots[keep].is_needed:
                keep += 1
            while len(lane.slots) > keep:
                self._drop(lane.slots.pop())
                dropped += 1
        self._ready.clear()
        for lane in epoch.lanes.values():
            self._line_up(lane)
        return dropped

    # ------------------------------------------------------------------------------------------------ looking
    def queued(self) -> Iterator[T]:
        """Iterate over the events of the running event's lane that have not started, in order.

        `handle` calls this in the running event's task. The iteration ends at the first event whose record is set
        aside. Events of a later assignment are left out.
        """
        _, lane = self._running()
        slots = takewhile(lambda slot: not slot.aside, lane.slots)
        return (slot.item for slot in slots if slot.item is not None)

    def _running(self) -> tuple[Epoch[T], Lane[T]]:
        task = asyncio.current_task()
        assert task is not None
        return self._tasks[task]

    def held(self, tp: TP) -> int:
        """Return the number of a partition's events that are admitted and not acknowledged."""
        window = self._epoch.windows.get(tp)
        return 0 if window is None else len(window.pending)

    def taken_until(self, tp: TP) -> int | None:
        """Return the offset after the last admitted event; None before the first event of this assignment."""
        window = self._epoch.windows.get(tp)
        return None if window is None or window.highest is None else window.highest + 1

    def committable(self) -> dict[TP, int]:
        """Return the offsets that are safe to commit, by partition. Partitions without a safe offset are left out."""
        if self._epoch.broken:
            return {}
        windows = self._epoch.windows.values()
        return {window.tp: window.next_offset for window in windows if window.next_offset is not None}

    def full(self) -> int:
        """Return the number of partitions that have no room."""
        return sum(window.full for window in self._epoch.windows.values())

    # ------------------------------------------------------------------------------------------------ out
    def idle(self) -> bool:
        """Return whether no event is being handled."""
        return not self._tasks

    async def finish(self) -> None:
        """Finish the begun events, and the earlier events of their partitions; drop the rest.

        Called at a stop, before `drain`. Without this step, a done event after an event that never began would not be
        committed, and its records would be sent again after the restart. Waits at most `finish_timeout` seconds.
        """
        self._finishing = True
        epoch = self._epoch
        self._drop_waiting(epoch, needed=True)
        self._dispatch()
        end = time.monotonic() + self._finish_timeout
        while self._tasks and not (epoch.broken or self._crashed()) and (left := end - time.monotonic()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)  # the end of one event may start another

    async def drain(self, revoked: frozenset[TP]) -> None:
        """End the epoch: drop events that have not started, wait for the running events, commit offsets of `revoked`.

        The committed offset of a partition is the offset after its contiguous done events. Events that still run after
        `drain_timeout` seconds are cancelled. After a crash, this method does not wait and commits nothing. Called
        while the group waits for this worker, and at a stop. Partitions that stay assigned are delivered again from
        their committed offsets, because Faust seeks after every rebalance.
        """
        began = time.monotonic()
        old, self._epoch = self._epoch, Epoch()
        dropped = self._drop_waiting(old)
        self._has_room_again()
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
        done = {window.tp: window.next_offset for window in old.windows.values()}
        offsets = {tp: offset for tp, offset in done.items() if offset is not None and tp in revoked}
        committed: bool | str | None = None
        if offsets and not nothing_durable:
            try:
                committed = await asyncio.wait_for(self._commit(offsets), self._drain_timeout)
            except TimeoutError:  # uncommitted events are delivered again, so nothing is lost
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
        """End the waits for the lease. Called after the last `drain`."""
        self._stopping = True

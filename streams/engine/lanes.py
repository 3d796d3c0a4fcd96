"""Keyed lanes: events of different keys run side by side, events of one key in order. Acknowledgement is in order.

A lane is (partition number, key) over all topics of the stage. The module knows neither Faust nor Kafka. The runner
(streams/faust/runner.py) passes in the callables, and property tests compare the lanes with a model. held_events.py has
the events of each partition, fair_queue.py the order of tenants.

These rules always hold:
- The committed offset of a partition never passes an event that is not done.
- Two events of one lane never run together. A later one never starts before an earlier one is done.
- After a failure no further event of that epoch starts, and only events that are done are committed.
- At most `in_flight` events run that have no decision yet (`release_slot`), and four times as many in all. Further
  decisions of one event, such as those on waiting turns, need no slot; the client of the model bounds its calls.
- An event that waits for an earlier event of its key has no slot. A free slot goes to the tenant with the fewest slots.
  Among tenants with equally many, the tenant that used least processor time is next.
- An event of a backlog starts when the whole fetch of its partition is delivered, so that it sees later events. It
  waits `GATHER_SECONDS` at most. Events of a tenant without a backlog do not wait.
- One outcome may cover an event and the next events of its lane (`cover`); these never start.
- `submit` never waits. Each partition has its own bounds in events and in bytes. Beyond them `has_room` is False, and
  the consumer fetches no more of that partition. Other partitions continue.
- Beyond the bytes, records of a backlog are set aside and read again (set_aside.py). So one tenant's backlog of large
  records does not keep others from being delivered.
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
from .error_boundary import failure_of
from .fair_queue import FairQueue
from .held_events import TP, BeyondTheEnd, Epoch, Lane, LaneStats, LostDelivery, Slot, Window, beyond_the_end
from .process_exit import LeaseLost
from .processor_shares import ProcessorShares
from .set_aside import Rereads, SetAside

log = structlog.get_logger(__name__)

TRANSIENT_PAUSE = 0.2
UNACKNOWLEDGED = 1_000
"""Events of a partition that may wait for an earlier one. It equals the number of ids that a stage remembers of a key:
if a crash redelivered more events, the first of them would count as new."""
HELD_BYTES = 64 * 1024 * 1024
"""Bytes of records that a stage holds in one worker. The partitions that the worker reads have equal parts."""
HELD_BYTES_PARTITION = 16 * 1024 * 1024
"""Greatest number of bytes for one partition."""
GATHER_SECONDS = 5.0
"""Longest wait for the rest of a delivery. On a busy machine the delivery of 3 000 events takes as long."""
FEW = 16
"""A tenant with at most this number of held events has no backlog: its events do not wait for later ones."""
EFFECTS = 4
"""Events that may run for each slot: one in its decision, the others in their effects."""
T = TypeVar("T")


class Lanes(Generic[T]):
    """The lanes of one stage (see the module). The runner passes in the callables:

    `handle(item)`: handle the event in full. Transient, OverBudget and Relinquished mean: again; any other exception
    stops the worker.
    `acknowledged(tp, offset)`: the events of a partition before this offset are done and may be committed.
    `commit(offsets)`: commit now, during a revocation; by partition the next offset to read.
    `first_at_or_after(tp, offset)`: return the first offset that the log has, or None.
    `passed_over(tp, first, until)`: the log has no record in [first, until); later events continue.
    `crash(exception)`: stop the worker. `crashed()`: whether it is stopping after a crash; nothing becomes durable.
    `interrupt()`: cut short every wait for a component.
    `lease_ok()`: whether this worker surely owns its partitions.
    `has_room_again()`: the consumer may fetch again of a partition that had no room.
    `partitions()`: how many partitions this worker reads; they share `held_bytes`.
    `rereads`: sets records aside. None: a partition that holds its bytes is not fetched.
    `shares`: what each tenant has used of the processor, for the order of tenants with as many slots.
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
        """Lanes of this epoch whose next event may start."""
        self._tasks: dict[asyncio.Task[None], tuple[Epoch[T], Lane[T]]] = {}
        """Running events."""
        self._deciding: set[asyncio.Task[None]] = set()
        """Running events that hold a slot."""
        self._background: set[asyncio.Task[None]] = set()
        """Checks of holes, and the end of the worker."""
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
        """Take an event in; called in delivery order. It never waits (see `has_room`).

        `committed` is the offset at which the consumption of the partition began (None: the start of the log).
        `current`: whether the event belongs to the present assignment. `tenant`: the owner of the slot that it takes.
        `size` is in bytes. `follows`: the consumer has seen that no record exists from this offset up to `offset`.
        `left`: number of events of the partition in the same delivery that follow.
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
        """Return whether the consumer may fetch more of a partition. Other threads may call it."""
        window = self._epoch.windows.get(tp)
        return window is None or not window.full

    def _feed(self, epoch: Epoch[T], window: Window[T]) -> None:
        """Admit arrivals in order, as far as their places and the holes before them allow."""
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
            if window.reopen():  # it may have been the only one, and as large as the bound
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
        """Let the lanes of a partition start whose events were being delivered."""
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
        """Take a lane out of the queue for slots."""
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
        """Ask the log whether no existing event was skipped before this one. Other partitions go on meanwhile.

        Only offsets that the log does not have (compaction, retention, transaction markers) may be skipped. Otherwise
        the worker crashes.
        """
        expected = window.expected
        first = await self._ask_log(epoch, window.tp, expected)
        if self._passed_over is not None and (first is None or first >= slot.offset):
            await self._passed_over(window.tp, expected, slot.offset)
        if epoch is not self._epoch or epoch.broken:
            return
        window.checking = False
        if first is None or first >= slot.offset:
            if window.arrivals and window.arrivals[0] is slot:  # not dropped meanwhile
                self._admit(epoch, window)
            self._feed(epoch, window)
            return
        where = f"{window.tp[0]}[{window.tp[1]}]"
        why = f"{where}: expected offset {expected}, got {slot.offset}, but {first} is in the log"
        self._end(epoch, LostDelivery(why))

    async def _ask_log(self, epoch: Epoch[T], tp: TP, offset: int) -> int | None:
        """Ask the log for its first offset from here on, however long it does not answer."""
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
        """Start events as long as there is a slot, one of each lane at a time."""
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
        """Let the lane go on; called when the task of an event is done, also when it was cancelled before it began."""
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
        """Return how many events run, by tenant; no tenant without one."""
        return self._ready.shares()

    def release_slot(self) -> None:
        """Let another event begin. Called by `handle` within its own task, once its decision is final.

        The remaining steps mostly wait for a log or a store, not for a model. Four times `in_flight` bounds the number
        of events that run.
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
            failure = await failure_of(self._handle(item))
            if failure is None:
                break
            if isinstance(failure, LeaseLost):
                # The group takes a heartbeat again: the event is handled again. Or it has moved on: drain starts a new
                # epoch, and the partition's owner gets the event.
                topic, partition = window.tp
                log.warning("lease_lost", topic=topic, partition=partition, offset=slot.offset, why=str(failure))
                if not await self._lease_back(epoch):
                    if epoch is self._epoch:
                        self._break(epoch)
                    return
                continue
            if isinstance(failure, Relinquished | Transient | OverBudget):
                # Once more here, or with the partition's next owner.
                await asyncio.sleep(random.uniform(0, TRANSIENT_PAUSE))
                if epoch is not self._epoch:
                    return
                continue
            self._break(epoch)
            await self._crash(failure)  # never acknowledged: after the restart it comes again
            return
        await self._complete(epoch, slot)

    async def _complete(self, epoch: Epoch[T], slot: Slot[T]) -> None:
        """Note that an event is done."""
        window = slot.window
        self.stats.done += 1
        self.stats.let_go(slot.tenant, slot.size)
        moved = window.complete(slot)
        if epoch.broken or epoch is not self._epoch:
            return  # of a drained epoch, `drain` commits
        if moved:
            self._feed(epoch, window)
        self._make_room(epoch, window)
        if window.reopen():
            self._has_room_again()
        if moved and self._acknowledged is not None and window.next_offset is not None:
            await self._acknowledged(window.tp, window.next_offset)

    async def cover(self, count: int) -> None:
        """Note that the next `count` events of the running event's lane are done: its outcome has their effects, too.

        Called by `handle` within its own task, when these effects are durable. The events never start. Those that were
        dropped meanwhile are delivered again.
        """
        epoch, lane = self._running()
        for _ in range(min(count, len(lane.slots))):
            await self._complete(epoch, lane.slots.popleft())

    def _break(self, epoch: Epoch[T]) -> None:
        """Start and commit no further event of this epoch."""
        epoch.broken = True
        if epoch is self._epoch:
            self._drop_waiting(epoch)

    def _end(self, epoch: Epoch[T], failure: Exception) -> None:
        """Stop the worker."""
        self._break(epoch)

        async def crash() -> None:
            await self._crash(failure)

        self._in_background(crash())

    async def _lease_back(self, epoch: Epoch[T]) -> bool:
        """Wait until the lease is back; False when the epoch ends before."""
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
        """Drop the events that have not started, and return their number.

        `needed`: keep the events before an event of their partition that began.
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
        """Iterate over the events of the running event's lane that have not started, the next one first.

        Called by `handle` within its own task. Events of a later assignment are not among them.
        """
        _, lane = self._running()
        slots = takewhile(lambda slot: not slot.aside, lane.slots)
        return (slot.item for slot in slots if slot.item is not None)

    def _running(self) -> tuple[Epoch[T], Lane[T]]:
        task = asyncio.current_task()
        assert task is not None
        return self._tasks[task]

    def held(self, tp: TP) -> int:
        """Count the events of a partition that were admitted and are not acknowledged."""
        window = self._epoch.windows.get(tp)
        return 0 if window is None else len(window.pending)

    def taken_until(self, tp: TP) -> int | None:
        """Return the offset after the last event admitted, None before the first one of this assignment."""
        window = self._epoch.windows.get(tp)
        return None if window is None or window.highest is None else window.highest + 1

    def committable(self) -> dict[TP, int]:
        """Return the offset that is safe to commit, by partition of this assignment in which an event is done."""
        if self._epoch.broken:
            return {}
        windows = self._epoch.windows.values()
        return {window.tp: window.next_offset for window in windows if window.next_offset is not None}

    def full(self) -> int:
        """Count the partitions that have no room."""
        return sum(window.full for window in self._epoch.windows.values())

    # ------------------------------------------------------------------------------------------------ out
    def idle(self) -> bool:
        """Return whether no event is being handled."""
        return not self._tasks

    async def finish(self) -> None:
        """At a stop, before `drain`: finish events that began and those before them in their partitions; drop the rest.

        Otherwise an event that is done, behind one that never began, would not be committed, and its records would be
        sent again after the restart. Waits for `finish_timeout` seconds at most.
        """
        self._finishing = True
        epoch = self._epoch
        self._drop_waiting(epoch, needed=True)
        self._dispatch()
        end = time.monotonic() + self._finish_timeout
        while self._tasks and not (epoch.broken or self._crashed()) and (left := end - time.monotonic()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)  # one that ends may start another

    async def drain(self, revoked: frozenset[TP]) -> None:
        """Drop events that have not started, wait for the running ones, commit the contiguous offsets of `revoked`.

        The wait has a limit (`drain_timeout`). After a crash it waits for no event and commits nothing. Called while
        the group waits for this worker, or at a stop. Partitions that stay assigned are delivered again from their
        committed offsets, because Faust seeks after every rebalance.
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

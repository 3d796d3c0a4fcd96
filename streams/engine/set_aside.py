"""Setting records aside: a partition at its byte limit drops records of waiting events, and reads them again later.

The event keeps its place in the partition and in its lane; only its record is dropped. An event without its record
cannot start. The records are read again from the log. These rules always hold:

- A partition sets records aside when it is at its byte limit. It takes the newest waiting record of the tenant that
  holds the most bytes. If that tenant has no such record, it takes a record of another tenant, but only if another
  event of the same lane comes first. While a tenant has records set aside, its new records are set aside, too.
- When the partition holds less than half of the limit, records are read again, oldest first, until it holds three
  quarters.
- A tenant starves when all of its events that could start lack their records, and its running events hold less than a
  quarter of the limit. The records of such events are read again even if the partition is at its limit: up to a quarter
  of the limit in total, and at least one record per starving tenant. These records are not set aside again. So a
  blocked lane of one tenant does not prevent the events of another tenant from starting.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

import structlog

from ...schemas.errors import Transient
from ..log.port import Record
from .error_boundary import exception_of
from .held_events import TP, Epoch, Lane, LaneStats, LostDelivery, Slot, Window

log = structlog.get_logger(__name__)

PAUSE = 0.2
"""Maximum seconds to wait before the next read when the broker did not answer."""
STARVING_SHARE = 0.25
"""Share of a partition's byte limit that records of starving tenants may use."""
T = TypeVar("T")
Item = TypeVar("Item", contravariant=True)


class Rereads(Protocol[Item]):
    """Port for dropping a record and reading it again. Only the runner knows the contents of an item."""

    def strip(self, item: Item) -> int:
        """Drop the record of an item. Return the bytes that the item still holds."""

    def read(self, tp: TP, offset: int) -> AsyncGenerator[Record]:
        """Read the records of a partition from an offset on. Raises Transient."""

    def restore(self, item: Item, record: Record) -> None:
        """Put the record back into an item."""


class SetAside(Generic[T]):
    """Sets records of waiting events aside, and reads them again. The lanes pass in the callables:

    `withdraw(lane)`: called when the next event of the lane can no longer start.
    `line_up(lane)`: called when the next event of the lane can start again.
    `background(work)`: run a coroutine as a task.
    `end(epoch, failure)`: stop the worker.
    `is_over(epoch)`: return whether no further event of the epoch will start.
    """

    def __init__(
        self,
        rereads: Rereads[T],
        stats: LaneStats,
        *,
        withdraw: Callable[[Lane[T]], None],
        line_up: Callable[[Lane[T]], None],
        background: Callable[[Coroutine[object, object, None]], None],
        end: Callable[[Epoch[T], Exception], None],
        is_over: Callable[[Epoch[T]], bool],
    ) -> None:
        self._rereads = rereads
        self._stats = stats
        self._withdraw = withdraw
        self._line_up = line_up
        self._background = background
        self._end = end
        self._is_over = is_over

    def make_room(self, epoch: Epoch[T], window: Window[T]) -> None:
        """Set records aside while the window is at its byte limit. Start rereading when the rules allow it."""
        if self._is_over(epoch):
            return
        while window.size >= window.size_limit and (slot := _excess(epoch, window)) is not None:
            self.set_aside(epoch, slot)
        if window.aside and not window.reading_again and (window.wants_records() or _starving(epoch, window)):
            window.reading_again = True
            self._background(self._read_again(epoch, window))

    def set_aside(self, epoch: Epoch[T], slot: Slot[T]) -> None:
        """Drop the record of a waiting event."""
        assert slot.item is not None
        if _can_start(epoch, slot):
            self._withdraw(slot.lane_of(epoch))
        left = self._rereads.strip(slot.item)
        self._stats.resize(left - slot.size)
        slot.window.set_aside(slot, left)

    async def _read_again(self, epoch: Epoch[T], window: Window[T]) -> None:
        failure = await exception_of(self._read(epoch, window))
        if isinstance(failure, Transient):
            log.warning("record_not_read_again", topic=window.tp[0], partition=window.tp[1], why=str(failure))
            await asyncio.sleep(random.uniform(0, PAUSE))
        elif failure is not None and not self._is_over(epoch):
            self._end(epoch, failure)
        window.reading_again = False
        self.make_room(epoch, window)

    async def _read(self, epoch: Epoch[T], window: Window[T]) -> None:
        """Read dropped records again: the oldest records if the window has room, else records of starving tenants.

        Raises LostDelivery when the log no longer has one of them.
        """
        has_room = window.wants_records()
        starving = {} if has_room else _starving(epoch, window)
        heads = sorted((slot for slots in starving.values() for slot in slots), key=lambda slot: slot.offset)
        waiting = deque((slot for slot in window.pending if slot.aside) if has_room else heads)
        if not waiting:
            return
        left = {tenant: STARVING_SHARE * window.size_limit / len(starving) for tenant in starving}
        restored = False

        def is_wanted(slot: Slot[T]) -> bool:
            """Return whether no earlier event's outcome covered the event, and its tenant's share is not used up."""
            return slot.aside and (has_room or left[slot.tenant] > 0)

        async with aclosing(self._rereads.read(window.tp, waiting[0].offset)) as records:
            async for record in records:
                while waiting and not is_wanted(waiting[0]):
                    waiting.popleft()
                if not waiting or self._is_over(epoch) or (has_room and restored and not window.takes_records()):
                    return
                if record.position.offset < waiting[0].offset:
                    continue
                if record.position.offset > waiting[0].offset:
                    break
                slot = waiting.popleft()
                restored = True
                if not has_room:
                    slot.kept = True
                    left[slot.tenant] -= record.size()
                self._restore(epoch, slot, record)
        lost = next(filter(is_wanted, waiting), None)
        if lost is not None and not self._is_over(epoch):
            where = f"{window.tp[0]}[{window.tp[1]}]"
            raise LostDelivery(f"{where}: {lost.offset} was delivered, and the log has it no longer")

    def _restore(self, epoch: Epoch[T], slot: Slot[T], record: Record) -> None:
        assert slot.item is not None
        self._rereads.restore(slot.item, record)
        self._stats.resize(record.size() - slot.size)
        slot.window.restore(slot, record.size())
        if _can_start(epoch, slot):
            self._line_up(slot.lane_of(epoch))


def _can_start(epoch: Epoch[T], slot: Slot[T]) -> bool:
    """Return whether an event is the first waiting event of its lane, and no event of the lane runs."""
    lane = slot.lane_of(epoch)
    return not lane.busy and lane.slots[0] is slot


def _excess(epoch: Epoch[T], window: Window[T]) -> Slot[T] | None:
    """Return the event whose record is set aside next in a window at its byte limit, or None."""
    newest: dict[str, Slot[T]] = {}
    most = max(window.sizes, key=window.sizes.__getitem__)
    for slot in reversed(window.pending):
        if slot.started or slot.done or slot.aside or slot.tenant in newest:
            continue
        if (slot.kept or slot.tenant != most) and _can_start(epoch, slot):
            continue
        newest[slot.tenant] = slot
        if slot.tenant == most:
            break
    return max(newest.values(), key=lambda slot: window.sizes[slot.tenant], default=None)


def _starving(epoch: Epoch[T], window: Window[T]) -> dict[str, list[Slot[T]]]:
    """Return, by starving tenant of this window, the events that could start if they had their record."""
    heads: dict[str, list[Slot[T]]] = {tenant: [] for tenant in window.aside}
    running: Counter[str] = Counter()
    for slot in window.pending:
        if slot.tenant not in heads or slot.done:
            continue
        if slot.started:
            running[slot.tenant] += slot.size
            starves = running[slot.tenant] < STARVING_SHARE * window.size_limit
        elif _can_start(epoch, slot):
            starves = slot.aside
            heads[slot.tenant].append(slot)
        else:
            continue
        if not starves:
            del heads[slot.tenant]
            if not heads:
                break
    return {tenant: slots for tenant, slots in heads.items() if slots}

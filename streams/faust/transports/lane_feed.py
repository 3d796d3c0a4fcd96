"""Mixin for both consumers (Kafka and embedded). It differs from Faust's consumer in three points.

- Delivery: Faust delivers each record with two tasks, `wait_first(callback(message), suspend_flow.wait())`
  (`faust/transport/consumer.py:1220`), so that a delivery to a full queue ends when the flow is suspended. Usually the
  queue has room and the callback does not wait. The two tasks are then useless and take a tenth of an event's time, so
  the mixin awaits the callback directly.
- Commit: the lanes (streams/engine/lanes.py) decide which offset is safe to commit. Faust's own acknowledgements are
  not used: Faust keeps every message until the previous message is acknowledged, and rebuilds its tree of holes at each
  hole. This takes milliseconds per turn when a producer sends every turn in a transaction.
- Room: the lanes decide which partitions have room. Partitions without room are not fetched. Nothing has to be paused
  and resumed, so a rebalance cannot leave a partition paused. Records that were already fetched are delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from faust.types import TP

UNREAD: Final = 16
"""Number of unfetched offsets in a partition above which the lanes wait for the next fetch. A smaller number may be
only transaction markers, which are never delivered."""


def to_come(left: int, offset: int, highwater: int | None) -> int:
    """Return the number of records of a partition that follow the record at `offset`.

    The number is `left`, the rest of the fetch. At the end of the fetch it is the number of unfetched offsets, if this
    exceeds `UNREAD`.
    """
    unread = 0 if highwater is None else highwater - offset - 1
    return left or (unread if unread > UNREAD else 0)


def left_of(records: Mapping[TP, Sequence[Any]]) -> dict[TP, int]:
    """Return the number of records to be delivered, by partition."""
    return {tp: len(fetched) for tp, fetched in records.items()}


class AsksLanes:
    """A mixin for a Faust consumer class. It must precede that class in the bases."""

    app: Any
    suspend_flow: Any
    _should_commit: Any

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """Do the same as `mode.Service.wait_first`, but await a delivery directly if the queue has room for it."""
        if len(coros) == 2 and timeout is None and all(map(asyncio.iscoroutine, coros)) and self._queue_has_room():
            delivery, suspended = coros
            suspended.close()
            return await delivery
        return await super().wait_first(*coros, timeout=timeout)  # type: ignore[misc]

    def has_room(self, tp: TP) -> bool:
        """Return whether the lanes accept more records of a partition. Also called by the consumer's thread."""
        return self.app.lanes is None or self.app.lanes.has_room(tp)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return iter(())

    def _filter_committable_offsets(self, tps: Iterable[TP]) -> dict[TP, int]:
        if self.app.lanes is None:
            return {}
        found = ((TP(*tp), offset) for tp, offset in self.app.lanes.committable().items())
        return {tp: offset for tp, offset in found if self._should_commit(tp, offset)}

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Do nothing: the lanes skip holes."""

    def _queue_has_room(self) -> bool:
        """Return whether a delivery would not block in `faust/transport/conductor.py:102` (`on_message`).

        `on_message` also waits for Faust's producer buffer, which is always empty: tables and stages bypass it.
        """
        conductor = self.app.topics
        return (
            not self.suspend_flow.is_set()
            and self.app.flow_control.is_active()
            and not conductor._tp_to_callback_lock.locked()
            and not any(channel.queue.full() for channel in conductor._topics)
        )

"""What our consumers on Kafka and on the embedded log do otherwise than Faust's: they ask the lanes.

- Faust delivers each record with two tasks, `wait_first(callback(message), suspend_flow.wait())`
  (`faust/transport/consumer.py:1220`), so that a delivery to a full queue ends when the flow is suspended. Usually the
  queue has room and the callback does not wait. Then both tasks are useless, and take a tenth of an event's time.
- The lanes know which offset is safe to commit. Faust's own record of acknowledgements is not used: it keeps every
  message until the one before it is acknowledged, and its tree of holes is built anew at each hole, which takes
  milliseconds when a producer's every turn is a transaction.
- The lanes know which partitions have no room. They are not fetched, and all others are. Nothing has to be paused and
  resumed, so a rebalance can leave nothing paused. What was fetched already is delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from faust.types import TP

UNREAD: Final = 16
"""Records of a partition beyond those that were fetched. If there are more, the lanes wait for the next fetch. Fewer
may be transaction markers, which never come."""


def to_come(left: int, offset: int, highwater: int | None) -> int:
    """Return how many records of a partition the lanes should wait for: those in hand, else those of a backlog."""
    unread = 0 if highwater is None else highwater - offset - 1
    return left or (unread if unread > UNREAD else 0)


def left_of(records: Mapping[TP, Sequence[Any]]) -> dict[TP, int]:
    """Return how many records of each partition are to be delivered."""
    return {tp: len(fetched) for tp, fetched in records.items()}


class AsksLanes:
    """A mixin for a Faust consumer class, to stand before the class in the bases."""

    app: Any
    suspend_flow: Any
    _should_commit: Any

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """Do the same as `mode.Service.wait_first`, but await a delivery directly where it will not wait."""
        if len(coros) == 2 and timeout is None and all(map(asyncio.iscoroutine, coros)) and self._queue_has_room():
            delivery, suspended = coros
            suspended.close()
            return await delivery
        return await super().wait_first(*coros, timeout=timeout)  # type: ignore[misc]

    def has_room(self, tp: TP) -> bool:
        """Whether the lanes take more of a partition. The consumer's thread calls it, too."""
        return self.app.lanes is None or self.app.lanes.has_room(tp)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return iter(())

    def _filter_committable_offsets(self, tps: Iterable[TP]) -> dict[TP, int]:
        if self.app.lanes is None:
            return {}
        found = ((TP(*tp), offset) for tp, offset in self.app.lanes.committable().items())
        return {tp: offset for tp, offset in found if self._should_commit(tp, offset)}

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Keep nothing of a hole: the lanes pass over it."""

    def _queue_has_room(self) -> bool:
        """Whether none of the waits in `faust/transport/conductor.py:102` (`on_message`) would wait.

        It also waits for Faust's buffer of the producer. Nothing is put into it: tables and stages send by themselves.
        """
        conductor = self.app.topics
        return (
            not self.suspend_flow.is_set()
            and self.app.flow_control.is_active()
            and not conductor._tp_to_callback_lock.locked()
            and not any(channel.queue.full() for channel in conductor._topics)
        )

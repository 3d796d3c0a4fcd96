"""Fast delivery of records: without tasks where the delivery does not have to wait.

Faust delivers each record with two tasks, `wait_first(callback(message), suspend_flow.wait())`
(`faust/transport/consumer.py:1220`), so that a delivery to a full queue ends when the flow is suspended. Usually the
queue has room and the callback does not wait. Then both tasks are useless, and take a tenth of an event's time.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

BUFFERED_MAX: Final = 100_000
"""Changelog entries that may wait for the producer before deliveries wait for them. Faust's 100 is less than the events
in flight of a worker: each wave of answers would stall the consumer, with a warning for every record. The backlog of
the lanes bounds them."""


class DeliversAtOnce:
    """A mixin for a Faust consumer class, to stand before the class in the bases."""

    app: Any
    suspend_flow: Any

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """Do the same as `mode.Service.wait_first`, but await a delivery directly where it will not wait."""
        if len(coros) == 2 and timeout is None and all(map(asyncio.iscoroutine, coros)) and self._has_room():
            delivery, suspended = coros
            suspended.close()
            return await delivery
        return await super().wait_first(*coros, timeout=timeout)  # type: ignore[misc]

    def _has_room(self) -> bool:
        """Whether none of the waits in `faust/transport/conductor.py:102` (`on_message`) would wait."""
        buffer, conductor = self.app.producer.buffer, self.app.topics
        return (
            not self.suspend_flow.is_set()
            and self.app.flow_control.is_active()
            and buffer.pending.qsize() <= buffer.max_messages
            and not conductor._tp_to_callback_lock.locked()
            and not any(channel.queue.full() for channel in conductor._topics)
        )

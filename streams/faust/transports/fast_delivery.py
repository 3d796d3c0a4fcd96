"""A record that nothing has to be waited for is delivered at once.

Faust hands over each record with two tasks, `wait_first(callback(message), suspend_flow.wait())`
(`faust/transport/consumer.py:1220`), so that a delivery to a full queue ends when the flow is suspended. Mostly the
queue has room, the callback ends without waiting, and both tasks are for nothing: a tenth of what an event costs.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

BUFFERED_MAX: Final = 100_000
"""Changelog entries that wait to be handed to the producer before deliveries wait for them. Faust's 100 is less than
the events in flight of a worker: each wave of answers held the consumer up, with a warning for every record. What
bounds them is the backlog of the lanes."""


class DeliversAtOnce:
    """For a Faust consumer, before its class."""

    app: Any
    suspend_flow: Any

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """As `mode.Service.wait_first`; a delivery that will not wait is simply awaited."""
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

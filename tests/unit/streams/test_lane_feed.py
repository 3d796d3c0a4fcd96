"""Fast delivery: used only where Faust's delivery would not wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from memstream.streams.faust.transports.lane_feed import AsksLanes, to_come


class Faust:
    """Faust's delivery: `mode.Service.wait_first`."""

    def __init__(self) -> None:
        self.waited = 0

    async def wait_first(self, *coros: Any, timeout: Any = None) -> str:
        self.waited += 1
        for coro in coros:
            if asyncio.iscoroutine(coro):
                coro.close()
        return "waited"


@dataclass(frozen=True, eq=False)
class Channel:
    queue: asyncio.Queue[str]


class Consumer(AsksLanes, Faust):
    def __init__(self) -> None:
        super().__init__()
        self.suspend_flow = asyncio.Event()
        self.active = True
        self.queue: asyncio.Queue[str] = asyncio.Queue(maxsize=1)
        self.lock = asyncio.Lock()
        self.app = SimpleNamespace(
            flow_control=SimpleNamespace(is_active=lambda: self.active),
            topics=SimpleNamespace(_tp_to_callback_lock=self.lock, _topics={Channel(self.queue)}),
        )

    async def deliver(self, value: str) -> object:
        return await self.wait_first(self.queue.put(value), self.suspend_flow.wait())


async def test_with_room_it_is_delivered_at_once() -> None:
    consumer = Consumer()
    await consumer.deliver("one")
    assert (consumer.queue.qsize(), consumer.waited) == (1, 0)


async def test_a_full_queue_is_waited_for_as_before() -> None:
    consumer = Consumer()
    await consumer.deliver("one")
    assert await consumer.deliver("two") == "waited"


async def test_a_suspended_flow_is_left_to_faust() -> None:
    consumer = Consumer()
    consumer.suspend_flow.set()
    assert await consumer.deliver("one") == "waited"


async def test_a_flow_that_is_not_active_is_left_to_faust() -> None:
    consumer = Consumer()
    consumer.active = False
    assert await consumer.deliver("one") == "waited"


async def test_a_conductor_that_takes_new_topics_is_left_to_faust() -> None:
    consumer = Consumer()
    async with consumer.lock:
        assert await consumer.deliver("one") == "waited"


async def test_any_other_wait_is_left_alone() -> None:
    consumer = Consumer()
    assert await consumer.wait_first(asyncio.sleep(0), timeout=1.0) == "waited"
    assert await consumer.wait_first(asyncio.Event(), asyncio.Event()) == "waited"


@pytest.mark.parametrize(
    ("left", "highwater", "expected"),
    [(3, 104, 3), (0, 101, 0), (0, 117, 0), (0, 118, 17), (2, None, 2), (0, None, 0)],
)
def test_the_lanes_wait_for_what_is_in_hand_and_for_a_backlog(left: int, highwater: int | None, expected: int) -> None:
    assert to_come(left, 100, highwater) == expected

"""Places for calls: a flood of one tenant, cancelled waits, and the limit."""

from __future__ import annotations

import asyncio

import pytest

from memstream.streams.engine.fair_places import FairPlaces
from tests.support.polling import wait_for


class Calls:
    """Calls that hold a place until the test ends them."""

    def __init__(self, places: int) -> None:
        self.places = FairPlaces(places)
        self.running: list[str] = []
        self.most = 0
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, name: str) -> None:
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._call(name))

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.tasks[name]

    async def _call(self, name: str) -> None:
        async with self.places.place(name.partition("/")[0]):
            self.running.append(name)
            self.most = max(self.most, len(self.running))
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)

    async def run(self, *names: str) -> None:
        await wait_for(lambda: sorted(self.running) == sorted(names), f"calls {names}", deadline=10, pause=0)


async def test_the_next_place_is_the_tenants_that_has_none() -> None:
    calls = Calls(2)
    for n in range(5):
        calls.begin(f"flood/{n}")
    await calls.run("flood/0", "flood/1")
    calls.begin("calm/0")
    await calls.end("flood/0")
    await calls.run("flood/1", "calm/0")
    await calls.end("calm/0")
    await calls.run("flood/1", "flood/2")
    for n in range(1, 5):
        await calls.end(f"flood/{n}")
    assert (calls.running, calls.most) == ([], 2)


@pytest.mark.parametrize("when", ["it waits", "it has just got the place", "it holds the place"])
async def test_a_cancelled_call_leaves_no_place_behind(when: str) -> None:
    calls = Calls(1)
    calls.begin("a/0")
    await calls.run("a/0")
    calls.begin("b/0")
    await asyncio.sleep(0)
    if when == "it waits":
        calls.tasks["b/0"].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls.tasks["b/0"]
        await calls.end("a/0")
    elif when == "it has just got the place":
        calls.places._give_back("a")  # as at the end of a/0; b/0 has not run since
        calls.tasks["b/0"].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls.tasks["b/0"]
        await calls.places._take("a")  # a/0 gives it back once more
        await calls.end("a/0")
    else:
        await calls.end("a/0")
        await calls.run("b/0")
        calls.tasks["b/0"].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls.tasks["b/0"]
    calls.begin("c/0")
    await calls.run("c/0")
    await calls.end("c/0")
    assert calls.most == 1

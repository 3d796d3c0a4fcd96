"""Blocking work in a thread: the event loop goes on, and nobody leaves before the thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from memstream.streams.faust.blocking_work import in_thread


async def test_the_event_loop_goes_on_and_gets_the_result() -> None:
    loop, went_on = asyncio.get_running_loop(), threading.Event()

    def work(number: int) -> tuple[int, bool]:
        loop.call_soon_threadsafe(went_on.set)
        return number, went_on.wait(30)

    assert await in_thread(work, 7) == (7, True)


async def test_an_error_of_the_work_is_raised() -> None:
    def work() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await in_thread(work)


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_caller_waits_for_the_thread(cancels: int, fails: bool) -> None:
    began, end, ended = threading.Event(), threading.Event(), False

    def work() -> None:
        nonlocal ended
        began.set()
        end.wait(30)
        ended = True
        if fails:
            raise OSError("no room")

    caller = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(began.wait, 30)
    for _ in range(cancels):
        caller.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not caller.done()
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended

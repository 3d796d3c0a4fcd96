"""Work in a thread, so that it does not block the event loop: a blocking call, or CPU-intensive coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Call `work(*args)` in a thread and return its result.

    A cancelled caller also waits for the thread. So when this call has ended, the thread no longer uses any resource.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # read here, because asyncio would log it as never retrieved
        raise


class LoopThread:
    """An event loop in a separate thread, from the construction until `stop`.

    Its coroutines share the GIL with the caller's loop, so the caller's loop can run every few milliseconds.
    """

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._runner:  # its exit cancels the running tasks
            self._runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._ending.wait()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and return its result. Cancelling the caller cancels the coroutine."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def stop(self) -> None:
        """Cancel the running coroutines and end the thread. Blocks. Call it once."""
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

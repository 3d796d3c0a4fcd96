"""Blocking work in a thread, so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Call `work(*args)` in a thread and return its result.

    A caller that is cancelled waits for the thread, too: what the thread uses is free when this call has ended.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody waits for it, and asyncio would log it as lost
        raise

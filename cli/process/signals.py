"""SIGTERM and SIGINT, for commands that run until they are told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

import click
import structlog

from ...schemas.errors import StageError
from ...streams.engine.process_exit import exit_code_for
from ..errors import Exit

log = structlog.get_logger(__name__)

Running = Callable[[asyncio.Event, asyncio.Event], Awaitable[int]]
"""Gets `running`, which it sets when something is in flight that has to end well, and `stopping`; gives the exit
code."""


async def until_stopped(run: Running, *, name: str) -> int:
    """The exit code. A signal sets `stopping`; while servers are still being looked for it ends at once."""
    running, stopping = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    work = asyncio.ensure_future(run(running, stopping))
    asked = asyncio.ensure_future(stopping.wait())
    await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not work.done() and not running.is_set():
        work.cancel()
        await asyncio.wait((work,))
        return Exit.DONE
    await asyncio.wait((work,))
    error = work.exception()
    if error is not None and not isinstance(error, StageError | click.ClickException):
        log.critical(f"{name}_failed", error=repr(error), exc_info=error)
        return exit_code_for(error)
    return work.result()

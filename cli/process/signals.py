"""SIGTERM and SIGINT for commands that run until a signal."""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Awaitable, Callable

import click
import structlog

from ...schemas.base import describe
from ...schemas.errors import StageError
from ...streams.engine.process_exit import exit_code_for
from ..errors import Exit

log = structlog.get_logger(__name__)

Running = Callable[[asyncio.Event, asyncio.Event], Awaitable[int]]
"""Work of a command. It gets `running`, which it sets once events are in flight, and `stopping`; it returns the exit
code."""


async def until_stopped(run: Running, *, name: str) -> int:
    """Run and return the exit code. A signal sets `stopping`; before `running` it ends the run at once."""
    running, stopping = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    work = asyncio.ensure_future(run(running, stopping))
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not work.done() and not running.is_set():
        work.cancel()
        await asyncio.wait((work,))
        return Exit.DONE
    await asyncio.wait((work,))
    error = work.exception()
    if error is not None and not isinstance(error, StageError | click.ClickException):
        # not exc_info: the messages of causes may repeat what users said
        where = "".join(traceback.format_tb(error.__traceback__))
        log.critical(f"{name}_failed", error=describe(error), where=where)
        return exit_code_for(error)
    return work.result()

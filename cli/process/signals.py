"""Signals of long-running commands: SIGTERM and SIGINT stop them; SIGHUP stops them if their terminal was closed."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Sequence

import click
import structlog

from ...schemas.base import describe
from ...schemas.errors import StageError
from ...streams.engine.process_exit import exit_code_for
from ..errors import Exit
from .log_files import LogFile, log_files

log = structlog.get_logger(__name__)

STREAMS = (0, 1, 2)
"""File descriptors of the standard streams."""
Running = Callable[[asyncio.Event, asyncio.Event], Awaitable[int]]
"""Work of a command. It returns the exit code and has two arguments, `running` and `stopping`. The work sets `running`
when it has started. It ends soon after `stopping` is set."""


async def until_stopped(run: Running, *, name: str) -> int:
    """Run the work and return its exit code. A signal sets `stopping`. If `running` is not set yet, the signal cancels
    the work instead."""
    running, stopping = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    _handle_hangup(loop, stopping)
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
        # not exc_info: messages of causes may contain users' text
        where = "".join(traceback.format_tb(error.__traceback__))
        log.critical(f"{name}_failed", error=describe(error), where=where)
        return exit_code_for(error)
    return work.result()


def _handle_hangup(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Handle SIGHUP.

    With a controlling terminal, SIGHUP means that the terminal was closed: stop the command. Without a controlling
    terminal, a log rotation sends SIGHUP: reopen the log files. A process that ignores SIGHUP (nohup) continues to
    ignore it.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return
    if _has_terminal():
        terminals = [descriptor for descriptor in STREAMS if os.isatty(descriptor)]
        loop.add_signal_handler(signal.SIGHUP, _leave_terminal, terminals, stopping)
    else:
        loop.add_signal_handler(signal.SIGHUP, _reopen, log_files())


def _has_terminal() -> bool:
    """Return whether the process has a controlling terminal."""
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _leave_terminal(terminals: Sequence[int], stopping: asyncio.Event) -> None:
    """Redirect the standard streams to the null device, because a closed terminal fails every write. Then stop."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in terminals:
        os.dup2(null, descriptor)
    os.close(null)
    stopping.set()


def _reopen(files: tuple[LogFile, ...]) -> None:
    for file in files:
        try:
            file.reopen()
        except OSError as error:
            log.error("log_not_reopened", file=str(file.path), why=error.strerror or str(error))

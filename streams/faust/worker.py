"""A worker: the stages of one process, from their start to the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog

from ...schemas.base import describe
from ..engine.hangs import HangWatch
from ..engine.process_exit import DONE, exit_code_for, tell_end
from .app import without_faust
from .runner import StageRunner

log = structlog.get_logger(__name__)


async def run_watched(runners: Sequence[StageRunner], *, stopping: asyncio.Event, watch: HangWatch) -> int:
    """Run the stages as `run_worker` does, with a watchdog over the event loop."""
    hang = watch.last()
    for runner in runners:
        if hang is not None and hang.stage == runner.name:
            runner.note_hang(hang)
            await runner.tell_hangs()  # before this worker joins the group: another worker may then get the record
    watch.forget()
    with watch.over([runner.steps for runner in runners]):
        return await run_worker(runners, stopping=stopping)


async def run_worker(runners: Sequence[StageRunner], *, stopping: asyncio.Event) -> int:
    """Run the stages in this process until `stopping` is set or one of them ends. Return the exit code.

    A clean stop drains, commits and leaves the groups. A crash of one stage ends all of them, and the supervisor starts
    the worker again.
    """
    for runner in runners:
        runner.prepare()
    apps = [runner.app for runner in runners]
    waits = [asyncio.ensure_future(stopping.wait())]
    try:
        started = [asyncio.ensure_future(app.start()) for app in apps]
        for app in apps:
            waits += [asyncio.ensure_future(app._crashed.wait()), asyncio.ensure_future(app._stopped.wait())]
        await _first(*waits, asyncio.gather(*started))
        if not any(wait.done() for wait in waits):
            log.info("worker_started", stages=[runner.name for runner in runners])
            await _first(*waits)
    finally:
        stops = await asyncio.gather(*(app.stop() for app in apps), return_exceptions=True)
        for wait in waits:
            wait.cancel()
    failed = [without_faust(stop) for stop in stops if isinstance(stop, BaseException)]
    for error in failed:
        log.error("stage_stopped_badly", error=describe(error))
    reasons = [app.crash_reason for app in apps if app.crash_reason is not None]
    reasons += failed
    if reasons:
        tell_end(reasons[0])
    return exit_code_for(reasons[0]) if reasons else DONE


async def _first(*futures: asyncio.Future[Any]) -> None:
    """Wait until one of the futures is done, and raise its exception, if any."""
    done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    for future in done:
        future.result()

"""`memstream worker STAGE… | all`: runs stages until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import click
import structlog

from ...memory.policies import MemoryPolicy
from ...schemas.errors import StageError
from ...schemas.topics import STAGES, StageName
from ...streams.exits import exit_code_for
from .. import logs
from ..context import CommandContext, pass_context, run
from ..errors import Exit, usage
from ..running import built_stages
from ..settings import Settings
from ..wiring import own_folders

log = structlog.get_logger(__name__)
ALL = "all"


@click.command()
@click.argument("stages", nargs=-1, required=True, type=click.Choice([*STAGES, ALL]))
@pass_context
def worker(context: CommandContext, stages: tuple[str, ...]) -> None:
    """Run stages in this process: recorder, observer, reflector, consolidation, or all.

    SIGTERM drains what is in flight, commits and exits 0. Logs go to stdout. MEMSTREAM_HEALTH_PORT serves /livez,
    /readyz and /metrics.
    """
    if ALL in stages and len(stages) > 1:
        raise usage("all stands alone")
    if len(set(stages)) < len(stages):
        raise usage("a stage is named twice")
    names = STAGES if ALL in stages else tuple(name for name in STAGES if name in stages)
    logs.configure(stream=sys.stdout, level=logging.INFO)
    raise SystemExit(run(_work(context.settings, context.policy, names)))


async def _work(settings: Settings, policy: MemoryPolicy, names: tuple[StageName, ...]) -> int:
    """SIGTERM while servers are still being looked for ends at once: nothing is in flight yet."""
    stopping, running = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    work = asyncio.ensure_future(_run(settings, policy, names, running=running, stopping=stopping))
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
        log.critical("worker_failed", error=repr(error), exc_info=error)
        return exit_code_for(error)
    return work.result()


async def _run(
    settings: Settings,
    policy: MemoryPolicy,
    names: tuple[StageName, ...],
    *,
    running: asyncio.Event,
    stopping: asyncio.Event,
) -> int:
    async with (
        own_folders(settings, purpose=f"worker {' '.join(names)}") as folders,
        built_stages(names, settings=settings, policy=policy, folders=folders) as stages,
    ):
        running.set()
        return await stages.run(stopping=stopping)

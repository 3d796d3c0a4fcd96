"""`memstream worker STAGE… | all`: run stages until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import sys

import click

from ...memory.policies import MemoryPolicy
from ...schemas.topics import STAGES, StageName
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import logs
from ..process.garbage_collection import tune_garbage_collection
from ..process.malloc_trim import bound_arenas
from ..process.signals import until_stopped
from ..wiring.ports import own_folders
from ..wiring.settings import Settings
from ..wiring.worker import built_stages

ALL = "all"


@click.command()
@click.argument("stages", nargs=-1, required=True, type=click.Choice([*STAGES, ALL]))
@pass_context
def worker(context: CommandContext, stages: tuple[str, ...]) -> None:
    """Run stages in this process: recorder, observer, reflector, consolidation, or all.

    On SIGTERM it finishes the events in flight, commits and exits 0. Logs go to stdout. The port
    MEMSTREAM_HEALTH_PORT serves /livez, /readyz and /metrics.
    """
    if ALL in stages and len(stages) > 1:
        raise usage("give either all or names of stages")
    if len(set(stages)) < len(stages):
        raise usage("a stage is named twice")
    names = STAGES if ALL in stages else tuple(name for name in STAGES if name in stages)
    bound_arenas()
    logs.configure(stream=sys.stdout, level=logging.INFO)
    raise SystemExit(run(_work(context.settings, context.policy, names)))


async def _work(settings: Settings, policy: MemoryPolicy, names: tuple[StageName, ...]) -> int:
    async def work(running: asyncio.Event, stopping: asyncio.Event) -> int:
        async with (
            own_folders(settings, purpose=f"worker {' '.join(names)}") as folders,
            built_stages(names, settings=settings, policy=policy, folders=folders) as stages,
        ):
            tune_garbage_collection()
            running.set()
            return await stages.run(stopping=stopping)

    return await until_stopped(work, name="worker")

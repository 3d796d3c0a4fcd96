"""Stages for a command such as `demo`: run the stages in this process, or use the process that holds the folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ...adapters.ports import PeriodVectorStore
from ...memory.policies import MemoryPolicy
from ...schemas.topics import STAGES, StageName
from ...streams.faust.runner import AWAY
from ...streams.log.port import Log
from ..errors import CommandFailed, Exit
from .broker import opened_log
from .ports import new_store, reader_identity, tried_folders
from .settings import Settings
from .worker import Stages, built_stages

READY_SECONDS = 30.0
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class RunningStages:
    """The stages of this process, while they run."""

    stages: Stages
    work: asyncio.Task[int]
    """It ends when the stages end by themselves."""

    def why_idle(self, stage: StageName) -> str:
        """Return why a stage does not work: it is not ready, or a model is away; empty while it works."""
        ready, why = self.stages.readiness().get(stage, (True, ""))
        return why if not ready or why.startswith(AWAY) else ""


@dataclass(frozen=True, slots=True)
class LocalStages:
    """Ports of a command, and the stages if they run in this process."""

    log: Log
    store: PeriodVectorStore
    model: str
    running: RunningStages | None = None

    @property
    def stages_here(self) -> bool:
        return self.running is not None


@asynccontextmanager
async def local_stages(settings: Settings, policy: MemoryPolicy, *, purpose: str) -> AsyncIterator[LocalStages]:
    """Run all stages in this process if the folder is free, and wait until they are ready.

    Otherwise yield ports that reach the stages of another process.
    """
    async with AsyncExitStack() as stack:
        folders = await stack.enter_async_context(tried_folders(settings, purpose=purpose))
        if settings.folders and folders.held == frozenset(settings.folders) and settings.broker_folder is not None:
            stages = await stack.enter_async_context(
                built_stages(STAGES, settings=settings, policy=policy, folders=folders)
            )
            running = await stack.enter_async_context(_running(stages))
            yield LocalStages(stages.log, stages.store, stages.completions.model, running)
            return
        log = await stack.enter_async_context(opened_log(settings))
        store = await new_store(settings, identity=reader_identity(settings), folders=folders)
        stack.push_async_callback(store.close)
        yield LocalStages(log, store, settings.model_names[0])


@asynccontextmanager
async def _running(stages: Stages) -> AsyncIterator[RunningStages]:
    """Start the stages, wait until they are ready, and drain them at the end.

    Raises CommandFailed with the worker's exit code if the stages end by themselves.
    """
    stopping = asyncio.Event()
    work = asyncio.create_task(stages.run(stopping=stopping))
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not stages.ready():
                if work.done():
                    raise CommandFailed(Exit(work.result()), "the stages ended while they were starting")
                await asyncio.sleep(LOOK_SECONDS)
        yield RunningStages(stages, work)
    except TimeoutError as error:
        why = ", ".join(f"{name}: {why}" for name, (ready, why) in stages.readiness().items() if not ready)
        raise CommandFailed(Exit.BROKEN, f"the stages were not ready within {READY_SECONDS:.0f} s: {why}") from error
    finally:
        stopping.set()
        code = await work
    if code != Exit.DONE:
        raise CommandFailed(Exit(code), "a stage ended with an error; run again with -v to see why")

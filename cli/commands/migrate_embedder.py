"""`memstream migrate-embedder`: embed the stored memory again with another embedder, and switch reads to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

import click
from pydantic import JsonValue

from ...adapters.ports import EmbedderIdentity
from ...adapters.vectors.embedder_change import ChangeRefused
from ...adapters.vectors.periods.period_store import PeriodStore
from ...schemas.topics import STAGES, group_of
from ...streams.log.port import Log
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..process.startup_retry import StartupRetry
from ..wiring.broker import opened_log, require_memory
from ..wiring.ports import NoUsage, new_embedder, new_store, own_folders, reader_identity, tried_folders
from ..wiring.reembedding import Reembedding
from ..wiring.settings import Settings
from ..wiring.worker import PROBE_TENANT, PROBE_TEXT

PURPOSE: Final = "migrate-embedder"
LINE_SECONDS: Final = 5.0
"""Seconds between two lines of progress."""
BATCH: Final = 256


@click.command("migrate-embedder")
@click.option("--to", metavar="NAME", help="The new embedder, as in MEMSTREAM_EMBEDDER.")
@click.option("--drop-old", is_flag=True, help="Delete the vectors from before the switch. Workers may start then.")
@click.option("--back", is_flag=True, help="End the change: return to the vectors from before it.")
@click.option(
    "--batch", type=click.IntRange(1, 1000), default=BATCH, show_default=True, help="Records embedded together."
)
@click.option("--dry-run", is_flag=True, help="Count the records, and change nothing.")
@options.as_json
@pass_context
def migrate_embedder(
    context: CommandContext, to: str | None, drop_old: bool, back: bool, batch: int, dry_run: bool, as_json: bool
) -> None:
    """Embed the stored memory again with another embedder, and switch reads to it in one step.

    Stop all workers first (exit 2 while one runs). Turns wait in the log meanwhile. If the command is stopped, run it
    again: it continues. After the switch set MEMSTREAM_EMBEDDER to the new name, compare recall, then run --drop-old,
    or --back to return. Workers start only after one of the two.
    """
    if [to is not None, drop_old, back].count(True) != 1:
        raise usage("give one of --to NAME, --drop-old and --back")
    if to is None:
        done = run(_end(context.settings, back=back))
    else:
        done = run(_migrate(context.settings.model_copy(update={"embedder": to}), batch=batch, dry_run=dry_run))
    if as_json:
        console.line(done)
    else:
        console.advice(", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in done.items()))


async def _migrate(settings: Settings, *, batch: int, dry_run: bool) -> dict[str, JsonValue]:
    async with AsyncExitStack() as stack:
        embedder = new_embedder(settings, sink=NoUsage())
        stack.push_async_callback(embedder.close)
        await StartupRetry()("the embedder", lambda: embedder.embed([PROBE_TEXT], tenant_id=PROBE_TENANT))
        log, store = await stack.enter_async_context(_opened(settings, embedder.identity, alone=not dry_run))
        change = store.embedder_change()
        used, _ = await change.embedders()
        told: dict[str, JsonValue] = {"from": None if used is None else used.name, "to": embedder.identity.name}
        if dry_run:
            return told | {pair.aliases[0]: await change.count(pair.used) for pair in (await change.state()).pairs}
        began = time.monotonic()
        try:
            state = await change.begin(embedder.identity)
            await _refuse_running(log)  # a worker that starts from now on sees the change
            filling = Reembedding(change=change, store=store, embedder=embedder, batch=batch)
            report = await filling.fill(state, _Lines())
            await _refuse_running(log)
            await change.switch()
        except ChangeRefused as refused:
            raise usage(str(refused)) from refused
        return told | asdict(report) | {"seconds": round(time.monotonic() - began, 1)}


async def _end(settings: Settings, *, back: bool) -> dict[str, JsonValue]:
    async with _opened(settings, reader_identity(settings), alone=True) as (log, store):
        await _refuse_running(log)
        change = store.embedder_change()
        try:
            await (change.back() if back else change.drop_old())
        except ChangeRefused as refused:
            raise usage(str(refused)) from refused
        used, _ = await change.embedders()
        return {"embedder": None if used is None else used.name}


@asynccontextmanager
async def _opened(
    settings: Settings, identity: EmbedderIdentity, *, alone: bool
) -> AsyncIterator[tuple[Log, PeriodStore]]:
    """Open log and store. `alone`: raise CommandFailed (exit 2) when another process holds the folder."""
    require_memory(settings.qdrant_folder, settings.broker_folder)
    async with AsyncExitStack() as stack:
        held = (
            own_folders(settings, purpose=PURPOSE, patience=0.0) if alone else tried_folders(settings, purpose=PURPOSE)
        )
        folders = await stack.enter_async_context(held)
        log = await stack.enter_async_context(opened_log(settings))
        store = await new_store(settings, identity=identity, folders=folders)
        stack.push_async_callback(store.close)
        yield log, store


async def _refuse_running(log: Log) -> None:
    """Raise CommandFailed (exit 2) while a worker runs: it would write vectors of one embedder only."""
    running = [stage for stage in STAGES if await log.members(group_of(stage))]
    if running:
        raise usage(f"workers of {', '.join(running)} are running: stop them first, and run the command again")


@dataclass(slots=True)
class _Lines:
    """Progress in plain lines."""

    _last: float = field(default_factory=time.monotonic)

    def __call__(self, collection: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            console.advice(f"{collection}: {done} of {total}")

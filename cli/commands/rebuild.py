"""`memstream rebuild facts`: rebuild the facts in Qdrant from memory.facts, a topic without time-based deletion."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict

import click

from ...agents.reflector.rebuild import RebuildRefused, RebuildReport, rebuild_facts
from ...schemas.collections import FACTS
from ...schemas.errors import Fatal
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import Exit, usage
from ..output import console
from ..wiring.broker import opened_log
from ..wiring.ports import NoUsage, new_embedder, new_store, own_folders
from ..wiring.settings import Settings

PATIENCE = 0.0
"""Seconds to wait for the folder's lock. Waiting is useless: a running worker does not release the lock."""


@click.group()
def rebuild() -> None:
    """Rebuild collections of Qdrant from the log."""


@rebuild.command("facts")
@options.as_json
@pass_context
def facts(context: CommandContext, as_json: bool) -> None:
    """Write each fact of memory.facts that Qdrant lacks or has in a lower version. Embed its text again.

    The command refuses to run (exit 2) while a reflector runs. It does not rebuild episodes and turns: memory.facts has
    only facts.
    """
    progress = (lambda done: None) if as_json else _progress
    done = run(_rebuild(context.settings, progress))
    if as_json:
        console.line(asdict(done))
    else:
        console.advice(
            f"{done.read} facts read, {done.written} written, {done.kept} unchanged, {done.removed} removed, "
            f"{done.unreadable} records unreadable"
        )
    if done.unreadable:
        raise SystemExit(Exit.PARTLY)


def _progress(done: RebuildReport) -> None:
    console.advice(f"{done.read} facts read, {done.written} written")


async def _rebuild(settings: Settings, progress: Callable[[RebuildReport], None]) -> RebuildReport:
    async with AsyncExitStack() as stack:
        folders = await stack.enter_async_context(own_folders(settings, purpose="rebuild facts", patience=PATIENCE))
        log = await stack.enter_async_context(opened_log(settings))
        embedder = new_embedder(settings, sink=NoUsage())
        stack.push_async_callback(embedder.close)
        store = await new_store(settings, identity=embedder.identity, folders=folders)
        stack.push_async_callback(store.close)
        try:
            await store.ensure(FACTS)
        except Fatal as error:
            raise usage(str(error)) from error
        try:
            return await rebuild_facts(log=log, store=store, embedder=embedder, progress=progress)
        except RebuildRefused as error:
            raise usage(str(error)) from error

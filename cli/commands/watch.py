"""`memstream watch`: changes of facts as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import click
from pydantic import ValidationError

from ...schemas.facts import FactUpdated
from ...schemas.topics import FACTS_UPDATED
from ...streams.log.port import Log, Record
from .. import options
from ..context import CommandContext, pass_context, run
from ..output import console
from ..output.fact_format import show_change
from ..wiring.broker import opened_log, require_memory
from ..wiring.settings import Settings


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, help="Print only this tenant's changes. [default: all]")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest change that is still in the topic.")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after SECONDS without a change.",
)
@options.as_json
@pass_context
def watch(
    context: CommandContext, tenant: str | None, from_beginning: bool, until_idle: float | None, as_json: bool
) -> None:
    """Print every change of a fact as it happens (memory.facts.updated). Changes of one owner keep their order."""
    run(_watch(context.settings, tenant, from_beginning, until_idle, as_json))


async def _watch(
    settings: Settings, tenant: str | None, from_beginning: bool, until_idle: float | None, as_json: bool
) -> None:
    require_memory(settings.broker_folder)
    async with opened_log(settings) as log:
        async for record in _records(log, from_beginning, until_idle):
            try:
                event = FactUpdated.read(record.value or b"")
            except ValidationError:
                console.advice(f"{record.position}: this version cannot read this change; skipped")
                continue
            if tenant is not None and event.tenant_id != tenant:
                continue
            if as_json:
                console.line(json.loads(record.value or b""))  # unchanged: a later version may have added fields
            else:
                show_change(event)


async def _records(log: Log, from_beginning: bool, until_idle: float | None) -> AsyncIterator[Record]:
    """Yield records until no record arrives for `until_idle` seconds. With None, never stop."""
    start = None if from_beginning else dict(enumerate(await log.ends(FACTS_UPDATED.name)))
    async with aclosing(log.read(FACTS_UPDATED.name, start=start, follow=True)) as records:
        while True:
            try:
                record = await asyncio.wait_for(anext(records), until_idle)
            except (TimeoutError, StopAsyncIteration):
                return
            yield record

"""`memstream tables accept-loss STAGE`: continue with the intact rows of a damaged table (docs/design/recovery.md)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import cast

import click

from ...schemas.topics import TABLES, StageName
from ...streams.faust.loss_acceptance import AcceptedLoss, LossRefused, accept_loss
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..wiring.broker import opened_log
from ..wiring.ports import own_folders
from ..wiring.settings import Settings

PATIENCE = 0.0
"""Seconds to wait for the folder's lock. Waiting is useless: a running worker does not release the lock."""


@click.group()
def tables() -> None:
    """Repair tables of the stages."""


@tables.command("accept-loss")
@click.argument("stage", type=click.Choice(sorted(TABLES)))
@options.as_json
@pass_context
def accept(context: CommandContext, stage: str, as_json: bool) -> None:
    """Continue with the intact rows of STAGE's table after a worker refused a damaged table.

    Before that, stop all workers and delete the local tables that the worker named. Rows that the changelog lost are
    gone: working sets, deferred turns, ids of known turns. Facts and episodes stay. Exit 2 while workers run.
    """
    for each in run(_accept(context.settings, cast(StageName, stage))):
        if as_json:
            console.line(asdict(each))
        else:
            console.advice(f"{each.topic}: {each.partitions} partitions accepted")


async def _accept(settings: Settings, stage: StageName) -> list[AcceptedLoss]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(own_folders(settings, purpose="tables accept-loss", patience=PATIENCE))
        log = await stack.enter_async_context(opened_log(settings))
        try:
            return await accept_loss(log, stage)
        except LossRefused as error:
            raise usage(str(error)) from error

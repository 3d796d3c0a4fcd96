"""`memstream prune`: looks through a user's facts for what should go."""

from __future__ import annotations

import click

from .. import options
from ..context import CommandContext, pass_context
from ..output.upkeep_output import asked, tell_changes


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Although little has changed since the last time.")
@options.as_json
@pass_context
def prune(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Look through a user's facts for what should go, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "prune", tenant=tenant, user=user, args={"force": force}), as_json=as_json)

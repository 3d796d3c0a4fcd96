"""`memstream reflect`: the maintenance run of a user's memory, now."""

from __future__ import annotations

import click

from .. import options
from ..context import CommandContext, pass_context
from ..output.upkeep_output import asked, tell_counts


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def reflect(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Prune, merge, strengthen, derive and compact a user's memory, and wait for it (at most 60 s). Zeros when a run
    was going on.

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_counts(asked(context, "hygiene", tenant=tenant, user=user, args={"run": "reflect"}), as_json=as_json)

"""`memstream hygiene`: a visit of the janitor to a user's memory, now."""

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
def hygiene(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Cull what is over in a user's memory and flag what is old, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_counts(asked(context, "hygiene", tenant=tenant, user=user), as_json=as_json)

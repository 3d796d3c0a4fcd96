"""`memstream consolidate`: makes facts of a user's episodes now, whatever the guard has counted."""

from __future__ import annotations

import click

from .. import options
from ..context import CommandContext, pass_context
from ..output.upkeep_output import asked, tell_changes


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def consolidate(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Make facts of a user's episodes now, and wait for the changes (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "consolidate", tenant=tenant, user=user), as_json=as_json)

"""`memstream digest`: a user's digest, made anew when their facts or episodes have changed."""

from __future__ import annotations

import click

from .. import options
from ..context import CommandContext, pass_context
from ..output.upkeep_output import asked, tell_changes


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Although nothing has changed.")
@options.as_json
@pass_context
def digest(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Write a user's digest anew, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "digest", tenant=tenant, user=user, args={"force": force}), as_json=as_json)

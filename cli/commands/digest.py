"""`memstream digest`: a user's digest, made anew when their facts or episodes have changed."""

from __future__ import annotations

import click

from ...schemas.turns import Owner
from .. import options
from ..context import CommandContext, pass_context, run
from ..runs import ran
from .consolidate import told


@click.command()
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="Whose memory.")
@click.option("--force", is_flag=True, help="Although nothing has changed.")
@options.as_json
@pass_context
def digest(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Write a user's digest anew, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    owner = Owner(scope="user", id=user)
    told(run(ran("digest", context.settings, context.policy, tenant=tenant, owner=owner, force=force)), as_json)

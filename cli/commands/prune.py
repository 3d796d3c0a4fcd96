"""`memstream prune`: looks through a user's facts for what should go."""

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
@click.option("--force", is_flag=True, help="Although little has changed since the last time.")
@options.as_json
@pass_context
def prune(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Look through a user's facts for what should go, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    owner = Owner(scope="user", id=user)
    told(run(ran("prune", context.settings, context.policy, tenant=tenant, owner=owner, force=force)), as_json)
